//! Metadata of code objects V2: YAML, with the same things under other names.
//!
//! Knows: the keys of AMDGPUUsage, "Code Object V2 Metadata". Must not know: `amd_kernel_code_t`. Arguments have sizes
//! and alignments and no offsets, which follow from them.

use super::args::{Access, AddressSpace, ArgMetadata, ValueKind};
use super::{KernelMetadata, Metadata, MetadataError, PrintfFormat, Value, check_layout, yaml};

/// A mapping and where it stands.
struct Fields<'a> {
    path: String,
    entries: &'a [(Value, Value)],
}

impl<'a> Fields<'a> {
    fn new(value: &'a Value, path: &str) -> Result<Self, MetadataError> {
        let entries: &[(Value, Value)] = match value {
            Value::Map(entries) => entries,
            Value::Nil => &[],
            other => {
                return Err(MetadataError::Type {
                    path: path.to_owned(),
                    expected: "a mapping",
                    found: other.kind().to_owned(),
                });
            }
        };
        Ok(Self {
            path: path.to_owned(),
            entries,
        })
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.entries
            .iter()
            .find(|(name, _)| matches!(name, Value::Str(name) if name == key))
            .map(|(_, value)| value)
    }

    fn wrong(&self, key: &str, expected: &'static str, found: &Value) -> MetadataError {
        MetadataError::Type {
            path: if self.path.is_empty() {
                key.to_owned()
            } else {
                format!("{}.{key}", self.path)
            },
            expected,
            found: match found {
                Value::Str(text) => format!("`{text}`"),
                other => other.kind().to_owned(),
            },
        }
    }

    fn string(&self, key: &str) -> Result<Option<String>, MetadataError> {
        match self.get(key) {
            None | Some(Value::Nil) => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(key, "a string", other)),
        }
    }

    fn u32(&self, key: &str) -> Result<Option<u32>, MetadataError> {
        let expected = "an integer of 0 to 4294967295";
        match self.get(key) {
            None | Some(Value::Nil) => Ok(None),
            Some(value @ Value::Str(text)) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.wrong(key, expected, value)),
            },
            Some(other) => Err(self.wrong(key, expected, other)),
        }
    }

    fn boolean(&self, key: &str) -> Result<Option<bool>, MetadataError> {
        match self.get(key) {
            None | Some(Value::Nil) => Ok(None),
            Some(value @ Value::Str(text)) => match text.as_str() {
                "true" => Ok(Some(true)),
                "false" => Ok(Some(false)),
                _ => Err(self.wrong(key, "a boolean", value)),
            },
            Some(other) => Err(self.wrong(key, "a boolean", other)),
        }
    }

    fn list(&self, key: &str) -> Result<&'a [Value], MetadataError> {
        match self.get(key) {
            None | Some(Value::Nil) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.wrong(key, "a sequence", other)),
        }
    }

    fn u32s<const N: usize>(&self, key: &str) -> Result<Option<[u32; N]>, MetadataError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let numbers: Option<Vec<u32>> = self
            .list(key)?
            .iter()
            .map(|item| match item {
                Value::Str(text) => text.parse().ok(),
                _ => None,
            })
            .collect();
        match numbers.and_then(|numbers| <[u32; N]>::try_from(numbers).ok()) {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(self.wrong(key, "a sequence of integers of its own length", value)),
        }
    }

    fn part(&self, key: &str) -> Result<Fields<'a>, MetadataError> {
        let path = format!("{}.{key}", self.path);
        Fields::new(self.get(key).unwrap_or(&Value::Nil), &path)
    }
}

