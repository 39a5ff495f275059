//! Values matched with a kernel's explicit arguments.
//!
//! Knows: names, positions, kinds and sizes of arguments, and the conversion of literals to their types.
//! Must not know: addresses, code objects.
use super::buffer::{Buffer, Init};
use super::error::ValueError;
use super::grammar::{ArgSpec, BufferSpec, Reference, StructSpec, ValueSpec};
use super::scalar::{Scalar, ScalarType};

/// What an explicit argument wants (AMDGPUUsage, "Code Object V3 Metadata", `.value_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// `by_value`.
    Value,
    /// `global_buffer`.
    Pointer,
    /// `dynamic_shared_pointer`.
    DynamicLds,
    /// An image, a sampler, a pipe, a queue: nothing on the command line makes one.
    Opaque(&'static str),
}

impl ParameterKind {
    /// The word for reports.
    pub fn name(self) -> &'static str {
        match self {
            ParameterKind::Value => "value",
            ParameterKind::Pointer => "buffer",
            ParameterKind::DynamicLds => "lds",
            ParameterKind::Opaque(name) => name,
        }
    }
}

/// An explicit argument of a kernel, as far as values need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The metadata's `.name`, else the parameter's name in DWARF.
    pub name: Option<String>,
    /// Kind.
    pub kind: ParameterKind,
    /// Bytes in the kernarg segment.
    pub size_bytes: u64,
    /// Offset in the kernarg segment.
    pub offset_bytes: u64,
    /// The scalar type, where metadata or DWARF says that it is one.
    pub ty: Option<ScalarType>,
    /// The element type that a pointer points to, where metadata or DWARF says it.
    pub pointee: Option<ScalarType>,
    /// True where DWARF or the size says that it is no scalar.
    pub aggregate: bool,
}

/// Where an argument's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// An `--arg`.
    Given,
    /// Filled because no `--arg` was given at all.
    Auto,
}

/// An argument's value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A scalar.
    Scalar {
        /// The value; its type may be narrower than the argument, never wider.
        value: Scalar,
        /// Nothing said what the type is.
        assumed: bool,
    },
    /// The address of a buffer of its own.
    Buffer(Buffer),
    /// The null pointer.
    Null,
    /// An address as a number.
    Address(u64),
    /// An address inside another argument's buffer.
    Reference {
        /// Index of that argument.
        target: usize,
        /// Bytes added.
        offset_bytes: u64,
    },
    /// Bytes of dynamic LDS.
    Lds(u64),
    /// Bytes as they are, with addresses to fill in: byte offset, argument, bytes added.
    Bytes {
        /// Content.
        bytes: Vec<u8>,
        /// Addresses inside it.
        references: Vec<(u64, usize, u64)>,
    },
}

/// An argument with its value.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The name it answers to besides `argN` and `N`: the parameter's own, else the label of its `--arg`.
    pub name: Option<String>,
    /// Value.
    pub value: Value,
    /// Where the value came from.
    pub source: ValueSource,
}

/// All arguments of a launch, in the kernel's order.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// One an argument.
    pub list: Vec<Binding>,
}

impl Bindings {
    /// Matches the `--arg` options with the parameters.
    pub fn bind(parameters: &[Parameter], args: &[ArgSpec]) -> Result<Bindings, ValueError> {
        let slots = place(parameters, args)?;
        let labels: Vec<Option<String>> = (0..parameters.len())
            .map(|index| answer(parameters, &slots, index))
            .collect();
        let find = |name: &str| find(&labels, name);
        let mut list = Vec::with_capacity(parameters.len());
        for (index, (parameter, arg)) in parameters.iter().zip(&slots).enumerate() {
            let Some(arg) = arg else { continue };
            let value = convert(parameter, &title(&labels, index), &arg.value, &find)?;
            list.push(Binding {
                name: labels[index].clone(),
                value,
                source: ValueSource::Given,
            });
        }
        for index in 0..list.len() {
            for target in targets(&list[index].value) {
                if !matches!(
                    list.get(target).map(|binding| &binding.value),
                    Some(Value::Buffer(_))
                ) {
                    return Err(ValueError::WrongForm {
                        name: title(&labels, index),
                        what: format!(
                            "& wants an argument with a buffer of its own, {} has none",
                            title(&labels, target)
                        ),
                    });
                }
            }
        }
        Ok(Bindings { list })
    }

