//! Kernel metadata: the msgpack document of the `NT_AMDGPU_METADATA` note, V2's YAML in the same types.
//!
//! Knows: the keys of AMDGPUUsage, sections "Code Object V3 Metadata" to "Code Object V6 Metadata"; other keys are
//! kept as they are. Must not know: ELF, descriptors, what a dispatcher does with an argument.

mod args;
mod v2;
mod value;
mod yaml;

pub use args::{Access, AddressSpace, ArgMetadata, ValueKind};
pub use value::Value;

/// Why the document could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// Not the YAML that V2 has, by line.
    #[error("not a YAML document: {0}")]
    Yaml(String),
    /// Not msgpack, or nested too deeply.
    #[error("not a msgpack document: {0}")]
    Msgpack(String),
    /// A value of another type than the key has.
    #[error("{path}: expected {expected}, found {found}")]
    Type {
        /// Which value, such as `amdhsa.kernels[2].args[0].size`.
        path: String,
        /// What the key holds.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A required key is missing.
    #[error("{path}: required key `{key}` is missing")]
    Missing {
        /// Which map.
        path: String,
        /// Which key.
        key: &'static str,
    },
    /// Two arguments share bytes of the kernarg segment.
    #[error(
        "kernel {kernel}: arguments {first} (offset {first_offset}, size {first_size}) and {second} (offset {second_offset}) overlap in the kernarg segment"
    )]
    OverlappingArguments {
        /// `.name` of the kernel.
        kernel: String,
        /// Index of the argument that lies lower.
        first: usize,
        /// Its offset.
        first_offset: u32,
        /// Its size.
        first_size: u32,
        /// Index of the other argument.
        second: usize,
        /// Its offset.
        second_offset: u32,
    },
    /// An argument reaches past the kernarg segment.
    #[error(
        "kernel {kernel}: argument {index} (offset {offset}, size {size}) ends past the kernarg segment of {segment_size} bytes"
    )]
    ArgumentOutsideSegment {
        /// `.name` of the kernel.
        kernel: String,
        /// Index of the argument.
        index: usize,
        /// Its offset.
        offset: u32,
        /// Its size.
        size: u32,
        /// `.kernarg_segment_size`.
        segment_size: u32,
    },
}

/// A map whose known keys are taken out one by one; what remains is unknown.
struct Fields {
    path: String,
    entries: Vec<(String, Value)>,
}

impl Fields {
    fn new(value: Value, path: &str) -> Result<Self, MetadataError> {
        match value {
            Value::Map(map) => {
                let entries = map
                    .into_iter()
                    .map(|(key, value)| match key {
                        Value::Str(key) => (key, value),
                        other => (format!("{other:?}"), value),
                    })
                    .collect();
                Ok(Self {
                    path: path.to_owned(),
                    entries,
                })
            }
            other => Err(MetadataError::Type {
                path: path.to_owned(),
                expected: "a map",
                found: other.kind().to_owned(),
            }),
        }
    }

