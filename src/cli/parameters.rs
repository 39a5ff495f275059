//! A kernel's explicit arguments as the value grammar needs them, from metadata and DWARF.
//!
//! Knows: where names and types are found. Must not know: values.
use super::values::{Parameter, ParameterKind, ScalarType};
use crate::loader::{self, ArgMetadata, BaseEncoding, Kernel, TypeInfo, TypeKind, ValueKind};

/// Where an argument's name was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameSource {
    /// `.name` of the metadata.
    Metadata,
    /// The parameter's name in DWARF.
    Dwarf,
}

impl NameSource {
    /// The word for reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            NameSource::Metadata => "metadata",
            NameSource::Dwarf => "dwarf",
        }
    }
}

/// The DWARF parameter of an explicit argument. Both count the same things only when their numbers agree.
fn dwarf_parameter(
    explicit: usize,
    parameters: &[loader::Parameter],
    index: usize,
) -> Option<&loader::Parameter> {
    if parameters.len() == explicit {
        parameters.get(index)
    } else {
        None
    }
}

/// The names of a kernel's explicit arguments, in order, with their sources.
pub(super) fn names(
    kernel: &Kernel,
    parameters: &[loader::Parameter],
) -> Vec<Option<(String, NameSource)>> {
    let Some(metadata) = &kernel.metadata else {
        return Vec::new();
    };
    let explicit = metadata.explicit_args().count();
    let name = |(index, arg): (usize, &ArgMetadata)| {
        let own = arg.name.clone().map(|name| (name, NameSource::Metadata));
        own.or_else(|| {
            Some((
                dwarf_parameter(explicit, parameters, index)?.name.clone()?,
                NameSource::Dwarf,
            ))
        })
    };
    metadata.explicit_args().enumerate().map(name).collect()
}

/// The explicit arguments of a kernel; none without metadata.
pub(super) fn explicit(kernel: &Kernel, parameters: &[loader::Parameter]) -> Vec<Parameter> {
    let Some(metadata) = &kernel.metadata else {
        return Vec::new();
    };
    let count = metadata.explicit_args().count();
    let names = names(kernel, parameters);
    let parameter =
        |((index, arg), name): ((usize, &ArgMetadata), Option<(String, NameSource)>)| {
            let dwarf = dwarf_parameter(count, parameters, index)
                .and_then(|parameter| parameter.ty.as_ref());
            let kind = kind(&arg.kind);
            let (ty, pointee) = match kind {
                ParameterKind::Pointer => (None, pointee(arg, dwarf)),
                ParameterKind::Value => (scalar(arg, dwarf), None),
                ParameterKind::DynamicLds | ParameterKind::Opaque(_) => (None, None),
            };
            Parameter {
                name: name.map(|(name, _)| name),
                kind,
                size_bytes: u64::from(arg.size),
                offset_bytes: u64::from(arg.offset),
                ty,
                pointee,
                aggregate: kind == ParameterKind::Value && is_aggregate(arg, dwarf),
            }
        };
    metadata
        .explicit_args()
        .enumerate()
        .zip(names)
        .map(parameter)
        .collect()
}

fn kind(kind: &ValueKind) -> ParameterKind {
    match kind {
        ValueKind::ByValue => ParameterKind::Value,
        ValueKind::GlobalBuffer => ParameterKind::Pointer,
        ValueKind::DynamicSharedPointer => ParameterKind::DynamicLds,
        ValueKind::Sampler => ParameterKind::Opaque("sampler"),
        ValueKind::Image => ParameterKind::Opaque("image"),
        ValueKind::Pipe => ParameterKind::Opaque("pipe"),
        ValueKind::Queue => ParameterKind::Opaque("queue"),
        _ => ParameterKind::Opaque("argument of an unknown kind"),
    }
}

/// The scalar type of a by-value argument. `.value_type` is a fact of the compiler's type, so it comes first.
fn scalar(arg: &ArgMetadata, dwarf: Option<&TypeInfo>) -> Option<ScalarType> {
    let fits = |ty: &ScalarType| ty.size_bytes() as u64 == u64::from(arg.size);
    let from_metadata = || {
        arg.value_type
            .as_deref()
            .and_then(|word| ScalarType::from_name(&word.to_ascii_lowercase()))
    };
    let from_name = || arg.type_name.as_deref().and_then(of_type_name);
    let from_dwarf = || dwarf.and_then(of_type_info);
    from_name()
        .filter(fits)
        .or_else(|| from_metadata().filter(fits))
        .or_else(|| from_dwarf().filter(fits))
}

fn pointee(arg: &ArgMetadata, dwarf: Option<&TypeInfo>) -> Option<ScalarType> {
    let from_name = arg.type_name.as_deref().and_then(pointee_of_type_name);
    from_name.or_else(|| match &dwarf?.kind {
        TypeKind::Pointer(Some(pointee)) => element(pointee),
        _ => None,
    })
}

fn is_aggregate(arg: &ArgMetadata, dwarf: Option<&TypeInfo>) -> bool {
    let by_dwarf =
        dwarf.is_some_and(|ty| matches!(ty.kind, TypeKind::Aggregate | TypeKind::Array { .. }));
    by_dwarf || arg.value_type.as_deref() == Some("struct")
}