    /// The index of the argument that answers to a name: its own, its label, `argN` or `N`.
    pub fn find(&self, name: &str) -> Result<usize, ValueError> {
        let labels: Vec<Option<String>> = self
            .list
            .iter()
            .map(|binding| binding.name.clone())
            .collect();
        find(&labels, name)
    }

    /// The argument's name for people.
    pub fn title(&self, index: usize) -> String {
        self.list
            .get(index)
            .and_then(|binding| binding.name.clone())
            .unwrap_or_else(|| format!("arg{index}"))
    }

    /// Bytes of dynamic LDS that `lds[…]` values ask for, by argument.
    pub fn lds(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.list
            .iter()
            .enumerate()
            .filter_map(|(index, binding)| match binding.value {
                Value::Lds(bytes) => Some((index, bytes)),
                _ => None,
            })
    }
}

/// The parameters as lines for a message: name, kind, size, offset.
pub fn parameter_list(parameters: &[Parameter]) -> String {
    let line = |(index, parameter): (usize, &Parameter)| {
        let name = parameter.name.as_deref().unwrap_or("-");
        let ty = parameter
            .ty
            .or(parameter.pointee)
            .map(|ty| format!(" {ty}"))
            .unwrap_or_default();
        format!(
            "  {index}: {name} {}{ty}, {} bytes at offset {}",
            parameter.kind.name(),
            parameter.size_bytes,
            parameter.offset_bytes
        )
    };
    parameters
        .iter()
        .enumerate()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The index that `argN` or `N` says.
fn numbered(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("arg").unwrap_or(name);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        None
    } else {
        digits.parse().ok()
    }
}

fn find(labels: &[Option<String>], name: &str) -> Result<usize, ValueError> {
    let own = labels
        .iter()
        .position(|label| label.as_deref() == Some(name));
    own.or_else(|| numbered(name).filter(|index| *index < labels.len()))
        .ok_or_else(|| ValueError::UnknownArgument {
            name: name.to_owned(),
            known: (0..labels.len())
                .map(|index| title(labels, index))
                .collect(),
        })
}

fn title(labels: &[Option<String>], index: usize) -> String {
    labels
        .get(index)
        .and_then(Clone::clone)
        .unwrap_or_else(|| format!("arg{index}"))
}

/// The name an argument answers to: its own, else the label of the option placed there.
fn answer(parameters: &[Parameter], slots: &[Option<&ArgSpec>], index: usize) -> Option<String> {
    let own = parameters[index].name.clone();
    own.or_else(|| {
        let label = slots[index]?.name.clone()?;
        if numbered(&label).is_some() {
            None
        } else {
            Some(label)
        }
    })
}

/// Decides which option belongs to which parameter.
fn place<'a>(
    parameters: &[Parameter],
    args: &'a [ArgSpec],
) -> Result<Vec<Option<&'a ArgSpec>>, ValueError> {
    let names_known = parameters.iter().any(|parameter| parameter.name.is_some());
    let own: Vec<Option<String>> = parameters
        .iter()
        .map(|parameter| parameter.name.clone())
        .collect();
    let mut slots: Vec<Option<&ArgSpec>> = vec![None; parameters.len()];
    let mut positional = Vec::new();
    for arg in args {
        // Where no names are known, a NAME other than argN and N only labels the argument.
        let placed = arg
            .name
            .as_deref()
            .filter(|name| names_known || numbered(name).is_some());
        let Some(name) = placed else {
            positional.push(arg);
            continue;
        };
        let index = find(&own, name)?;
        if slots[index].replace(arg).is_some() {
            return Err(ValueError::Duplicate {
                name: title(&own, index),
            });
        }
    }
    let mut free = (0..parameters.len())
        .filter(|index| slots[*index].is_none())
        .collect::<Vec<_>>()
        .into_iter();
    for arg in positional {
        let index = free.next().ok_or_else(|| ValueError::TooMany {
            given: args.len(),
            wanted: parameters.len(),
            list: parameter_list(parameters),
        })?;
        slots[index] = Some(arg);
    }
    let missing: Vec<String> = (0..parameters.len())
        .filter(|index| slots[*index].is_none())
        .map(|index| title(&own, index))
        .collect();
    if !missing.is_empty() {
        return Err(ValueError::Missing {
            missing,
            wanted: parameters.len(),
            list: parameter_list(parameters),
        });
    }
    let mut labels: Vec<&str> = args.iter().filter_map(|arg| arg.name.as_deref()).collect();
    labels.sort_unstable();
    if let Some(pair) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ValueError::DuplicateLabel {
            name: pair[0].to_owned(),
        });
    }
    Ok(slots)
}

