//! A parsed code object: the one type that the layers above work with.
//!
//! Knows: how header, segments, symbols, notes, metadata and descriptors fit together. Must not know: where it will be
//! loaded, containers it came from.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use super::bytes::{Bytes, array};
use super::descriptor::{DESCRIPTOR_SIZE, KernelDescriptor, RegisterCounts};
use super::dwarf::{DebugInfo, Parameter, SourceLocation, TypeInfo};
use super::dynamic::DynamicTables;
use super::elf::{Header, ProgramHeaders, Segment, file_range};
use super::error::{LoadError, LoadWarning};
use super::metadata::{KernelMetadata, Metadata, PrintfFormat};
use super::relocation::Relocation;
use super::sections::{Note, Section, SectionTables, notes};
use super::symbol::{Symbol, SymbolIndex, SymbolOffset, SymbolType};
use super::target::WaveSize;
use super::target_id::{MatchKind, Mismatch, TargetError, TargetId, compatibility};
use super::unlinked::Layout;
use super::v2::{self, KERNEL_CODE_ALIGN, KERNEL_CODE_SIZE, KernelCode};

/// Vendor name of the notes of V3 and later.
pub const NOTE_NAME_AMDGPU: &str = "AMDGPU";
/// `NT_AMDGPU_METADATA`.
pub const NT_AMDGPU_METADATA: u32 = 32;

/// Code object version, from `e_ident[EI_ABIVERSION]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// ABI version 0: `amd_kernel_code_t` and YAML metadata.
    V2,
    /// ABI version 1.
    V3,
    /// ABI version 2.
    V4,
    /// ABI version 3.
    V5,
    /// ABI version 4.
    V6,
}

impl Version {
    pub(in crate::loader) const fn from_abi(abi_version: u8) -> Option<Self> {
        Some(match abi_version {
            0 => Self::V2,
            1 => Self::V3,
            2 => Self::V4,
            3 => Self::V5,
            4 => Self::V6,
            _ => return None,
        })
    }

    /// 2 to 6.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
            Self::V4 => 4,
            Self::V5 => 5,
            Self::V6 => 6,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "V{}", self.number())
    }
}

/// A kernel: descriptor, and metadata where the object has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Mangled name, without `.kd`.
    pub name: String,
    /// Symbol of the descriptor.
    pub symbol: String,
    /// Metadata; `None` for a descriptor that it does not list.
    pub metadata: Option<KernelMetadata>,
    /// The descriptor.
    pub descriptor: KernelDescriptor,
    /// Address of the descriptor in the object: what becomes the kernel object of an AQL packet.
    pub descriptor_vaddr: u64,
    /// Address of the first instruction in the object.
    pub entry_vaddr: u64,
    /// Lanes of a wave.
    pub wave_size: WaveSize,
    /// Registers of a wave, from the descriptor.
    pub registers: RegisterCounts,
    /// The `amd_kernel_code_t` that V2 has in place of a descriptor.
    pub kernel_code: Option<KernelCode>,
}

impl Kernel {
    fn number(&self, get: impl FnOnce(&KernelMetadata) -> Option<u32>) -> Option<u32> {
        self.metadata.as_ref().and_then(get)
    }

    /// Bytes of the kernarg segment: the metadata's number, else the descriptor's, which older compilers left 0.
    #[must_use]
    pub fn kernarg_size(&self) -> u32 {
        self.number(|m| m.kernarg_segment_size)
            .unwrap_or(self.descriptor.kernarg_size)
    }

    /// Alignment of the kernarg segment; HSA asks for at least 16.
    #[must_use]
    pub fn kernarg_align(&self) -> u32 {
        self.number(|m| m.kernarg_segment_align)
            .unwrap_or(0)
            .max(16)
    }

    /// Static LDS in bytes.
    #[must_use]
    pub fn lds_size(&self) -> u32 {
        self.descriptor.group_segment_fixed_size
    }

    /// Scratch of one work-item in bytes, without a dynamic stack.
    #[must_use]
    pub fn scratch_size(&self) -> u32 {
        self.descriptor.private_segment_fixed_size
    }

    /// The largest workgroup that the code was built for; 1024 where nothing says.
    #[must_use]
    pub fn max_flat_workgroup_size(&self) -> u32 {
        self.number(|m| m.max_flat_workgroup_size).unwrap_or(1024)
    }

    /// The only workgroup size that the code was built for.
    #[must_use]
    pub fn reqd_workgroup_size(&self) -> Option<[u32; 3]> {
        self.metadata.as_ref().and_then(|m| m.reqd_workgroup_size)
    }

