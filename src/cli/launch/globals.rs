//! `--set-global` and `--print-global`: variables of the code object before and after a launch.
//!
//! Knows: variables, their DWARF types. Must not know: kernels.
use super::report::{GlobalView, PrintView};
use crate::cli::failure::Failure;
use crate::cli::kernels::demangle;
use crate::cli::parameters;
use crate::cli::values::{Buffer, BufferSpec, Init, Scalar, ScalarType, ValueSpec};
use crate::executable::{LoadedCodeObject, VariableSymbol};
use crate::loader::DeviceAddr;
use crate::runtime::LoadedExecutable;

/// Elements printed of a variable without a type.
const MOST_BYTES: u64 = 64;

/// What the writable segments hold before the first launch, to put it back before the next one.
#[derive(Debug)]
pub(super) struct Pristine(Vec<(DeviceAddr, Vec<u8>)>);

impl Pristine {
    /// Reads the writable segments of every code object.
    pub(super) fn new(executable: &LoadedExecutable) -> Result<Pristine, Failure> {
        let mut segments = Vec::new();
        for (address, segment) in executable
            .frozen()
            .objects()
            .iter()
            .flat_map(LoadedCodeObject::segments)
        {
            if segment.flags.writable() {
                let mut bytes = vec![0; segment.mem_size as usize];
                executable
                    .read(address, &mut bytes)
                    .map_err(|error| lost("segment", &error))?;
                segments.push((address, bytes));
            }
        }
        Ok(Pristine(segments))
    }

    /// Writes them back.
    pub(super) fn restore(&self, executable: &LoadedExecutable) -> Result<(), Failure> {
        let restore = |(address, bytes): &(DeviceAddr, Vec<u8>)| executable.write(*address, bytes);
        self.0
            .iter()
            .try_for_each(restore)
            .map_err(|error| lost("segment", &error))
    }
}

/// A variable and what it is set to before every launch.
#[derive(Debug)]
pub(super) struct Setting {
    variable: VariableSymbol,
    bytes: Vec<u8>,
    text: String,
}