/// The scalar that a type consists of: itself, or the element of arrays and vectors.
fn element(ty: &TypeInfo) -> Option<ScalarType> {
    match &ty.kind {
        TypeKind::Array { element: inner, .. } => element(inner),
        TypeKind::Pointer(_) => Some(ScalarType::U64),
        _ => of_type_info(ty),
    }
}

/// The scalar type of a DWARF type.
pub(super) fn of_type_info(ty: &TypeInfo) -> Option<ScalarType> {
    let size = ty.size?;
    match ty.kind {
        TypeKind::Base(BaseEncoding::Float) if ty.name.contains("bf") => Some(ScalarType::Bf16),
        TypeKind::Base(BaseEncoding::Float) => ScalarType::float(size),
        TypeKind::Base(BaseEncoding::Signed | BaseEncoding::Character { signed: true })
        | TypeKind::Enumeration => ScalarType::integer(size, true),
        TypeKind::Base(
            BaseEncoding::Unsigned
            | BaseEncoding::Boolean
            | BaseEncoding::Character { signed: false },
        ) => ScalarType::integer(size, false),
        _ => None,
    }
}

/// The scalar type and the number of elements of a variable: an array's or vector's, else one.
pub(super) fn of_variable(ty: &TypeInfo) -> Option<(ScalarType, u64)> {
    let scalar = element(ty)?;
    let size = ty.size?;
    Some((scalar, size / scalar.size_bytes() as u64))
}

/// The scalar type of a C, C++ or OpenCL C type name on amdgcn, where `long` has 64 bits.
fn of_type_name(name: &str) -> Option<ScalarType> {
    let words: Vec<&str> = name
        .split_whitespace()
        .filter(|word| {
            !matches!(
                *word,
                "const"
                    | "volatile"
                    | "restrict"
                    | "__restrict"
                    | "__global"
                    | "global"
                    | "__constant"
                    | "constant"
                    | "__private"
                    | "_Atomic"
            )
        })
        .collect();
    Some(match words.join(" ").as_str() {
        "char" | "signed char" | "int8_t" | "i8" => ScalarType::I8,
        "uchar" | "unsigned char" | "bool" | "_Bool" | "uint8_t" | "u8" => ScalarType::U8,
        "short" | "short int" | "signed short" | "int16_t" | "i16" => ScalarType::I16,
        "ushort" | "unsigned short" | "short unsigned int" | "uint16_t" | "u16" => ScalarType::U16,
        "int" | "signed" | "signed int" | "int32_t" | "i32" => ScalarType::I32,
        "uint" | "unsigned" | "unsigned int" | "uint32_t" | "u32" => ScalarType::U32,
        "long" | "long int" | "signed long" | "long long" | "long long int" | "int64_t"
        | "ptrdiff_t" | "i64" => ScalarType::I64,
        "ulong"
        | "unsigned long"
        | "long unsigned int"
        | "unsigned long long"
        | "long long unsigned int"
        | "uint64_t"
        | "size_t"
        | "u64" => ScalarType::U64,
        "half" | "_Float16" | "__fp16" | "f16" => ScalarType::F16,
        "__bf16" | "bfloat16" | "__hip_bfloat16" | "bf16" => ScalarType::Bf16,
        "float" | "f32" => ScalarType::F32,
        "double" | "f64" => ScalarType::F64,
        _ => return None,
    })
}

/// The element type behind a pointer's type name: `float` of `float*`, of `const float4 *` too.
fn pointee_of_type_name(name: &str) -> Option<ScalarType> {
    let pointee = name.trim_end().strip_suffix('*')?.trim_end();
    if pointee.ends_with('*') {
        return Some(ScalarType::U64);
    }
    of_type_name(pointee).or_else(|| {
        // OpenCL C's vectors: the name of the element and 2, 3, 4, 8 or 16.
        let element = pointee.trim_end_matches(|c: char| c.is_ascii_digit());
        let lanes = &pointee[element.len()..];
        if matches!(lanes, "2" | "3" | "4" | "8" | "16") {
            of_type_name(element)
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opencl_and_c_names() {
        for (name, want) in [
            ("int", Some(ScalarType::I32)),
            ("uint", Some(ScalarType::U32)),
            ("unsigned int", Some(ScalarType::U32)),
            ("const unsigned  long", Some(ScalarType::U64)),
            ("half", Some(ScalarType::F16)),
            ("__bf16", Some(ScalarType::Bf16)),
            ("double", Some(ScalarType::F64)),
            ("size_t", Some(ScalarType::U64)),
            ("float4", None),
            ("struct S", None),
            ("", None),
        ] {
            assert_eq!(of_type_name(name), want, "{name}");
        }
    }

    #[test]
    fn pointers_have_elements() {
        assert_eq!(pointee_of_type_name("float*"), Some(ScalarType::F32));
        assert_eq!(
            pointee_of_type_name("const float4 *"),
            Some(ScalarType::F32)
        );
        assert_eq!(pointee_of_type_name("uchar16*"), Some(ScalarType::U8));
        assert_eq!(pointee_of_type_name("int**"), Some(ScalarType::U64));
        assert_eq!(pointee_of_type_name("float5*"), None);
        assert_eq!(pointee_of_type_name("void*"), None);
        assert_eq!(pointee_of_type_name("float"), None);
    }
}