fn targets(value: &Value) -> Vec<usize> {
    match value {
        Value::Reference { target, .. } => vec![*target],
        Value::Bytes { references, .. } => {
            references.iter().map(|(_, target, _)| *target).collect()
        }
        _ => Vec::new(),
    }
}

fn convert(
    parameter: &Parameter,
    name: &str,
    spec: &ValueSpec,
    find: &dyn Fn(&str) -> Result<usize, ValueError>,
) -> Result<Value, ValueError> {
    let wrong = |what: String| ValueError::WrongForm {
        name: name.to_owned(),
        what,
    };
    let size = parameter.size_bytes;
    match (parameter.kind, spec) {
        (ParameterKind::Opaque(kind), _) => {
            Err(wrong(format!("no value can be given for a {kind}")))
        }
        (ParameterKind::DynamicLds, ValueSpec::Lds(bytes)) => Ok(Value::Lds(*bytes)),
        (ParameterKind::DynamicLds, _) => {
            Err(wrong("it is dynamic LDS: give lds[BYTES]".to_owned()))
        }
        (_, ValueSpec::Lds(_)) => Err(wrong(format!(
            "lds[…] is for dynamic LDS, this is a {} of {size} bytes",
            parameter.kind.name()
        ))),
        (
            ParameterKind::Pointer,
            ValueSpec::Scalar {
                ty: Some(ScalarType::U64),
                literal,
            },
        ) => Ok(Value::Address(literal.to_scalar(ScalarType::U64)?.bits)),
        (ParameterKind::Pointer, ValueSpec::Scalar { literal, .. }) => Err(wrong(format!(
            "it is a pointer, {literal} is a number: give a buffer such as f32[1024]:iota, null, or u64:ADDRESS"
        ))),
        (ParameterKind::Value, ValueSpec::Scalar { ty, literal }) => {
            let (value, assumed) = match ty.or(parameter.ty) {
                Some(ty) => (literal.to_scalar(ty)?, false),
                None => (literal.to_assumed_scalar(size)?, true),
            };
            if value.ty.size_bytes() as u64 != size {
                return Err(wrong(format!(
                    "{} has {} bytes, the argument {size}",
                    value.ty,
                    value.ty.size_bytes()
                )));
            }
            Ok(Value::Scalar { value, assumed })
        }
        (
            ParameterKind::Value,
            ValueSpec::Buffer(BufferSpec {
                ty: None,
                count: None,
                init: Init::File(path),
            }),
        ) => {
            let bytes = std::fs::read(path).map_err(|source| ValueError::File {
                action: "read",
                path: path.clone(),
                source,
            })?;
            sized(bytes, size, name)
        }
        (ParameterKind::Value, ValueSpec::Bytes(bytes)) => sized(bytes.clone(), size, name),
        (ParameterKind::Value, ValueSpec::Struct(spec)) => structure(spec, size, name, find),
        (ParameterKind::Pointer, ValueSpec::Bytes(_) | ValueSpec::Struct(_)) => Err(wrong(
            "it is a pointer: give a buffer, null or &NAME".to_owned(),
        )),
        (ParameterKind::Value, _) if size != 8 => Err(wrong(format!(
            "it is a value of {size} bytes, an address has 8"
        ))),
        (_, ValueSpec::Null) => Ok(Value::Null),
        (_, ValueSpec::Reference(Reference { name, offset_bytes })) => Ok(Value::Reference {
            target: find(name)?,
            offset_bytes: *offset_bytes,
        }),
        (_, ValueSpec::Buffer(spec)) => buffer(spec).map(Value::Buffer),
    }
}

/// Makes the buffer that a specification describes.
fn buffer(spec: &BufferSpec) -> Result<Buffer, ValueError> {
    match (spec.ty, &spec.init) {
        (ty, Init::File(path)) => Buffer::from_file(ty, spec.count, path),
        (Some(ty), init) => Buffer::new(ty, spec.count, init),
        (None, init) => Err(ValueError::Malformed {
            text: format!("{init:?}"),
            wanted: "a buffer: its type must be said".to_owned(),
        }),
    }
}

fn sized(bytes: Vec<u8>, size: u64, name: &str) -> Result<Value, ValueError> {
    if bytes.len() as u64 != size {
        return Err(ValueError::WrongForm {
            name: name.to_owned(),
            what: format!("{} bytes are given, it has {size}", bytes.len()),
        });
    }
    Ok(Value::Bytes {
        bytes,
        references: Vec::new(),
    })
}