impl Setting {
    /// Reads `SYM=VALUE` for a loaded executable.
    pub(super) fn new(word: &str, executable: &LoadedExecutable) -> Result<Setting, Failure> {
        let (name, text) = word
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{word}` is not SYM=VALUE")))?;
        let variable = find(executable, name)?;
        let bytes = match ValueSpec::parse(text)? {
            ValueSpec::Scalar { ty, literal } => {
                let known = ty.or_else(|| Some(type_of(executable, &variable)?.0));
                let scalar = match known {
                    Some(ty) => literal.to_scalar(ty)?,
                    None => literal.to_assumed_scalar(variable.size)?,
                };
                let mut bytes = Vec::new();
                scalar.write_to(&mut bytes);
                bytes
            }
            ValueSpec::Buffer(BufferSpec { ty, count, init }) => {
                let buffer = match (ty, &init) {
                    (ty, Init::File(path)) => Buffer::from_file(ty, count, path)?,
                    (Some(ty), init) => Buffer::new(ty, count, init)?,
                    (None, _) => {
                        return Err(Failure::usage(format!(
                            "`{text}`: the element type must be said"
                        )));
                    }
                };
                too_large(&variable, buffer.size_bytes())?;
                let mut bytes = vec![0; buffer.size_bytes() as usize];
                buffer.write(0, &mut bytes);
                bytes
            }
            ValueSpec::Bytes(bytes) => bytes,
            ValueSpec::Struct(spec) if spec.references.is_empty() => spec.bytes,
            _ => {
                return Err(Failure::usage(format!(
                    "`{text}`: a global takes a scalar, a buffer or a struct"
                )));
            }
        };
        too_large(&variable, bytes.len() as u64)?;
        Ok(Setting {
            variable,
            bytes,
            text: text.to_owned(),
        })
    }

    /// Writes the value.
    pub(super) fn apply(&self, executable: &LoadedExecutable) -> Result<(), Failure> {
        executable
            .write(self.variable.address, &self.bytes)
            .map_err(|error| lost(&self.variable.name, &error))
    }

    /// For the report.
    pub(super) fn view(&self) -> GlobalView {
        GlobalView {
            name: self.variable.name.clone(),
            address: self.variable.address.get(),
            size_bytes: self.variable.size,
            value: self.text.clone(),
        }
    }
}

fn too_large(variable: &VariableSymbol, bytes: u64) -> Result<(), Failure> {
    if bytes > variable.size {
        return Err(Failure::usage(format!(
            "global {} has {} bytes, {bytes} are given",
            variable.name, variable.size
        )));
    }
    Ok(())
}

fn lost(name: &str, error: &crate::executable::SegmentMemoryError) -> Failure {
    Failure::new(
        crate::cli::failure::Exit::Environment,
        "driver",
        format!("global {name}: {error}"),
    )
    .status(error.status())
}

/// A variable by its symbol or its C++ name.
fn find(executable: &LoadedExecutable, name: &str) -> Result<VariableSymbol, Failure> {
    let variables = executable.frozen().variables();
    let by_cpp = || {
        variables
            .iter()
            .find(|variable| demangle(&variable.name).as_deref() == Some(name))
    };
    executable
        .variable(name)
        .or_else(by_cpp)
        .cloned()
        .ok_or_else(|| {
            let known: Vec<&str> = variables
                .iter()
                .map(|variable| variable.name.as_str())
                .collect();
            let failure = Failure::new(
                crate::cli::failure::Exit::Usage,
                "no_such_global",
                format!("no global `{name}`"),
            );
            if known.is_empty() {
                failure
            } else {
                failure.hint(format!("the globals are {}", known.join(", ")))
            }
        })
}

/// The scalar type and count of a variable, from DWARF.
fn type_of(executable: &LoadedExecutable, variable: &VariableSymbol) -> Option<(ScalarType, u64)> {
    let object = executable.frozen().objects().get(variable.object)?.object();
    parameters::of_variable(&object.variable_type(&variable.name)?)
}

/// What `--print-global SYM[:TYPE]` asks for.
#[derive(Debug)]
pub(super) struct Printing {
    variable: VariableSymbol,
    ty: ScalarType,
    count: u64,
}

impl Printing {
    /// Reads the word for a loaded executable.
    pub(super) fn new(word: &str, executable: &LoadedExecutable) -> Result<Printing, Failure> {
        // C++ names hold colons themselves, so only a known type behind the last one counts.
        let typed = word
            .rsplit_once(':')
            .and_then(|(name, ty)| Some((name, ScalarType::from_name(ty)?)));
        let (name, ty) = typed.map_or((word, None), |(name, ty)| (name, Some(ty)));
        let variable = find(executable, name)?;
        let (ty, count) = match ty {
            Some(ty) => (ty, variable.size / ty.size_bytes() as u64),
            None => type_of(executable, &variable)
                .unwrap_or((ScalarType::U8, variable.size.min(MOST_BYTES))),
        };
        Ok(Printing {
            variable,
            ty,
            count,
        })
    }

    /// Reads the variable as it is now.
    pub(super) fn read(&self, executable: &LoadedExecutable) -> Result<PrintView, Failure> {
        let size = self.ty.size_bytes();
        let mut bytes = vec![0; self.count as usize * size];
        executable
            .read(self.variable.address, &mut bytes)
            .map_err(|error| lost(&self.variable.name, &error))?;
        Ok(PrintView {
            name: self.variable.name.clone(),
            ty: self.ty.to_string(),
            count: self.count,
            values: bytes
                .chunks_exact(size)
                .filter_map(|bytes| Scalar::from_le_bytes(self.ty, bytes))
                .collect(),
        })
    }
}