    fn path(&self, key: &str) -> String {
        match (self.path.is_empty(), key.starts_with('.')) {
            (true, _) => key.to_owned(),
            (false, true) => format!("{}{key}", self.path),
            (false, false) => format!("{}.{key}", self.path),
        }
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        let at = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(at).1)
    }

    fn mismatch(&self, key: &str, expected: &'static str, found: &Value) -> MetadataError {
        let found = match found {
            Value::Int(v) => v.to_string(),
            other => other.kind().to_owned(),
        };
        MetadataError::Type {
            path: self.path(key),
            expected,
            found,
        }
    }

    fn string(&mut self, key: &'static str) -> Result<Option<String>, MetadataError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text)),
            Some(other) => Err(self.mismatch(key, "a string", &other)),
        }
    }

    fn u32(&mut self, key: &'static str) -> Result<Option<u32>, MetadataError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Int(v)) => match u32::try_from(v) {
                Ok(v) => Ok(Some(v)),
                Err(_) => Err(self.mismatch(key, "an integer of 0 to 4294967295", &Value::Int(v))),
            },
            Some(other) => Err(self.mismatch(key, "an integer", &other)),
        }
    }

    /// Booleans are written as booleans or as 0 and 1, depending on the key and the compiler.
    fn boolean(&mut self, key: &'static str) -> Result<Option<bool>, MetadataError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(v)) => Ok(Some(v)),
            Some(Value::Int(v @ (0 | 1))) => Ok(Some(v == 1)),
            Some(other) => Err(self.mismatch(key, "a boolean", &other)),
        }
    }

    fn array(&mut self, key: &'static str) -> Result<Option<Vec<Value>>, MetadataError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(self.mismatch(key, "an array", &other)),
        }
    }

    fn u32s<const N: usize>(
        &mut self,
        key: &'static str,
        expected: &'static str,
    ) -> Result<Option<[u32; N]>, MetadataError> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let numbers = match &value {
            Value::Array(items) => items
                .iter()
                .map(|item| match item {
                    Value::Int(v) => u32::try_from(*v).ok(),
                    _ => None,
                })
                .collect::<Option<Vec<u32>>>(),
            _ => None,
        };
        match numbers.and_then(|numbers| <[u32; N]>::try_from(numbers).ok()) {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(self.mismatch(key, expected, &value)),
        }
    }
}

/// What a kernel is for (`.kind`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum KernelKind {
    /// Launched by its users.
    #[default]
    Normal,
    /// Must run once after loading, before any other kernel.
    Init,
    /// Must run once before unloading, after all other kernels.
    Fini,
    /// Anything else that the metadata says.
    Other(String),
}

/// One format string of device printf (`amdhsa.printf`): `ID:N:S0:…:format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintfFormat {
    /// The number that the device writes in front of a call's arguments.
    pub id: u32,
    /// Bytes of each argument.
    pub argument_sizes: Vec<u32>,
    /// The format string, with the escapes that the compiler wrote.
    pub format: String,
}

impl PrintfFormat {
    /// Reads `1:2:4:8:text`; colons in the text belong to it.
    fn parse(text: &str) -> Option<Self> {
        let (id, rest) = text.split_once(':')?;
        let (count, mut rest) = rest.split_once(':')?;
        let mut argument_sizes = Vec::new();
        for _ in 0..count.parse::<u32>().ok()? {
            let (size, tail) = rest.split_once(':')?;
            argument_sizes.push(size.parse().ok()?);
            rest = tail;
        }
        Some(Self {
            id: id.parse().ok()?,
            argument_sizes,
            format: rest.to_owned(),
        })
    }
}

/// Metadata of one kernel. Sizes are in bytes; `None` where the key is absent.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KernelMetadata {
    /// `.name`: the kernel's mangled name.
    pub name: String,
    /// `.symbol`: the ELF symbol of its descriptor.
    pub symbol: String,
    /// `.language`.
    pub language: Option<String>,
    /// `.language_version`.
    pub language_version: Option<[u32; 2]>,
    /// `.args`, explicit and hidden, in the metadata's order.
    pub args: Vec<ArgMetadata>,
    /// `.kernarg_segment_size`.
    pub kernarg_segment_size: Option<u32>,
    /// `.kernarg_segment_align`.
    pub kernarg_segment_align: Option<u32>,
    /// `.group_segment_fixed_size`: static LDS.
    pub group_segment_fixed_size: Option<u32>,
    /// `.private_segment_fixed_size`: scratch of one work-item.
    pub private_segment_fixed_size: Option<u32>,
    /// `.wavefront_size`.
    pub wavefront_size: Option<u32>,
    /// `.sgpr_count`.
    pub sgpr_count: Option<u32>,
    /// `.vgpr_count`.
    pub vgpr_count: Option<u32>,
    /// `.agpr_count`.
    pub agpr_count: Option<u32>,
    /// `.max_flat_workgroup_size`.
    pub max_flat_workgroup_size: Option<u32>,
    /// `.sgpr_spill_count`.
    pub sgpr_spill_count: Option<u32>,
    /// `.vgpr_spill_count`.
    pub vgpr_spill_count: Option<u32>,
    /// `.reqd_workgroup_size`.
    pub reqd_workgroup_size: Option<[u32; 3]>,
    /// `.workgroup_size_hint`.
    pub workgroup_size_hint: Option<[u32; 3]>,
    /// `.vec_type_hint`.
    pub vec_type_hint: Option<String>,
    /// `.device_enqueue_symbol`.
    pub device_enqueue_symbol: Option<String>,
    /// `.kind`.
    pub kind: KernelKind,
    /// `.max_num_work_groups_{x,y,z}`.
    pub max_num_work_groups: [Option<u32>; 3],
    /// `.uses_dynamic_stack` (V5).
    pub uses_dynamic_stack: Option<bool>,
    /// `.workgroup_processor_mode` (V5, GFX10 and later).
    pub workgroup_processor_mode: Option<bool>,
    /// `.uniform_work_group_size` (V5): the kernel forbids partial workgroups.
    pub uniform_work_group_size: Option<bool>,
    /// `.cluster_dims` (V6, gfx1250).
    pub cluster_dims: Option<[u32; 3]>,
    /// Keys that are not listed above.
    pub unknown: Vec<(String, Value)>,
}