    /// Recursion, indirect calls or dynamic allocas: the needed stack is not known.
    #[must_use]
    pub fn uses_dynamic_stack(&self) -> bool {
        self.descriptor.uses_dynamic_stack()
            || self
                .metadata
                .as_ref()
                .and_then(|m| m.uses_dynamic_stack)
                .unwrap_or(false)
    }
}

/// A code object. Cheap to share; owns its bytes.
#[derive(Debug)]
pub struct CodeObject {
    bytes: Bytes,
    /// Version.
    pub version: Version,
    /// `e_ident[EI_ABIVERSION]`.
    pub abi_version: u8,
    /// `e_flags`.
    pub e_flags: u32,
    /// `ET_DYN`. Others are described and not loaded; addresses in them are made up by section.
    pub linked: bool,
    /// What it was built for.
    pub target_id: TargetId,
    /// Kernels: those of the metadata in its order, then descriptors that it does not list.
    pub kernels: Vec<Kernel>,
    /// `PT_LOAD` segments, by address.
    pub segments: Vec<Segment>,
    /// `.dynsym`, by index; entry 0 is the null symbol.
    pub dynamic_symbols: Vec<Symbol>,
    /// `.symtab`, empty when stripped.
    pub static_symbols: Vec<Symbol>,
    /// Dynamic relocations; those of all loaded sections where the object is not linked.
    pub relocations: Vec<Relocation>,
    /// Notes.
    pub notes: Vec<Note>,
    /// Section headers, empty when stripped.
    pub sections: Vec<Section>,
    /// Metadata without its kernels, which are in [`Self::kernels`].
    pub metadata: Option<Metadata>,
    metadata_range: Option<Range<usize>>,
    /// V2's metadata as it is in the file.
    pub metadata_yaml: Option<String>,
    /// What is odd and does not matter.
    pub warnings: Vec<LoadWarning>,
    /// Unlinked: what relocations would write into descriptors.
    relative: BTreeMap<u64, i64>,
    index: SymbolIndex,
    debug: OnceLock<DebugInfo>,
}

impl CodeObject {
    /// Reads a bare code object that fills `bytes`.
    ///
    /// # Errors
    /// The first rule that fails; offsets are from the start of `bytes`.
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self, LoadError> {
        let bytes = bytes.into();
        let header = Header::parse(&bytes)?;
        let version = Version::from_abi(header.abi_version).ok_or(LoadError::Target(
            TargetError::AbiVersion(header.abi_version),
        ))?;
        let mut warnings = Vec::new();
        let known_target = match version {
            Version::V2 => None,
            _ => Some(TargetId::from_e_flags(header.abi_version, header.flags)?),
        };
        let mut tables = SectionTables::parse(&bytes, &mut warnings);
        let (headers, dynamic, relative) = if header.linked {
            let headers = ProgramHeaders::parse(&bytes, &header)?;
            let dynamic = DynamicTables::parse(&bytes, &headers)?;
            (headers, dynamic, BTreeMap::new())
        } else {
            let layout = Layout::new(&bytes, &mut tables)?;
            let headers = ProgramHeaders {
                segments: layout.segments,
                ..ProgramHeaders::default()
            };
            let dynamic = DynamicTables {
                relocations: layout.relocations,
                ..DynamicTables::default()
            };
            (headers, dynamic, layout.relative)
        };
        let DynamicTables {
            symbols: dynamic_symbols,
            relocations,
        } = dynamic;
        let SectionTables {
            sections,
            symbols: static_symbols,
        } = tables;
        let notes = notes(&bytes, &headers, &sections, &mut warnings)?;
        let target_id = match known_target {
            Some(target_id) => target_id,
            None => v2::target_id(&bytes, &notes)?,
        };
        let mut object = Self {
            version,
            abi_version: header.abi_version,
            e_flags: header.flags,
            linked: header.linked,
            target_id,
            kernels: Vec::new(),
            segments: headers.segments,
            index: SymbolIndex::new(dynamic_symbols.iter().chain(&static_symbols)),
            dynamic_symbols,
            static_symbols,
            relocations,
            notes,
            sections,
            metadata: None,
            metadata_range: None,
            metadata_yaml: None,
            warnings,
            relative,
            debug: OnceLock::new(),
            bytes,
        };
        if version == Version::V2 {
            object.read_v2_kernels()?;
        } else {
            let bits = target_id.ignored_bits(header.abi_version, header.flags);
            if bits != 0 {
                let (e_flags, processor) = (header.flags, target_id.target.name);
                object.warnings.push(LoadWarning::IgnoredFlags {
                    e_flags,
                    bits,
                    processor,
                });
            }
            object.read_kernels()?;
        }
        Ok(object)
    }