fn structure(
    spec: &StructSpec,
    size: u64,
    name: &str,
    find: &dyn Fn(&str) -> Result<usize, ValueError>,
) -> Result<Value, ValueError> {
    let Value::Bytes { bytes, .. } = sized(spec.bytes.clone(), size, name)? else {
        return Ok(Value::Null);
    };
    let references = spec
        .references
        .iter()
        .map(|(at, reference)| Ok((*at, find(&reference.name)?, reference.offset_bytes)));
    Ok(Value::Bytes {
        bytes,
        references: references.collect::<Result<_, ValueError>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(size_bytes: u64) -> Parameter {
        Parameter {
            name: None,
            kind: ParameterKind::Value,
            size_bytes,
            offset_bytes: 0,
            ty: None,
            pointee: None,
            aggregate: false,
        }
    }

    fn pointer() -> Parameter {
        Parameter {
            kind: ParameterKind::Pointer,
            ..value(8)
        }
    }

    fn named(name: &str, parameter: Parameter) -> Parameter {
        Parameter {
            name: Some(name.to_owned()),
            ..parameter
        }
    }

    fn bind(parameters: &[Parameter], args: &[&str]) -> Result<Bindings, ValueError> {
        let args: Vec<ArgSpec> = args
            .iter()
            .map(|arg| ArgSpec::parse(arg).unwrap())
            .collect();
        Bindings::bind(parameters, &args)
    }

    fn scalars(bindings: &Bindings) -> Vec<String> {
        let text = |binding: &Binding| match &binding.value {
            Value::Scalar { value, assumed } => {
                format!("{}:{value}{}", value.ty, if *assumed { "?" } else { "" })
            }
            other => format!("{other:?}"),
        };
        bindings.list.iter().map(text).collect()
    }

    #[test]
    fn known_names_place_and_the_rest_fills_in_order() {
        let parameters = [
            named("a", value(4)),
            named("b", value(4)),
            named("c", value(4)),
        ];
        let bound = bind(&parameters, &["c=3", "1", "2"]).unwrap();
        assert_eq!(scalars(&bound), ["i32:1?", "i32:2?", "i32:3?"]);
        let bound = bind(&parameters, &["9", "a=1", "arg2=3"]).unwrap();
        assert_eq!(scalars(&bound), ["i32:1?", "i32:9?", "i32:3?"]);
        let bound = bind(&parameters, &["1=2", "1", "3"]).unwrap();
        assert_eq!(scalars(&bound), ["i32:1?", "i32:2?", "i32:3?"]);
        assert!(matches!(
            bind(&parameters, &["d=1", "2", "3"]),
            Err(ValueError::UnknownArgument { .. })
        ));
    }

    #[test]
    fn unknown_names_label_by_position() {
        let parameters = [value(4), value(4), value(4)];
        let bound = bind(&parameters, &["n=1", "m=2", "3"]).unwrap();
        assert_eq!(scalars(&bound), ["i32:1?", "i32:2?", "i32:3?"]);
        assert_eq!(bound.find("m").unwrap(), 1);
        assert_eq!(bound.find("arg2").unwrap(), 2);
        assert_eq!(bound.find("0").unwrap(), 0);
        assert!(
            bound.find("k").is_err() && bound.find("arg3").is_err() && bound.find("arg").is_err()
        );
        let bound = bind(&parameters, &["arg2=3", "n=1", "2"]).unwrap();
        assert_eq!(scalars(&bound), ["i32:1?", "i32:2?", "i32:3?"]);
        assert_eq!(bound.find("n").unwrap(), 0);
    }

    #[test]
    fn too_many_too_few_and_twice() {
        let parameters = [named("a", value(4)), named("b", value(4))];
        assert!(matches!(
            bind(&parameters, &["1", "2", "3"]),
            Err(ValueError::TooMany {
                given: 3,
                wanted: 2,
                ..
            })
        ));
        let missing = bind(&parameters, &["1"]).unwrap_err();
        assert!(
            missing.to_string().contains("1 of 2")
                && missing.hint().unwrap().contains("1: b value, 4 bytes")
        );
        assert!(matches!(
            bind(&parameters, &["a=1", "0=2"]),
            Err(ValueError::Duplicate { .. })
        ));
        assert!(matches!(
            bind(&[value(4), value(4)], &["x=1", "x=2"]),
            Err(ValueError::DuplicateLabel { .. })
        ));
    }

    #[test]
    fn literals_take_the_type_that_is_known() {
        let float = Parameter {
            ty: Some(ScalarType::F32),
            ..value(4)
        };
        let short = Parameter {
            ty: Some(ScalarType::I16),
            ..value(2)
        };
        assert_eq!(
            scalars(&bind(&[float.clone(), short.clone()], &["2", "-1"]).unwrap()),
            ["f32:2.0", "i16:-1"]
        );
        assert!(matches!(
            bind(std::slice::from_ref(&short), &["40000"]),
            Err(ValueError::OutOfRange { .. })
        ));
        assert!(matches!(
            bind(&[short], &["1.5"]),
            Err(ValueError::NotAnInteger { .. })
        ));
        // a type on the command line wins, but the size must be the argument's
        assert_eq!(
            scalars(&bind(std::slice::from_ref(&float), &["u32:7"]).unwrap()),
            ["u32:7"]
        );
        assert!(matches!(
            bind(&[float], &["f64:1"]),
            Err(ValueError::WrongForm { .. })
        ));
        assert!(bind(&[value(1)], &["300"]).is_err());
        assert_eq!(scalars(&bind(&[value(4)], &["1.5"]).unwrap()), ["f32:1.5?"]);
    }

    #[test]
    fn pointers_take_buffers_null_addresses_and_references() {
        let parameters = [pointer(), pointer(), pointer(), pointer()];
        let bound = bind(
            &parameters,
            &["x=f32[4]:ones", "null", "&x+8", "u64:0xdead0000"],
        )
        .unwrap();
        assert!(matches!(&bound.list[0].value, Value::Buffer(buffer) if buffer.size_bytes() == 16));
        assert!(matches!(bound.list[1].value, Value::Null));
        assert!(matches!(
            bound.list[2].value,
            Value::Reference {
                target: 0,
                offset_bytes: 8
            }
        ));
        assert!(matches!(bound.list[3].value, Value::Address(0xdead_0000)));
        assert!(matches!(
            bind(&[pointer()], &["42"]),
            Err(ValueError::WrongForm { .. })
        ));
        assert!(matches!(
            bind(&[pointer(), pointer()], &["null", "&0"]),
            Err(ValueError::WrongForm { .. })
        ));
        assert!(matches!(
            bind(&[pointer()], &["&y"]),
            Err(ValueError::UnknownArgument { .. })
        ));
        assert!(matches!(
            bind(&[pointer()], &["lds[4]"]),
            Err(ValueError::WrongForm { .. })
        ));
    }

    #[test]
    fn references_may_point_forwards() {
        let bound = bind(
            &[named("p", pointer()), named("q", pointer())],
            &["&q", "u8[4]"],
        )
        .unwrap();
        assert!(matches!(
            bound.list[0].value,
            Value::Reference {
                target: 1,
                offset_bytes: 0
            }
        ));
    }

    #[test]
    fn by_value_structs_must_have_the_size() {
        let parameters = [value(16), named("buf", pointer())];
        let bound = bind(&parameters, &["{i32:1,&buf+4}", "u8[8]"]).unwrap();
        assert!(
            matches!(&bound.list[0].value, Value::Bytes { references, .. } if references == &[(8, 1, 4)])
        );
        assert!(bind(&[value(16)], &["hex:000102030405060708090a0b0c0d0e0f"]).is_ok());
        assert!(matches!(
            bind(&[value(16)], &["hex:00"]),
            Err(ValueError::WrongForm { .. })
        ));
        assert!(matches!(
            bind(&[value(16)], &["{i32:1}"]),
            Err(ValueError::WrongForm { .. })
        ));
        assert!(matches!(
            bind(&[value(16)], &["f32[4]"]),
            Err(ValueError::WrongForm { .. })
        ));
        assert!(bind(&[value(16)], &["1"]).is_err());
    }

    #[test]
    fn dynamic_lds_takes_only_lds() {
        let lds = Parameter {
            kind: ParameterKind::DynamicLds,
            ..value(4)
        };
        let bound = bind(&[lds.clone(), lds.clone()], &["lds[64]", "lds[1K]"]).unwrap();
        assert_eq!(bound.lds().collect::<Vec<_>>(), [(0, 64), (1, 1024)]);
        assert!(matches!(
            bind(&[lds], &["64"]),
            Err(ValueError::WrongForm { .. })
        ));
        let image = Parameter {
            kind: ParameterKind::Opaque("image"),
            ..value(8)
        };
        assert!(matches!(
            bind(&[image], &["null"]),
            Err(ValueError::WrongForm { .. })
        ));
    }
}