impl KernelMetadata {
    fn parse(value: Value, path: &str) -> Result<Self, MetadataError> {
        let mut fields = Fields::new(value, path)?;
        let symbol = fields.string(".symbol")?;
        let name = fields.string(".name")?;
        let (name, symbol) = match (name, symbol) {
            (Some(name), Some(symbol)) => (name, symbol),
            // tools that write their own metadata leave out one of the two
            (None, Some(symbol)) => (
                symbol.strip_suffix(".kd").unwrap_or(&symbol).to_owned(),
                symbol,
            ),
            (_, None) => {
                return Err(MetadataError::Missing {
                    path: fields.path,
                    key: ".symbol",
                });
            }
        };
        let kernarg_segment_size = fields.u32(".kernarg_segment_size")?;
        let mut args = Vec::new();
        for (i, arg) in fields
            .array(".args")?
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            args.push(ArgMetadata::parse(arg, &format!("{path}.args[{i}]"))?);
        }
        check_layout(&name, &args, kernarg_segment_size)?;
        const TRIPLE: &str = "an array of three integers";
        Ok(Self {
            name,
            symbol,
            language: fields.string(".language")?,
            language_version: fields.u32s(".language_version", "an array of two integers")?,
            args,
            kernarg_segment_size,
            kernarg_segment_align: fields.u32(".kernarg_segment_align")?,
            group_segment_fixed_size: fields.u32(".group_segment_fixed_size")?,
            private_segment_fixed_size: fields.u32(".private_segment_fixed_size")?,
            wavefront_size: fields.u32(".wavefront_size")?,
            sgpr_count: fields.u32(".sgpr_count")?,
            vgpr_count: fields.u32(".vgpr_count")?,
            agpr_count: fields.u32(".agpr_count")?,
            max_flat_workgroup_size: fields.u32(".max_flat_workgroup_size")?,
            sgpr_spill_count: fields.u32(".sgpr_spill_count")?,
            vgpr_spill_count: fields.u32(".vgpr_spill_count")?,
            reqd_workgroup_size: fields.u32s(".reqd_workgroup_size", TRIPLE)?,
            workgroup_size_hint: fields.u32s(".workgroup_size_hint", TRIPLE)?,
            vec_type_hint: fields.string(".vec_type_hint")?,
            device_enqueue_symbol: fields.string(".device_enqueue_symbol")?,
            kind: match fields.string(".kind")? {
                None => KernelKind::Normal,
                Some(kind) => match kind.as_str() {
                    "normal" => KernelKind::Normal,
                    "init" => KernelKind::Init,
                    "fini" => KernelKind::Fini,
                    _ => KernelKind::Other(kind),
                },
            },
            max_num_work_groups: [
                fields.u32(".max_num_work_groups_x")?,
                fields.u32(".max_num_work_groups_y")?,
                fields.u32(".max_num_work_groups_z")?,
            ],
            uses_dynamic_stack: fields.boolean(".uses_dynamic_stack")?,
            workgroup_processor_mode: fields.boolean(".workgroup_processor_mode")?,
            uniform_work_group_size: fields.boolean(".uniform_work_group_size")?,
            cluster_dims: fields.u32s(".cluster_dims", TRIPLE)?,
            unknown: fields.entries,
        })
    }

    /// The arguments that a user gives, in the metadata's order.
    pub fn explicit_args(&self) -> impl Iterator<Item = &ArgMetadata> {
        self.args.iter().filter(|arg| !arg.kind.is_hidden())
    }

    /// The arguments that the runtime fills.
    pub fn hidden_args(&self) -> impl Iterator<Item = &ArgMetadata> {
        self.args.iter().filter(|arg| arg.kind.is_hidden())
    }
}

