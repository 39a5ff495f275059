//! Bound arguments as the runtime takes them: buffers made and filled, addresses put in place.
//!
//! Knows: values and the runtime's buffers. Must not know: options, reports.
use crate::cli::failure::{Exit, Failure};
use crate::cli::values::{Bindings, Buffer as Content, Parameter, Value};
use crate::loader::DeviceAddr;
use crate::runtime::{Agent, Argument, Buffer, Guard, PoolKind};

/// Bytes that are made or compared at a time.
pub(super) const CHUNK_BYTES: u64 = 1 << 20;

/// The buffers of a launch, by argument; `None` where an argument has none of its own.
#[derive(Debug)]
pub(super) struct Buffers(Vec<Option<Buffer>>);

impl Buffers {
    /// Allocates a buffer for every argument that has one; each is known to fault reports by its argument.
    /// `guard` says how each is set apart.
    pub(super) fn allocate(
        agent: &Agent,
        bindings: &Bindings,
        guard: impl Fn(usize) -> Option<Guard>,
    ) -> Result<Buffers, Failure> {
        let pool = agent.pool(PoolKind::CoarseGrained);
        let allocate = |(index, binding): (usize, &crate::cli::values::Binding)| {
            let Value::Buffer(content) = &binding.value else {
                return Ok(None);
            };
            let name = match &binding.name {
                Some(name) => format!("argument {index} ({name})"),
                None => format!("argument {index}"),
            };
            // A buffer of no elements still has an address.
            let size = content.size_bytes().max(1);
            pool.allocate_guarded(size, &name, guard(index))
                .map(Some)
                .map_err(|error| {
                    let failure = Failure::from(error);
                    Failure {
                        message: format!("{name}, {size} bytes: {}", failure.message),
                        ..failure
                    }
                })
        };
        Ok(Buffers(
            bindings
                .list
                .iter()
                .enumerate()
                .map(allocate)
                .collect::<Result<_, Failure>>()?,
        ))
    }

    /// The buffer of an argument.
    pub(super) fn get(&self, index: usize) -> Option<&Buffer> {
        self.0.get(index)?.as_ref()
    }

    /// Fills every buffer with its initial content.
    pub(super) fn initialise(&self, bindings: &Bindings) -> Result<(), Failure> {
        for (buffer, binding) in self.0.iter().zip(&bindings.list) {
            if let (Some(buffer), Value::Buffer(content)) = (buffer, &binding.value) {
                write_content(buffer, content)?;
            }
        }
        Ok(())
    }

    fn address(&self, index: usize) -> u64 {
        self.get(index).map_or(0, |buffer| buffer.address().get())
    }
}

/// Writes a content into a buffer, a chunk at a time.
pub(in crate::cli) fn write_content(buffer: &Buffer, content: &Content) -> Result<(), Failure> {
    let size = content.ty().size_bytes() as u64;
    let per_chunk = CHUNK_BYTES / size;
    let mut first = 0;
    while first < content.count() {
        let count = per_chunk.min(content.count() - first);
        let mut bytes = vec![0; (count * size) as usize];
        content.write(first, &mut bytes);
        buffer.write(first * size, &bytes)?;
        first += count;
    }
    Ok(())
}

/// The bytes of arguments by value, which [`list`] borrows.
pub(super) fn values(
    bindings: &Bindings,
    parameters: &[Parameter],
    buffers: &Buffers,
) -> Vec<Vec<u8>> {
    let bytes = |(binding, parameter): (&crate::cli::values::Binding, &Parameter)| {
        let mut bytes = match &binding.value {
            Value::Scalar { value, .. } => {
                let mut bytes = Vec::new();
                value.write_to(&mut bytes);
                bytes
            }
            Value::Bytes { bytes, references } => {
                let mut bytes = bytes.clone();
                for (at, target, offset) in references {
                    let address = buffers.address(*target).wrapping_add(*offset);
                    let at = *at as usize;
                    if let Some(slot) = bytes.get_mut(at..at + 8) {
                        slot.copy_from_slice(&address.to_le_bytes());
                    }
                }
                bytes
            }
            Value::Buffer(_)
            | Value::Null
            | Value::Address(_)
            | Value::Reference { .. }
            | Value::Lds(_) => Vec::new(),
        };
        bytes.resize(parameter.size_bytes as usize, 0);
        bytes
    };
    bindings.list.iter().zip(parameters).map(bytes).collect()
}

/// The arguments in the kernel's order.
pub(super) fn list<'a>(
    bindings: &Bindings,
    values: &'a [Vec<u8>],
    buffers: &'a Buffers,
) -> Result<Vec<Argument<'a>>, Failure> {
    let argument =
        |(index, (binding, bytes)): (usize, (&crate::cli::values::Binding, &'a Vec<u8>))| {
            Ok(match &binding.value {
                Value::Scalar { .. } | Value::Bytes { .. } => Argument::Value(bytes),
                Value::Buffer(_) => match buffers.get(index) {
                    Some(buffer) => Argument::Buffer(buffer, 0),
                    None => Argument::Address(DeviceAddr::NULL),
                },
                Value::Null => Argument::Address(DeviceAddr::NULL),
                Value::Address(address) => Argument::Address(DeviceAddr(*address)),
                Value::Reference {
                    target,
                    offset_bytes,
                } => Argument::Address(DeviceAddr(
                    buffers.address(*target).wrapping_add(*offset_bytes),
                )),
                Value::Lds(bytes) => Argument::DynamicLds(lds_bytes(*bytes)?),
            })
        };
    bindings
        .list
        .iter()
        .zip(values)
        .enumerate()
        .map(argument)
        .collect()
}

/// A size of dynamic LDS as a packet holds it.
pub(super) fn lds_bytes(bytes: u64) -> Result<u32, Failure> {
    u32::try_from(bytes).map_err(|_too_large| {
        Failure::new(
            Exit::Refused,
            "lds",
            format!(
                "{bytes} bytes of dynamic LDS; a packet holds at most {}",
                u32::MAX
            ),
        )
        .status(crate::loader::HsaStatus::ERROR_INVALID_ALLOCATION)
    })
}

/// The dynamic LDS of a launch: `--dyn-lds`, which goes to the first dynamic pointer that has no size, and must be the
/// sum where the arguments say sizes.
pub(super) fn dynamic_lds(bindings: &Bindings, given: Option<u64>) -> Result<u32, Failure> {
    let mut sizes = bindings.lds().map(|(_, bytes)| bytes).peekable();
    let is_said = sizes.peek().is_some();
    let sum = sizes.try_fold(0_u64, u64::checked_add);
    let sum =
        sum.ok_or_else(|| Failure::usage("the sizes of lds[…] are more than can be added"))?;
    match given {
        Some(given) if is_said && given != sum => Err(Failure::usage(format!(
            "--dyn-lds says {given} bytes, the lds[…] arguments {sum} in all"
        ))),
        Some(given) => lds_bytes(given),
        // The runtime lays out the sized ones itself, padding included.
        None => Ok(0),
    }
}