    /// Kernels of V2: symbols of their own type, in the metadata's order and then in that of the symbols.
    fn read_v2_kernels(&mut self) -> Result<(), LoadError> {
        let mut listed = Vec::new();
        match v2::metadata_yaml(&self.bytes, &self.notes) {
            Some((yaml, offset)) => {
                let mut metadata = Metadata::parse_v2(&yaml)
                    .map_err(|source| LoadError::Metadata { offset, source })?;
                listed = std::mem::take(&mut metadata.kernels);
                self.metadata = Some(metadata);
                self.metadata_yaml = Some(yaml);
            }
            None => self.warnings.push(LoadWarning::NoMetadata),
        }
        let mut found: Vec<(String, u64)> = Vec::new();
        let mut known = HashSet::new();
        for symbol in self.dynamic_symbols.iter().chain(&self.static_symbols) {
            if symbol.kind == SymbolType::AMDGPU_HSA_KERNEL
                && symbol.is_defined()
                && known.insert(symbol.name.as_str())
            {
                found.push((symbol.name.clone(), symbol.value));
            }
        }
        for metadata in listed {
            let at = found.iter().position(|(name, _)| *name == metadata.name);
            let Some(at) = at else {
                return Err(LoadError::NoDescriptor {
                    symbol: metadata.name.clone(),
                    kernel: metadata.name,
                });
            };
            let (name, vaddr) = found.remove(at);
            self.add_v2_kernel(name, vaddr, Some(metadata))?;
        }
        for (name, vaddr) in found {
            if self.metadata.is_some() {
                self.warnings
                    .push(LoadWarning::KernelWithoutMetadata(name.clone()));
            }
            self.add_v2_kernel(name, vaddr, None)?;
        }
        Ok(())
    }

    fn add_v2_kernel(
        &mut self,
        name: String,
        vaddr: u64,
        metadata: Option<KernelMetadata>,
    ) -> Result<(), LoadError> {
        let wrong = |problem: String| LoadError::Descriptor {
            kernel: name.clone(),
            vaddr,
            problem,
        };
        let code = self
            .bytes_at(vaddr, KERNEL_CODE_SIZE as u64)
            .and_then(KernelCode::from_bytes)
            .ok_or_else(|| {
                wrong(
                    "the 256 bytes of its amd_kernel_code_t are not in the file part of any PT_LOAD segment"
                        .to_owned(),
                )
            })?;
        if !vaddr.is_multiple_of(KERNEL_CODE_ALIGN) {
            return Err(wrong("it is not aligned to 256 bytes".to_owned()));
        }
        if let Some(problem) = code.problem() {
            return Err(wrong(problem));
        }
        let symbol = name.clone();
        self.push_kernel(name, symbol, vaddr, metadata, code.descriptor(), Some(code))
    }

    fn read_kernels(&mut self) -> Result<(), LoadError> {
        let note = self
            .notes
            .iter()
            .find(|note| note.name == NOTE_NAME_AMDGPU && note.kind == NT_AMDGPU_METADATA);
        let mut listed = Vec::new();
        if let Some(desc) = note.map(|note| note.desc.clone()) {
            let wrong = |source| LoadError::Metadata {
                offset: desc.start as u64,
                source,
            };
            let mut metadata =
                Metadata::parse(self.bytes.get(desc.clone()).unwrap_or_default()).map_err(wrong)?;
            listed = std::mem::take(&mut metadata.kernels);
            self.metadata = Some(metadata);
            self.metadata_range = Some(desc);
        } else {
            self.warnings.push(LoadWarning::NoMetadata);
        }
        // defined symbols by name, dynamic ones first
        let mut by_name: HashMap<String, u64> = HashMap::new();
        let mut unlisted: Vec<(String, u64)> = Vec::new();
        let wanted: HashSet<&str> = listed.iter().map(|kernel| kernel.symbol.as_str()).collect();
        for symbol in self
            .dynamic_symbols
            .iter()
            .chain(&self.static_symbols)
            .filter(|symbol| symbol.is_defined())
        {
            let descriptor = symbol.name.ends_with(".kd")
                && matches!(symbol.kind, SymbolType::OBJECT | SymbolType::NOTYPE);
            let is_wanted = wanted.contains(symbol.name.as_str());
            if (descriptor || is_wanted) && !by_name.contains_key(&symbol.name) {
                by_name.insert(symbol.name.clone(), symbol.value);
                if !is_wanted {
                    unlisted.push((symbol.name.clone(), symbol.value));
                }
            }
        }
        for metadata in listed {
            let Some(vaddr) = by_name.get(&metadata.symbol).copied() else {
                return Err(LoadError::NoDescriptor {
                    kernel: metadata.name,
                    symbol: metadata.symbol,
                });
            };
            let (name, symbol) = (metadata.name.clone(), metadata.symbol.clone());
            self.add_kernel(name, symbol, vaddr, Some(metadata))?;
        }
        for (symbol, vaddr) in unlisted {
            let name = symbol.strip_suffix(".kd").unwrap_or(&symbol).to_owned();
            if self.metadata.is_some() {
                self.warnings
                    .push(LoadWarning::KernelWithoutMetadata(name.clone()));
            }
            self.add_kernel(name, symbol, vaddr, None)?;
        }
        Ok(())
    }