/// Arguments lie inside the segment and do not overlap; their order in the metadata is free.
fn check_layout(
    kernel: &str,
    args: &[ArgMetadata],
    segment_size: Option<u32>,
) -> Result<(), MetadataError> {
    let mut order: Vec<(usize, &ArgMetadata)> = args.iter().enumerate().collect();
    order.sort_by_key(|(_, arg)| (arg.offset, arg.size));
    for (index, arg) in &order {
        let end = u64::from(arg.offset) + u64::from(arg.size);
        // a size of 0 is what V3 descriptors of other compilers say when they mean "see the descriptor"
        if let Some(segment_size) = segment_size.filter(|size| *size != 0)
            && end > u64::from(segment_size)
        {
            return Err(MetadataError::ArgumentOutsideSegment {
                kernel: kernel.to_owned(),
                index: *index,
                offset: arg.offset,
                size: arg.size,
                segment_size,
            });
        }
    }
    for pair in order.windows(2) {
        if let [(first, a), (second, b)] = pair
            && u64::from(a.offset) + u64::from(a.size) > u64::from(b.offset)
        {
            return Err(MetadataError::OverlappingArguments {
                kernel: kernel.to_owned(),
                first: *first,
                first_offset: a.offset,
                first_size: a.size,
                second: *second,
                second_offset: b.offset,
            });
        }
    }
    Ok(())
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// `amdhsa.version`. Real objects of V4 to V6 say 1.0 here: never take the object's version from it.
    pub version: Option<[u32; 2]>,
    /// `amdhsa.target` (V4 and later).
    pub target: Option<String>,
    /// `amdhsa.printf`.
    pub printf: Vec<PrintfFormat>,
    /// `amdhsa.kernels`.
    pub kernels: Vec<KernelMetadata>,
    /// Keys that are not listed above.
    pub unknown: Vec<(String, Value)>,
}

impl Metadata {
    /// Reads the descriptor of an `NT_AMDGPU_METADATA` note.
    ///
    /// # Errors
    /// Not msgpack, a known key with a value of another type, a kernel without `.symbol`, arguments that overlap.
    pub fn parse(bytes: &[u8]) -> Result<Self, MetadataError> {
        let document = Value::from_msgpack(bytes)
            .map_err(|error| MetadataError::Msgpack(error.to_string()))?;
        let mut fields = Fields::new(document, "")?;
        let mut kernels = Vec::new();
        for (i, kernel) in fields
            .array("amdhsa.kernels")?
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            kernels.push(KernelMetadata::parse(
                kernel,
                &format!("amdhsa.kernels[{i}]"),
            )?);
        }
        let mut printf = Vec::new();
        for (i, format) in fields
            .array("amdhsa.printf")?
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            let parsed = match &format {
                Value::Str(text) => PrintfFormat::parse(text),
                _ => None,
            };
            printf.push(parsed.ok_or_else(|| MetadataError::Type {
                path: format!("amdhsa.printf[{i}]"),
                expected: "a string ID:COUNT:SIZES…:FORMAT",
                found: match format {
                    Value::Str(text) => format!("`{text}`"),
                    other => other.kind().to_owned(),
                },
            })?);
        }
        Ok(Self {
            version: fields.u32s("amdhsa.version", "an array of two integers")?,
            target: fields.string("amdhsa.target")?,
            printf,
            kernels,
            unknown: fields.entries,
        })
    }
}

#[cfg(test)]
mod tests;
