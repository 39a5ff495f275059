//! A code object as the result of `rocr load`: plain data that JSON and text are made from.
//!
//! Knows: parsed code objects. Must not know: devices, how results are printed.
use super::occupancy;
use crate::cli::kernarg_map::{self, Field};
use crate::cli::kernels::demangle;
use crate::cli::parameters::{self, NameSource};
use crate::loader::metadata::KernelKind;
use crate::loader::{ArgMetadata, CodeObject, Kernel, KernelCode, Note, Relocation, Segment};
use crate::runtime::LoadedExecutable;
use serde::Serialize;

/// A kernel.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KernelView {
    pub name: String,
    pub demangled: Option<String>,
    pub symbol: String,
    pub language: Option<String>,
    /// `normal`, `init` or `fini`, as the metadata says.
    pub kind: String,
    pub args: Vec<ArgView>,
    pub kernarg_segment_size_bytes: u32,
    pub kernarg_segment_align_bytes: u32,
    pub kernarg_preload_dwords: u32,
    pub vgpr_count: u32,
    pub agpr_count: u32,
    pub allocated_vgpr_count: u32,
    pub sgpr_count: u32,
    pub vgpr_spill_count: Option<u32>,
    pub sgpr_spill_count: Option<u32>,
    pub lds_size_bytes: u32,
    pub scratch_size_bytes: u32,
    pub uses_dynamic_stack: bool,
    pub wave_size: u32,
    pub max_flat_workgroup_size: u32,
    pub reqd_workgroup_size: Option<[u32; 3]>,
    pub uniform_work_group_size: Option<bool>,
    pub occupancy_waves: Option<u32>,
    pub occupancy_limit: Option<&'static str>,
    pub descriptor_address: u64,
    pub entry_address: u64,
    pub has_metadata: bool,
}

/// An argument.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArgView {
    pub index: usize,
    pub name: Option<String>,
    pub name_source: Option<&'static str>,
    pub offset_bytes: u32,
    pub size_bytes: u32,
    pub value_kind: String,
    pub type_name: Option<String>,
    pub value_type: Option<String>,
    pub address_space: Option<String>,
    pub access: Option<String>,
    pub actual_access: Option<String>,
    pub pointee_align_bytes: Option<u32>,
    pub is_const: bool,
    pub is_restrict: bool,
    pub is_volatile: bool,
    pub is_pipe: bool,
    pub hidden: bool,
}

/// A segment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SegmentView {
    pub address: u64,
    pub load_address: Option<u64>,
    pub file_offset_bytes: u64,
    pub file_size_bytes: u64,
    pub memory_size_bytes: u64,
    pub align_bytes: u64,
    pub flags: String,
}

/// A relocation.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RelocationView {
    pub offset: u64,
    pub r#type: String,
    pub symbol: Option<String>,
    pub addend: Option<i64>,
    /// Where it was applied.
    pub address: Option<u64>,
    /// What was written.
    pub value: Option<u64>,
}

/// A symbol.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SymbolView {
    pub name: String,
    pub address: u64,
    pub size_bytes: u64,
    pub r#type: String,
    pub binding: String,
    pub visibility: String,
    pub defined: bool,
    pub table: &'static str,
}

/// A note.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NoteView {
    pub name: String,
    pub r#type: u32,
    pub offset_bytes: u64,
    pub size_bytes: u64,
}

/// A field of a kernarg segment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FieldView {
    pub offset_bytes: u64,
    pub size_bytes: u64,
    pub kind: &'static str,
    pub name: String,
}

/// A field of a kernel descriptor.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DescriptorView {
    pub kernel: String,
    pub fields: Vec<(String, u64)>,
}

