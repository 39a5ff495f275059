//! Kernel arguments as the metadata describes them.
//!
//! Knows: the keys of AMDGPUUsage, "Code Object V3 Kernel Argument Metadata Map" and its successors. Must not know:
//! how values are made or placed.

use super::{Fields, MetadataError, Value};

macro_rules! value_kinds {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// `.value_kind`: what an argument is. An open space: unknown kinds are kept by name.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ValueKind {
            $($(#[$doc])* $variant,)*
            /// A kind that this table does not have.
            Other(String),
        }

        impl ValueKind {
            pub(super) fn parse(name: String) -> Self {
                match name.as_str() {
                    $($name => Self::$variant,)*
                    _ => Self::Other(name),
                }
            }

            /// The metadata's own word.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }
    };
}

value_kinds! {
    /// The value itself.
    ByValue "by_value",
    /// A pointer to global memory.
    GlobalBuffer "global_buffer",
    /// A pointer to dynamic LDS: 4 bytes, an offset in the group segment.
    DynamicSharedPointer "dynamic_shared_pointer",
    /// A sampler descriptor.
    Sampler "sampler",
    /// An image descriptor.
    Image "image",
    /// An OpenCL pipe.
    Pipe "pipe",
    /// An OpenCL device queue.
    Queue "queue",
    /// Offset of the global ID in x.
    HiddenGlobalOffsetX "hidden_global_offset_x",
    /// Offset of the global ID in y.
    HiddenGlobalOffsetY "hidden_global_offset_y",
    /// Offset of the global ID in z.
    HiddenGlobalOffsetZ "hidden_global_offset_z",
    /// Nothing: leave zero.
    HiddenNone "hidden_none",
    /// The buffer of OpenCL's printf.
    HiddenPrintfBuffer "hidden_printf_buffer",
    /// The hostcall buffer.
    HiddenHostcallBuffer "hidden_hostcall_buffer",
    /// The default device queue.
    HiddenDefaultQueue "hidden_default_queue",
    /// The completion action of device enqueue.
    HiddenCompletionAction "hidden_completion_action",
    /// State of a multi-grid launch.
    HiddenMultigridSyncArg "hidden_multigrid_sync_arg",
    /// The device heap.
    HiddenHeapV1 "hidden_heap_v1",
    /// Full workgroups in x.
    HiddenBlockCountX "hidden_block_count_x",
    /// Full workgroups in y.
    HiddenBlockCountY "hidden_block_count_y",
    /// Full workgroups in z.
    HiddenBlockCountZ "hidden_block_count_z",
    /// Workgroup size in x.
    HiddenGroupSizeX "hidden_group_size_x",
    /// Workgroup size in y.
    HiddenGroupSizeY "hidden_group_size_y",
    /// Workgroup size in z.
    HiddenGroupSizeZ "hidden_group_size_z",
    /// Size in x of the partial workgroup, 0 if there is none.
    HiddenRemainderX "hidden_remainder_x",
    /// Size in y of the partial workgroup, 0 if there is none.
    HiddenRemainderY "hidden_remainder_y",
    /// Size in z of the partial workgroup, 0 if there is none.
    HiddenRemainderZ "hidden_remainder_z",
    /// Dimensions of the grid.
    HiddenGridDims "hidden_grid_dims",
    /// Bytes of dynamic LDS.
    HiddenDynamicLdsSize "hidden_dynamic_lds_size",
    /// High half of the scratch aperture.
    HiddenPrivateBase "hidden_private_base",
    /// High half of the LDS aperture.
    HiddenSharedBase "hidden_shared_base",
    /// The queue's address.
    HiddenQueuePtr "hidden_queue_ptr",
}

impl ValueKind {
    /// True for what the runtime fills, unknown hidden kinds included.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.as_str().starts_with("hidden_")
    }
}

impl std::fmt::Display for ValueKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// `.address_space` of a pointer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressSpace {
    /// Scratch.
    Private,
    /// Global memory.
    Global,
    /// Global memory that kernels only read.
    Constant,
    /// LDS.
    Local,
    /// Any of them, told apart by aperture.
    Generic,
    /// Global data share.
    Region,
    /// Any other word.
    Other(String),
}