    fn add_kernel(
        &mut self,
        name: String,
        symbol: String,
        vaddr: u64,
        metadata: Option<KernelMetadata>,
    ) -> Result<(), LoadError> {
        let wrong = |problem| LoadError::Descriptor {
            kernel: name.clone(),
            vaddr,
            problem,
        };
        let raw: [u8; DESCRIPTOR_SIZE] = self
            .bytes_at(vaddr, DESCRIPTOR_SIZE as u64)
            .and_then(|bytes| array(bytes, 0))
            .ok_or_else(|| {
                wrong("its 64 bytes are not in the file part of any PT_LOAD segment".to_owned())
            })?;
        if !vaddr.is_multiple_of(DESCRIPTOR_SIZE as u64) {
            return Err(wrong("it is not aligned to 64 bytes".to_owned()));
        }
        let mut descriptor = KernelDescriptor::from_bytes(&raw);
        if let Some(offset) = self.relative.get(&vaddr.saturating_add(16)) {
            descriptor.entry_byte_offset = *offset;
        }
        self.push_kernel(name, symbol, vaddr, metadata, descriptor, None)
    }

    fn push_kernel(
        &mut self,
        name: String,
        symbol: String,
        vaddr: u64,
        metadata: Option<KernelMetadata>,
        descriptor: KernelDescriptor,
        kernel_code: Option<KernelCode>,
    ) -> Result<(), LoadError> {
        let wrong = |problem| LoadError::Descriptor {
            kernel: name.clone(),
            vaddr,
            problem,
        };
        let entry_vaddr = vaddr
            .checked_add_signed(descriptor.entry_byte_offset)
            .filter(|entry| self.is_code(*entry))
            .ok_or_else(|| {
                let offset = descriptor.entry_byte_offset;
                wrong(format!(
                    "its entry point, {offset:+#x} from there, is not in an executable segment"
                ))
            })?;
        let target = self.target_id.target;
        let mut reserved: Vec<String> = descriptor
            .reserved_bits(target.family)
            .into_iter()
            .map(|(word, bits)| format!("{word} {bits:#x}"))
            .collect();
        if !descriptor.reserved_is_zero {
            reserved.push("reserved bytes".to_owned());
        }
        if !reserved.is_empty() {
            self.warnings.push(LoadWarning::ReservedBits {
                kernel: name.clone(),
                bits: reserved.join(", "),
            });
        }
        if let Some(metadata) = &metadata {
            let pairs = [
                (
                    "group segment size",
                    metadata.group_segment_fixed_size,
                    descriptor.group_segment_fixed_size,
                ),
                (
                    "private segment size",
                    metadata.private_segment_fixed_size,
                    descriptor.private_segment_fixed_size,
                ),
                (
                    "kernarg segment size",
                    metadata.kernarg_segment_size,
                    descriptor.kernarg_size,
                ),
                (
                    "wave size",
                    metadata.wavefront_size,
                    descriptor.wave_size(target).lanes(),
                ),
            ];
            for (field, in_metadata, in_descriptor) in pairs {
                // V3 descriptors and some later ones leave the kernarg size 0
                let left_out = field == "kernarg segment size" && in_descriptor == 0;
                if let Some(value) =
                    in_metadata.filter(|value| *value != in_descriptor && !left_out)
                {
                    self.warnings.push(LoadWarning::Disagreement {
                        kernel: name.clone(),
                        field,
                        metadata: value.into(),
                        descriptor: in_descriptor.into(),
                    });
                }
            }
        }
        self.kernels.push(Kernel {
            wave_size: descriptor.wave_size(target),
            registers: descriptor.registers(target),
            name,
            symbol,
            metadata,
            descriptor,
            descriptor_vaddr: vaddr,
            entry_vaddr,
            kernel_code,
        });
        Ok(())
    }