impl KernelView {
    pub(super) fn new(object: &CodeObject, kernel: &Kernel) -> KernelView {
        let names = parameters::names(kernel, &object.parameters(kernel));
        let metadata = kernel.metadata.as_ref();
        let occupancy = occupancy::of(kernel, object.target_id.target);
        let mut explicit = names.into_iter();
        let args = metadata
            .map(|metadata| metadata.args.iter().enumerate())
            .into_iter()
            .flatten();
        let args = args.map(|(index, arg)| {
            let hidden = arg.kind.is_hidden();
            let own = arg.name.clone().map(|name| (name, NameSource::Metadata));
            ArgView::new(
                index,
                arg,
                if hidden {
                    own
                } else {
                    explicit.next().flatten()
                },
            )
        });
        let (preload_length, _) = kernel.descriptor.preload(object.target_id.target.family);
        KernelView {
            args: args.collect(),
            name: kernel.name.clone(),
            demangled: demangle(&kernel.name),
            symbol: kernel.symbol.clone(),
            language: metadata.and_then(|metadata| metadata.language.clone()),
            kind: match metadata.map(|metadata| &metadata.kind) {
                None | Some(KernelKind::Normal) => "normal".to_owned(),
                Some(KernelKind::Init) => "init".to_owned(),
                Some(KernelKind::Fini) => "fini".to_owned(),
                Some(KernelKind::Other(word)) => word.clone(),
            },
            kernarg_segment_size_bytes: kernel.kernarg_size(),
            kernarg_segment_align_bytes: kernel.kernarg_align(),
            kernarg_preload_dwords: preload_length,
            vgpr_count: kernel.registers.vgprs,
            agpr_count: kernel.registers.agprs,
            allocated_vgpr_count: kernel.registers.allocated_vgprs,
            sgpr_count: kernel.registers.sgprs,
            vgpr_spill_count: metadata.and_then(|metadata| metadata.vgpr_spill_count),
            sgpr_spill_count: metadata.and_then(|metadata| metadata.sgpr_spill_count),
            lds_size_bytes: kernel.lds_size(),
            scratch_size_bytes: kernel.scratch_size(),
            uses_dynamic_stack: kernel.uses_dynamic_stack(),
            wave_size: kernel.wave_size.lanes(),
            max_flat_workgroup_size: kernel.max_flat_workgroup_size(),
            reqd_workgroup_size: kernel.reqd_workgroup_size(),
            uniform_work_group_size: metadata.and_then(|metadata| metadata.uniform_work_group_size),
            occupancy_waves: occupancy.map(|occupancy| occupancy.waves),
            occupancy_limit: occupancy.map(|occupancy| occupancy.limit),
            descriptor_address: kernel.descriptor_vaddr,
            entry_address: kernel.entry_vaddr,
            has_metadata: metadata.is_some(),
        }
    }
}

impl ArgView {
    fn new(index: usize, arg: &ArgMetadata, name: Option<(String, NameSource)>) -> ArgView {
        let (name, name_source) = name.map(|(name, source)| (name, source.name())).unzip();
        ArgView {
            index,
            name,
            name_source,
            offset_bytes: arg.offset,
            size_bytes: arg.size,
            value_kind: arg.kind.to_string(),
            type_name: arg.type_name.clone(),
            value_type: arg.value_type.clone(),
            address_space: arg
                .address_space
                .as_ref()
                .map(|space| space.as_str().to_owned()),
            access: arg.access.as_ref().map(|access| access.as_str().to_owned()),
            actual_access: arg
                .actual_access
                .as_ref()
                .map(|access| access.as_str().to_owned()),
            pointee_align_bytes: arg.pointee_align,
            is_const: arg.is_const,
            is_restrict: arg.is_restrict,
            is_volatile: arg.is_volatile,
            is_pipe: arg.is_pipe,
            hidden: arg.kind.is_hidden(),
        }
    }
}

/// The segments, with the addresses they were loaded at where they were.
pub(super) fn segments(object: &CodeObject, loaded: Option<&LoadedExecutable>) -> Vec<SegmentView> {
    let placed = loaded.and_then(|loaded| loaded.frozen().objects().first());
    let addresses: Vec<Option<u64>> = match placed {
        Some(placed) => placed
            .segments()
            .map(|(address, _)| Some(address.get()))
            .collect(),
        None => vec![None; object.segments.len()],
    };
    let flag = |on: bool, letter: char| if on { letter } else { '-' };
    let view = |(segment, load_address): (&Segment, Option<u64>)| SegmentView {
        address: segment.vaddr,
        load_address,
        file_offset_bytes: segment.file_offset,
        file_size_bytes: segment.file_size,
        memory_size_bytes: segment.mem_size,
        align_bytes: segment.align,
        flags: [
            flag(segment.flags.readable(), 'r'),
            flag(segment.flags.writable(), 'w'),
            flag(segment.flags.executable(), 'x'),
        ]
        .iter()
        .collect(),
    };
    object.segments.iter().zip(addresses).map(view).collect()
}

/// The dynamic relocations, with what was written where they were applied.
pub(super) fn relocations(
    object: &CodeObject,
    loaded: Option<&LoadedExecutable>,
) -> Vec<RelocationView> {
    let applied = loaded.map_or(&[][..], |loaded| loaded.frozen().relocations());
    let view = |relocation: &Relocation| {
        let symbol = object.relocation_symbol(relocation);
        let applied = applied
            .iter()
            .find(|applied| applied.offset == relocation.offset);
        RelocationView {
            offset: relocation.offset,
            r#type: relocation.kind.to_string(),
            symbol: symbol.map(|symbol| symbol.name.clone()),
            addend: relocation.addend,
            address: applied.map(|applied| applied.address.get()),
            value: applied.map(|applied| applied.value),
        }
    };
    object.relocations.iter().map(view).collect()
}