impl AddressSpace {
    pub(super) fn parse(name: String) -> Self {
        match name.as_str() {
            "private" => Self::Private,
            "global" => Self::Global,
            "constant" => Self::Constant,
            "local" => Self::Local,
            "generic" => Self::Generic,
            "region" => Self::Region,
            _ => Self::Other(name),
        }
    }

    /// The metadata's own word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Private => "private",
            Self::Global => "global",
            Self::Constant => "constant",
            Self::Local => "local",
            Self::Generic => "generic",
            Self::Region => "region",
            Self::Other(name) => name,
        }
    }
}

/// `.access` and `.actual_access`: what a kernel may do, or does, with a buffer or image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// Reads only.
    ReadOnly,
    /// Writes only.
    WriteOnly,
    /// Both.
    ReadWrite,
    /// Any other word.
    Other(String),
}

impl Access {
    pub(super) fn parse(name: String) -> Self {
        match name.as_str() {
            "read_only" => Self::ReadOnly,
            "write_only" => Self::WriteOnly,
            "read_write" => Self::ReadWrite,
            _ => Self::Other(name),
        }
    }

    /// The metadata's own word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::ReadOnly => "read_only",
            Self::WriteOnly => "write_only",
            Self::ReadWrite => "read_write",
            Self::Other(name) => name,
        }
    }
}

/// One argument. Offset and size are in bytes of the kernarg segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgMetadata {
    /// `.name`; compilers leave it out unless asked.
    pub name: Option<String>,
    /// `.type_name`.
    pub type_name: Option<String>,
    /// `.offset`.
    pub offset: u32,
    /// `.size`.
    pub size: u32,
    /// `.value_kind`.
    pub kind: ValueKind,
    /// `.value_type` (V3, deprecated): `f32`, `i8` and so on.
    pub value_type: Option<String>,
    /// `.pointee_align` of a pointer to dynamic LDS.
    pub pointee_align: Option<u32>,
    /// `.address_space` of a pointer.
    pub address_space: Option<AddressSpace>,
    /// `.access`.
    pub access: Option<Access>,
    /// `.actual_access`.
    pub actual_access: Option<Access>,
    /// `.is_const`.
    pub is_const: bool,
    /// `.is_restrict`.
    pub is_restrict: bool,
    /// `.is_volatile`.
    pub is_volatile: bool,
    /// `.is_pipe`.
    pub is_pipe: bool,
    /// Keys that are not listed above.
    pub unknown: Vec<(String, Value)>,
}

impl ArgMetadata {
    pub(super) fn parse(value: Value, path: &str) -> Result<Self, MetadataError> {
        let mut fields = Fields::new(value, path)?;
        let missing = |key| MetadataError::Missing {
            path: path.to_owned(),
            key,
        };
        Ok(Self {
            name: fields.string(".name")?,
            type_name: fields.string(".type_name")?,
            offset: fields.u32(".offset")?.ok_or_else(|| missing(".offset"))?,
            size: fields.u32(".size")?.ok_or_else(|| missing(".size"))?,
            kind: fields
                .string(".value_kind")?
                .map(ValueKind::parse)
                .ok_or_else(|| missing(".value_kind"))?,
            value_type: fields.string(".value_type")?,
            pointee_align: fields.u32(".pointee_align")?,
            address_space: fields.string(".address_space")?.map(AddressSpace::parse),
            access: fields.string(".access")?.map(Access::parse),
            actual_access: fields.string(".actual_access")?.map(Access::parse),
            is_const: fields.boolean(".is_const")?.unwrap_or(false),
            is_restrict: fields.boolean(".is_restrict")?.unwrap_or(false),
            is_volatile: fields.boolean(".is_volatile")?.unwrap_or(false),
            is_pipe: fields.boolean(".is_pipe")?.unwrap_or(false),
            unknown: fields.entries,
        })
    }
}