    fn is_code(&self, vaddr: u64) -> bool {
        self.segments.iter().any(|segment| {
            segment.flags.executable()
                && vaddr >= segment.vaddr
                && vaddr - segment.vaddr < segment.file_size
        })
    }

    /// The object's bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// `len` bytes at an address of the object; `None` when no segment holds them all in the file.
    #[must_use]
    pub fn bytes_at(&self, vaddr: u64, len: u64) -> Option<&[u8]> {
        self.bytes.get(file_range(&self.segments, vaddr, len)?)
    }

    /// The bytes of a segment that come from the file.
    #[must_use]
    pub fn segment_bytes(&self, segment: &Segment) -> &[u8] {
        super::bytes::range_at(&self.bytes, segment.file_offset, segment.file_size)
            .unwrap_or_default()
    }

    /// The metadata note's descriptor: a msgpack document.
    #[must_use]
    pub fn metadata_bytes(&self) -> Option<&[u8]> {
        self.bytes.get(self.metadata_range.clone()?)
    }

    /// Format strings of device printf.
    #[must_use]
    pub fn printf_formats(&self) -> &[PrintfFormat] {
        self.metadata
            .as_ref()
            .map_or(&[], |metadata| &metadata.printf)
    }

    /// A kernel by mangled name or by its descriptor's symbol.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels
            .iter()
            .find(|kernel| kernel.name == name || kernel.symbol == name)
    }

    /// A symbol by name; dynamic and defined ones come first.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        let all = || {
            self.dynamic_symbols
                .iter()
                .chain(&self.static_symbols)
                .filter(|symbol| symbol.name == name)
        };
        all()
            .find(|symbol| symbol.is_defined())
            .or_else(|| all().next())
    }

    /// The symbol that a relocation refers to; `None` where it refers to none.
    #[must_use]
    pub fn relocation_symbol(&self, relocation: &Relocation) -> Option<&Symbol> {
        let table = if self.linked {
            &self.dynamic_symbols
        } else {
            &self.static_symbols
        };
        (relocation.symbol != 0)
            .then(|| table.get(relocation.symbol as usize))
            .flatten()
    }

    /// The symbol that covers an address of the object.
    #[must_use]
    pub fn symbolize(&self, vaddr: u64) -> Option<SymbolOffset> {
        self.index.find(vaddr)
    }

    fn debug_info(&self) -> &DebugInfo {
        self.debug
            .get_or_init(|| DebugInfo::new(&self.bytes, &self.sections))
    }

    /// The source line of an instruction, for objects built with `-g`.
    #[must_use]
    pub fn source_location(&self, vaddr: u64) -> Option<SourceLocation<'_>> {
        self.debug_info().location(vaddr)
    }

    /// True when the object has DWARF line tables.
    #[must_use]
    pub fn has_line_tables(&self) -> bool {
        self.debug_info().has_lines()
    }

    /// A kernel's formal parameters from DWARF, in order; empty without `-g`.
    #[must_use]
    pub fn parameters(&self, kernel: &Kernel) -> Vec<Parameter> {
        super::dwarf::parameters(
            &self.bytes,
            &self.sections,
            &kernel.name,
            kernel.entry_vaddr,
        )
    }

    /// The type of a global variable from DWARF.
    #[must_use]
    pub fn variable_type(&self, name: &str) -> Option<TypeInfo> {
        super::dwarf::variable_type(&self.bytes, &self.sections, name)
    }

    /// Says whether the object runs on `device`.
    ///
    /// V3 writes the same bit for a feature that is on and for one that may be either way; such code is right on both
    /// settings, so only a feature that is off can clash.
    ///
    /// # Errors
    /// The rule that fails.
    pub fn compatibility(&self, device: &TargetId) -> Result<MatchKind, Mismatch> {
        let target_id = match self.version {
            Version::V2 | Version::V3 => self.target_id.with_on_as_any(),
            Version::V4 | Version::V5 | Version::V6 => self.target_id,
        };
        compatibility(&target_id, device)
    }
}