/// Both symbol tables; names without which a symbol means nothing are left out.
pub(super) fn symbols(object: &CodeObject) -> Vec<SymbolView> {
    let tables = [
        (".dynsym", &object.dynamic_symbols),
        (".symtab", &object.static_symbols),
    ];
    let views = tables.into_iter().flat_map(|(table, symbols)| {
        symbols
            .iter()
            .filter(|symbol| !symbol.name.is_empty())
            .map(move |symbol| SymbolView {
                name: symbol.name.clone(),
                address: symbol.value,
                size_bytes: symbol.size,
                r#type: symbol.kind.to_string(),
                binding: symbol.binding.to_string(),
                visibility: symbol.visibility.to_string(),
                defined: symbol.is_defined(),
                table,
            })
    });
    views.collect()
}

/// The notes, with where their descriptors lie in the object.
pub(super) fn notes(object: &CodeObject) -> Vec<NoteView> {
    let view = |note: &Note| NoteView {
        name: note.name.clone(),
        r#type: note.kind,
        offset_bytes: note.desc.start as u64,
        size_bytes: note.desc.len() as u64,
    };
    object.notes.iter().map(view).collect()
}

/// Every byte of a kernel's kernarg segment.
pub(super) fn kernarg(object: &CodeObject, kernel: &Kernel) -> Vec<FieldView> {
    let names = parameters::names(kernel, &object.parameters(kernel));
    let names: Vec<Option<String>> = names
        .into_iter()
        .map(|name| name.map(|(name, _)| name))
        .collect();
    let view = |field: Field| FieldView {
        offset_bytes: field.offset_bytes,
        size_bytes: field.size_bytes,
        kind: field.kind.name(),
        name: field.name,
    };
    kernarg_map::layout(object.version, kernel, &names)
        .into_iter()
        .map(view)
        .collect()
}

/// Every field of a kernel's descriptor.
pub(super) fn descriptor(object: &CodeObject, kernel: &Kernel) -> DescriptorView {
    let descriptor = &kernel.descriptor;
    let mut fields = vec![
        (
            "GROUP_SEGMENT_FIXED_SIZE".to_owned(),
            u64::from(descriptor.group_segment_fixed_size),
        ),
        (
            "PRIVATE_SEGMENT_FIXED_SIZE".to_owned(),
            u64::from(descriptor.private_segment_fixed_size),
        ),
        (
            "KERNARG_SIZE".to_owned(),
            u64::from(descriptor.kernarg_size),
        ),
        (
            "KERNEL_CODE_ENTRY_BYTE_OFFSET".to_owned(),
            descriptor.entry_byte_offset.cast_unsigned(),
        ),
    ];
    let family = object.target_id.target.family;
    fields.extend(
        descriptor
            .fields(family)
            .map(|field| (field.name.to_owned(), u64::from(field.value))),
    );
    if let Some(code) = &kernel.kernel_code {
        fields.extend(kernel_code(code));
    }
    DescriptorView {
        kernel: kernel.name.clone(),
        fields,
    }
}

/// What `amd_kernel_code_t` says beside what a descriptor does, by its own names.
fn kernel_code(code: &KernelCode) -> Vec<(String, u64)> {
    let [major, minor] = code.version;
    let [machine_major, machine_minor, machine_stepping] = code.machine_version;
    [
        ("amd_kernel_code_version_major", u64::from(major)),
        ("amd_kernel_code_version_minor", minor.into()),
        ("amd_machine_kind", code.machine_kind.into()),
        ("amd_machine_version_major", machine_major.into()),
        ("amd_machine_version_minor", machine_minor.into()),
        ("amd_machine_version_stepping", machine_stepping.into()),
        ("code_properties", code.code_properties.into()),
        ("gds_segment_byte_size", code.gds_segment_size.into()),
        ("workgroup_fbarrier_count", code.fbarrier_count.into()),
        ("wavefront_sgpr_count", code.sgpr_count.into()),
        ("workitem_vgpr_count", code.vgpr_count.into()),
        ("kernarg_segment_alignment", code.kernarg_align_log2.into()),
        ("wavefront_size", code.wave_size_log2.into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