/// `HiddenGlobalOffsetX` to `hidden_global_offset_x`. LLVM writes one name in another way than later versions divide it.
fn snake_case(name: &str) -> String {
    let name = match name {
        "HiddenMultiGridSyncArg" => "HiddenMultigridSyncArg",
        name => name,
    };
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

impl Metadata {
    /// Reads the text of an `NT_AMD_HSA_METADATA` note.
    ///
    /// # Errors
    /// Not YAML, a known key with a value of another type, arguments that do not fit their segment.
    pub fn parse_v2(text: &str) -> Result<Self, MetadataError> {
        let document = yaml::parse(text).map_err(|error| MetadataError::Yaml(error.to_string()))?;
        let fields = Fields::new(&document, "")?;
        let mut metadata = Self {
            version: fields.u32s("Version")?,
            ..Self::default()
        };
        for (index, format) in fields.list("Printf")?.iter().enumerate() {
            let parsed = match format {
                Value::Str(text) => PrintfFormat::parse(text),
                _ => None,
            };
            let wrong = || {
                fields.wrong(
                    &format!("Printf[{index}]"),
                    "ID:COUNT:SIZES…:FORMAT",
                    format,
                )
            };
            metadata.printf.push(parsed.ok_or_else(wrong)?);
        }
        for (index, kernel) in fields.list("Kernels")?.iter().enumerate() {
            metadata
                .kernels
                .push(self::kernel(kernel, &format!("Kernels[{index}]"))?);
        }
        Ok(metadata)
    }
}

fn kernel(value: &Value, path: &str) -> Result<KernelMetadata, MetadataError> {
    let fields = Fields::new(value, path)?;
    let name = fields.string("Name")?.ok_or(MetadataError::Missing {
        path: path.to_owned(),
        key: "Name",
    })?;
    let symbol = fields.string("SymbolName")?;
    let (attributes, properties) = (fields.part("Attrs")?, fields.part("CodeProps")?);
    let mut args = Vec::new();
    let mut next = 0_u32;
    for (index, arg) in fields.list("Args")?.iter().enumerate() {
        let path = format!("{path}.Args[{index}]");
        args.push(argument(arg, &path, &mut next)?);
    }
    let kernarg_segment_size = properties.u32("KernargSegmentSize")?;
    check_layout(&name, &args, kernarg_segment_size)?;
    Ok(KernelMetadata {
        symbol: symbol.unwrap_or_else(|| name.clone()),
        name,
        language: fields.string("Language")?,
        language_version: fields.u32s("LanguageVersion")?,
        args,
        kernarg_segment_size,
        kernarg_segment_align: properties.u32("KernargSegmentAlign")?,
        group_segment_fixed_size: properties.u32("GroupSegmentFixedSize")?,
        private_segment_fixed_size: properties.u32("PrivateSegmentFixedSize")?,
        wavefront_size: properties.u32("WavefrontSize")?,
        sgpr_count: properties.u32("NumSGPRs")?,
        vgpr_count: properties.u32("NumVGPRs")?,
        max_flat_workgroup_size: properties.u32("MaxFlatWorkGroupSize")?,
        sgpr_spill_count: properties.u32("NumSpilledSGPRs")?,
        vgpr_spill_count: properties.u32("NumSpilledVGPRs")?,
        reqd_workgroup_size: attributes.u32s("ReqdWorkGroupSize")?,
        workgroup_size_hint: attributes.u32s("WorkGroupSizeHint")?,
        vec_type_hint: attributes.string("VecTypeHint")?,
        device_enqueue_symbol: attributes.string("RuntimeHandle")?,
        uses_dynamic_stack: properties.boolean("IsDynamicCallStack")?,
        ..KernelMetadata::default()
    })
}

fn argument(value: &Value, path: &str, next: &mut u32) -> Result<ArgMetadata, MetadataError> {
    let fields = Fields::new(value, path)?;
    let missing = |key| MetadataError::Missing {
        path: path.to_owned(),
        key,
    };
    let size = fields.u32("Size")?.ok_or_else(|| missing("Size"))?;
    let align = fields.u32("Align")?.ok_or_else(|| missing("Align"))?;
    let kind = fields
        .string("ValueKind")?
        .ok_or_else(|| missing("ValueKind"))?;
    // past 4 GiB no segment size fits, which the check of the layout says
    let offset = next
        .checked_next_multiple_of(align.max(1))
        .unwrap_or(u32::MAX);
    *next = offset.saturating_add(size);
    let access = |key| -> Result<Option<Access>, MetadataError> {
        let word = fields.string(key)?.filter(|word| word != "Default");
        Ok(word.map(|word| Access::parse(snake_case(&word))))
    };
    Ok(ArgMetadata {
        name: fields.string("Name")?,
        type_name: fields.string("TypeName")?,
        offset,
        size,
        kind: ValueKind::parse(snake_case(&kind)),
        value_type: fields
            .string("ValueType")?
            .map(|word| word.to_ascii_lowercase()),
        pointee_align: fields.u32("PointeeAlign")?,
        address_space: fields
            .string("AddrSpaceQual")?
            .map(|word| AddressSpace::parse(word.to_ascii_lowercase())),
        access: access("AccQual")?,
        actual_access: access("ActualAccQual")?,
        is_const: fields.boolean("IsConst")?.unwrap_or(false),
        is_restrict: fields.boolean("IsRestrict")?.unwrap_or(false),
        is_volatile: fields.boolean("IsVolatile")?.unwrap_or(false),
        is_pipe: fields.boolean("IsPipe")?.unwrap_or(false),
        unknown: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_follow_from_sizes_and_alignments() {
        let text = "Version: [ 1, 0 ]\nPrintf:\n  - '1:1:4:%d'\nKernels:\n  - Name: k\n    SymbolName: 'k@kd'\n    \
            Attrs:\n      ReqdWorkGroupSize: [ 64, 1, 1 ]\n    Args:\n      \
            - Size: 1\n        Align: 1\n        ValueKind: ByValue\n        ValueType: I8\n      \
            - Size: 24\n        Align: 8\n        ValueKind: ByValue\n      \
            - Size: 8\n        Align: 8\n        ValueKind: GlobalBuffer\n        AddrSpaceQual: Global\n        \
            AccQual: ReadOnly\n        IsConst: true\n      \
            - Size: 8\n        Align: 8\n        ValueKind: HiddenGlobalOffsetX\n    \
            CodeProps:\n      KernargSegmentSize: 48\n      WavefrontSize: 64\n";
        let metadata = Metadata::parse_v2(text).unwrap();
        assert_eq!(metadata.version, Some([1, 0]));
        assert_eq!(metadata.printf[0].argument_sizes, [4]);
        let kernel = &metadata.kernels[0];
        assert_eq!(kernel.reqd_workgroup_size, Some([64, 1, 1]));
        let read: Vec<_> = kernel
            .args
            .iter()
            .map(|a| (a.offset, a.size, a.kind.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                (0, 1, "by_value"),
                (8, 24, "by_value"),
                (32, 8, "global_buffer"),
                (40, 8, "hidden_global_offset_x")
            ]
        );
        assert_eq!(
            snake_case("HiddenMultiGridSyncArg"),
            "hidden_multigrid_sync_arg"
        );
        let buffer = &kernel.args[2];
        assert_eq!(
            (buffer.is_const, &buffer.access, &buffer.address_space),
            (true, &Some(Access::ReadOnly), &Some(AddressSpace::Global))
        );
        assert_eq!(kernel.args[0].value_type.as_deref(), Some("i8"));
        let error =
            Metadata::parse_v2(&text.replace("KernargSegmentSize: 48", "KernargSegmentSize: 40"));
        assert!(matches!(
            error,
            Err(MetadataError::ArgumentOutsideSegment { index: 3, .. })
        ));
        let error = Metadata::parse_v2(&text.replace("Size: 24", "Size: x"));
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("Kernels[0].Args[1].Size"),
            "names the key"
        );
        assert_eq!(Metadata::parse_v2("").unwrap(), Metadata::default());
    }
}
