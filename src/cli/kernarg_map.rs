//! Every byte of a kernarg segment by name.
//!
//! Knows: the hidden arguments' block of each code object version (AMDGPUUsage, "Code Object V3 Kernel Argument
//! Metadata Map" and "Code Object V5 …"). Must not know: the values.
use crate::loader::{ArgMetadata, Kernel, Version};

/// A run of bytes with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Offset in the segment.
    pub offset_bytes: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// What it holds.
    pub kind: FieldKind,
    /// The argument's name or kind.
    pub name: String,
}

/// What a run of bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// An argument that the user gives; its index among those.
    Explicit(usize),
    /// An argument that the runtime fills.
    Hidden,
    /// A hidden argument that the kernel does not use; it stays zero.
    Unused,
    /// Nothing.
    Padding,
}

impl FieldKind {
    /// The word for reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            FieldKind::Explicit(_) => "explicit",
            FieldKind::Hidden => "hidden",
            FieldKind::Unused => "unused",
            FieldKind::Padding => "padding",
        }
    }
}

/// Offset in the block, size and value kind of V5's hidden arguments.
const BLOCK_V5: [(u64, u64, &str); 22] = [
    (0, 4, "hidden_block_count_x"),
    (4, 4, "hidden_block_count_y"),
    (8, 4, "hidden_block_count_z"),
    (12, 2, "hidden_group_size_x"),
    (14, 2, "hidden_group_size_y"),
    (16, 2, "hidden_group_size_z"),
    (18, 2, "hidden_remainder_x"),
    (20, 2, "hidden_remainder_y"),
    (22, 2, "hidden_remainder_z"),
    (40, 8, "hidden_global_offset_x"),
    (48, 8, "hidden_global_offset_y"),
    (56, 8, "hidden_global_offset_z"),
    (64, 2, "hidden_grid_dims"),
    (72, 8, "hidden_printf_buffer"),
    (80, 8, "hidden_hostcall_buffer"),
    (88, 8, "hidden_multigrid_sync_arg"),
    (96, 8, "hidden_heap_v1"),
    (104, 8, "hidden_default_queue"),
    (112, 8, "hidden_completion_action"),
    (120, 4, "hidden_dynamic_lds_size"),
    (192, 4, "hidden_private_base"),
    (196, 4, "hidden_shared_base"),
];
/// The queue pointer closes V5's block, which has 256 bytes.
const QUEUE_PTR_V5: (u64, u64, &str) = (200, 8, "hidden_queue_ptr");

/// Offset in the block, size and value kind of V3's and V4's hidden arguments; their block has 56 bytes.
const BLOCK_V3: [(u64, u64, &str); 7] = [
    (0, 8, "hidden_global_offset_x"),
    (8, 8, "hidden_global_offset_y"),
    (16, 8, "hidden_global_offset_z"),
    (24, 8, "hidden_printf_buffer or hidden_hostcall_buffer"),
    (32, 8, "hidden_default_queue"),
    (40, 8, "hidden_completion_action"),
    (48, 8, "hidden_multigrid_sync_arg"),
];

/// Names every byte of a kernel's segment, in order and without gaps; `names` are those of the explicit arguments.
pub(super) fn layout(version: Version, kernel: &Kernel, names: &[Option<String>]) -> Vec<Field> {
    let size = u64::from(kernel.kernarg_size());
    let Some(metadata) = &kernel.metadata else {
        return if size == 0 {
            Vec::new()
        } else {
            vec![padding(0, size)]
        };
    };
    let mut explicit = 0;
    let mut fields: Vec<Field> = metadata
        .args
        .iter()
        .map(|arg| {
            let hidden = arg.kind.is_hidden();
            let name = if hidden {
                arg.kind.to_string()
            } else {
                explicit += 1;
                names
                    .get(explicit - 1)
                    .and_then(Clone::clone)
                    .unwrap_or_else(|| format!("arg{}", explicit - 1))
            };
            Field {
                offset_bytes: u64::from(arg.offset),
                size_bytes: u64::from(arg.size),
                kind: if hidden {
                    FieldKind::Hidden
                } else {
                    FieldKind::Explicit(explicit - 1)
                },
                name,
            }
        })
        .collect();
    let block = block(version);
    if let Some(base) = block_base(&metadata.args, &block, size) {
        for (offset, size_bytes, name) in &block {
            let offset_bytes = base + offset;
            let taken = fields
                .iter()
                .any(|field| overlaps(field, offset_bytes, *size_bytes));
            if !taken && offset_bytes + size_bytes <= size {
                let name = (*name).to_owned();
                fields.push(Field {
                    offset_bytes,
                    size_bytes: *size_bytes,
                    kind: FieldKind::Unused,
                    name,
                });
            }
        }
    }
    fields.sort_by_key(|field| field.offset_bytes);
    fill_gaps(fields, size)
}

fn block(version: Version) -> Vec<(u64, u64, &'static str)> {
    if version >= Version::V5 {
        BLOCK_V5.into_iter().chain([QUEUE_PTR_V5]).collect()
    } else {
        BLOCK_V3.to_vec()
    }
}

/// Where the hidden block starts: from any hidden argument listed; a kernel that lists none has no block.
fn block_base(args: &[ArgMetadata], block: &[(u64, u64, &str)], size: u64) -> Option<u64> {
    args.iter()
        .filter(|arg| arg.kind.is_hidden())
        .find_map(|arg| {
            let (offset, ..) = block
                .iter()
                .find(|(_, _, name)| name.split(" or ").any(|name| name == arg.kind.as_str()))?;
            u64::from(arg.offset)
                .checked_sub(*offset)
                .filter(|base| *base < size)
        })
}

fn overlaps(field: &Field, offset: u64, size: u64) -> bool {
    field.offset_bytes < offset + size && offset < field.offset_bytes + field.size_bytes
}

fn padding(offset_bytes: u64, size_bytes: u64) -> Field {
    Field {
        offset_bytes,
        size_bytes,
        kind: FieldKind::Padding,
        name: "-".to_owned(),
    }
}

fn fill_gaps(fields: Vec<Field>, size: u64) -> Vec<Field> {
    let mut out = Vec::with_capacity(fields.len() * 2);
    let mut at = 0;
    for field in fields {
        if field.offset_bytes > at {
            out.push(padding(at, field.offset_bytes - at));
        }
        at = at.max(field.offset_bytes + field.size_bytes);
        out.push(field);
    }
    if size > at {
        out.push(padding(at, size - at));
    }
    out
}
