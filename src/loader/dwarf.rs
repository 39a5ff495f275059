//! DWARF of objects built with `-g`: source lines, kernel parameters and types of globals.
//!
//! Knows: `.debug_line`, and of `.debug_info` subprograms, variables and types. Must not know: locations of variables
//! (AMD's are not needed to launch). Malformed DWARF costs the reports their lines, never the load.

use gimli::{
    AttributeValue, DW_AT_abstract_origin, DW_AT_specification, EndianSlice, LittleEndian,
    UnitOffset, constants,
};

use super::sections::Section;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;
type Die<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;

/// Deepest chain of types and origins that is followed.
const MAX_DEPTH: u32 = 16;

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation<'a> {
    /// Path as the compiler knew it.
    pub file: &'a str,
    /// Line, from 1; 0 where the compiler gives none.
    pub line: u32,
    /// Column, from 1; 0 for the line as a whole.
    pub column: u32,
}

impl std::fmt::Display for SourceLocation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column != 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

/// Encoding of a base type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaseEncoding {
    /// Two's complement.
    Signed,
    /// Unsigned.
    Unsigned,
    /// IEEE float, or bfloat16 by the type's name.
    Float,
    /// Boolean.
    Boolean,
    /// A character; signed or not.
    Character {
        /// True for `signed char`.
        signed: bool,
    },
    /// Anything else.
    Other,
}

/// What a type is, typedefs and qualifiers looked through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// A scalar.
    Base(BaseEncoding),
    /// A pointer or reference; `None` points to void.
    Pointer(Option<Box<TypeInfo>>),
    /// An array or vector of a known number of elements.
    Array {
        /// Type of an element.
        element: Box<TypeInfo>,
        /// Elements in all dimensions; `None` where the bound is open.
        count: Option<u64>,
    },
    /// A struct, class or union.
    Aggregate,
    /// An enumeration.
    Enumeration,
    /// Anything else.
    Other,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// As the source would write it: `const float*`.
    pub name: String,
    /// Bytes.
    pub size: Option<u64>,
    /// What it is.
    pub kind: TypeKind,
}

/// A formal parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; the source may leave it out.
    pub name: Option<String>,
    /// Its type.
    pub ty: Option<TypeInfo>,
}

fn sections<'a>(bytes: &'a [u8], sections: &[Section]) -> Option<Dwarf<'a>> {
    let load = |id: gimli::SectionId| -> Result<Slice<'a>, gimli::Error> {
        // SHF_COMPRESSED sections are not unpacked: they count as absent
        const SHF_COMPRESSED: u64 = 1 << 11;
        let data = sections
            .iter()
            .find(|section| section.name == id.name() && section.flags & SHF_COMPRESSED == 0)
            .and_then(|section| bytes.get(section.file_range(bytes.len())?))
            .unwrap_or_default();
        Ok(EndianSlice::new(data, LittleEndian))
    };
    Dwarf::load(load).ok()
}

/// Units that can be read; a malformed one is left out.
fn units<'a>(dwarf: &Dwarf<'a>) -> Vec<Unit<'a>> {
    let mut headers = dwarf.units();
    let mut units = Vec::new();
    while let Ok(Some(header)) = headers.next() {
        if let Ok(unit) = dwarf.unit(header) {
            units.push(unit);
        }
    }
    units
}

#[derive(Debug)]
struct Row {
    start: u64,
    end: u64,
    file: u32,
    line: u32,
    column: u32,
}

/// The line table of the whole object, by address.
#[derive(Debug, Default)]
pub(super) struct DebugInfo {
    rows: Vec<Row>,
    files: Vec<String>,
}

impl DebugInfo {
    pub(super) fn new(bytes: &[u8], section_list: &[Section]) -> Self {
        let mut info = Self::default();
        let Some(dwarf) = sections(bytes, section_list) else {
            return info;
        };
        let mut seen = std::collections::HashSet::new();
        for unit in units(&dwarf) {
            // units may share a line program: read each once
            if let Some(program) = &unit.line_program
                && seen.insert(program.header().offset().0)
            {
                info.read_program(&dwarf, &unit);
            }
        }
        info.rows.sort_by_key(|row| row.start);
        info
    }

    fn read_program(&mut self, dwarf: &Dwarf<'_>, unit: &Unit<'_>) {
        let Some(program) = unit.line_program.clone() else {
            return;
        };
        let mut files = std::collections::HashMap::new();
        let mut sequence: Vec<Row> = Vec::new();
        let mut rows = program.rows();
        while let Ok(Some((header, row))) = rows.next_row() {
            let address = row.address();
            if let Some(previous) = sequence.last_mut() {
                previous.end = address;
            }
            if row.end_sequence() {
                self.rows
                    .extend(sequence.drain(..).filter(|row| row.start < row.end));
                continue;
            }
            let file = *files.entry(row.file_index()).or_insert_with(|| {
                let path = row
                    .file(header)
                    .map_or_else(|| "??".to_owned(), |file| path(dwarf, unit, header, file));
                self.files.push(path);
                (self.files.len() - 1) as u32
            });
            let clamp = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            sequence.push(Row {
                start: address,
                end: address,
                file,
                line: row.line().map_or(0, |line| clamp(line.get())),
                column: match row.column() {
                    gimli::ColumnType::LeftEdge => 0,
                    gimli::ColumnType::Column(column) => clamp(column.get()),
                },
            });
        }
    }

    pub(super) fn has_lines(&self) -> bool {
        !self.rows.is_empty()
    }

    pub(super) fn location(&self, vaddr: u64) -> Option<SourceLocation<'_>> {
        let after = self.rows.partition_point(|row| row.start <= vaddr);
        let row = self
            .rows
            .get(after.checked_sub(1)?)
            .filter(|row| vaddr < row.end)?;
        let file = self.files.get(row.file as usize)?;
        Some(SourceLocation {
            file,
            line: row.line,
            column: row.column,
        })
    }
}

/// Compilation directory, include directory and file name, joined as far as they are relative.
fn path<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    header: &gimli::LineProgramHeader<Slice<'a>>,
    file: &gimli::FileEntry<Slice<'a>>,
) -> String {
    let text = |value| {
        dwarf
            .attr_string(unit, value)
            .ok()
            .map(|slice: Slice<'a>| slice.to_string_lossy().into_owned())
    };
    let mut path = std::path::PathBuf::new();
    if let Some(directory) = &unit.comp_dir {
        path.push(&*directory.to_string_lossy());
    }
    if let Some(directory) = file.directory(header).and_then(text) {
        path.push(directory);
    }
    if let Some(name) = text(file.path_name()) {
        path.push(name);
    }
    path.to_string_lossy().into_owned()
}

/// The entry that an attribute of `die` refers to, in the same unit.
fn referred<'a>(unit: &Unit<'a>, die: &Die<'a>, attribute: constants::DwAt) -> Option<Die<'a>> {
    match die.attr_value(attribute)? {
        AttributeValue::UnitRef(offset) => unit.entry(offset).ok(),
        AttributeValue::DebugInfoRef(offset) => {
            unit.entry(offset.to_unit_offset(&unit.header)?).ok()
        }
        _ => None,
    }
}

/// An attribute of an entry, or of the declaration or abstract instance it belongs to.
fn inherited<'a>(
    unit: &Unit<'a>,
    die: &Die<'a>,
    attribute: constants::DwAt,
) -> Option<(Die<'a>, AttributeValue<Slice<'a>>)> {
    let mut die = die.clone();
    for _ in 0..MAX_DEPTH {
        if let Some(value) = die.attr_value(attribute) {
            return Some((die, value));
        }
        die = referred(unit, &die, DW_AT_abstract_origin)
            .or_else(|| referred(unit, &die, DW_AT_specification))?;
    }
    None
}

fn name<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    die: &Die<'a>,
    attribute: constants::DwAt,
) -> Option<String> {
    let (_, value) = inherited(unit, die, attribute)?;
    dwarf
        .attr_string(unit, value)
        .ok()
        .map(|slice| slice.to_string_lossy().into_owned())
}

fn is_called<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, die: &Die<'a>, symbol: &str) -> bool {
    [constants::DW_AT_linkage_name, constants::DW_AT_name]
        .into_iter()
        .any(|attribute| name(dwarf, unit, die, attribute).is_some_and(|name| name == symbol))
}

/// Formal parameters of the subprogram that starts at `entry` or carries the kernel's name.
pub(super) fn parameters(
    bytes: &[u8],
    section_list: &[Section],
    kernel: &str,
    entry: u64,
) -> Vec<Parameter> {
    let Some(dwarf) = sections(bytes, section_list) else {
        return Vec::new();
    };
    for unit in units(&dwarf) {
        let mut cursor = unit.entries();
        while let Ok(Some(die)) = cursor.next_dfs() {
            if die.tag() != constants::DW_TAG_subprogram || !die.has_attr(constants::DW_AT_low_pc) {
                continue;
            }
            let low_pc = die
                .attr_value(constants::DW_AT_low_pc)
                .and_then(|v| dwarf.attr_address(&unit, v).ok().flatten());
            if low_pc == Some(entry) || is_called(&dwarf, &unit, die, kernel) {
                return formal_parameters(&dwarf, &unit, die.offset());
            }
        }
    }
    Vec::new()
}

fn formal_parameters<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    subprogram: UnitOffset,
) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    let Ok(mut tree) = unit.entries_tree(Some(subprogram)) else {
        return parameters;
    };
    let Ok(root) = tree.root() else {
        return parameters;
    };
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        let die = child.entry();
        if die.tag() == constants::DW_TAG_formal_parameter {
            let owner = inherited(unit, die, constants::DW_AT_type).map(|(owner, _)| owner);
            parameters.push(Parameter {
                name: name(dwarf, unit, die, constants::DW_AT_name),
                ty: owner
                    .and_then(|owner| referred(unit, &owner, constants::DW_AT_type))
                    .map(|ty| type_info(dwarf, unit, &ty, 0)),
            });
        }
    }
    parameters
}

/// The type of the variable whose linkage name, or name, is `symbol`.
pub(super) fn variable_type(
    bytes: &[u8],
    section_list: &[Section],
    symbol: &str,
) -> Option<TypeInfo> {
    let dwarf = sections(bytes, section_list)?;
    for unit in units(&dwarf) {
        let mut cursor = unit.entries();
        while let Ok(Some(die)) = cursor.next_dfs() {
            if die.tag() == constants::DW_TAG_variable && is_called(&dwarf, &unit, die, symbol) {
                let (owner, _) = inherited(&unit, die, constants::DW_AT_type)?;
                return referred(&unit, &owner, constants::DW_AT_type)
                    .map(|ty| type_info(&dwarf, &unit, &ty, 0));
            }
        }
    }
    None
}

fn type_info<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, die: &Die<'a>, depth: u32) -> TypeInfo {
    let own_name = name(dwarf, unit, die, constants::DW_AT_name);
    let size = die
        .attr_value(constants::DW_AT_byte_size)
        .and_then(|value| value.udata_value());
    let target = (depth < MAX_DEPTH)
        .then(|| referred(unit, die, constants::DW_AT_type))
        .flatten()
        .map(|target| type_info(dwarf, unit, &target, depth + 1));
    let void = || TypeInfo {
        name: "void".to_owned(),
        size: None,
        kind: TypeKind::Other,
    };
    let qualified = |word: &str| {
        let target = target.clone().unwrap_or_else(void);
        let name = match target.kind {
            // qualifiers of a pointer stand behind it
            TypeKind::Pointer(_) => format!("{} {word}", target.name),
            _ => format!("{word} {}", target.name),
        };
        TypeInfo { name, ..target }
    };
    match die.tag() {
        constants::DW_TAG_const_type => qualified("const"),
        constants::DW_TAG_volatile_type => qualified("volatile"),
        constants::DW_TAG_restrict_type => qualified("restrict"),
        constants::DW_TAG_atomic_type => qualified("_Atomic"),
        constants::DW_TAG_typedef => {
            let target = target.unwrap_or_else(void);
            TypeInfo {
                name: own_name.unwrap_or_else(|| target.name.clone()),
                ..target
            }
        }
        constants::DW_TAG_pointer_type
        | constants::DW_TAG_reference_type
        | constants::DW_TAG_rvalue_reference_type => {
            let sign = match die.tag() {
                constants::DW_TAG_pointer_type => "*",
                constants::DW_TAG_reference_type => "&",
                _ => "&&",
            };
            let pointee = target
                .as_ref()
                .map_or("void", |target| target.name.as_str());
            TypeInfo {
                name: format!("{pointee}{sign}"),
                size: size.or(Some(8)),
                kind: TypeKind::Pointer(target.map(Box::new)),
            }
        }
        constants::DW_TAG_base_type => TypeInfo {
            name: own_name.unwrap_or_else(|| "?".to_owned()),
            size,
            kind: TypeKind::Base(match die.attr_value(constants::DW_AT_encoding) {
                Some(AttributeValue::Encoding(encoding)) => match encoding {
                    constants::DW_ATE_signed => BaseEncoding::Signed,
                    constants::DW_ATE_unsigned => BaseEncoding::Unsigned,
                    constants::DW_ATE_float => BaseEncoding::Float,
                    constants::DW_ATE_boolean => BaseEncoding::Boolean,
                    constants::DW_ATE_signed_char => BaseEncoding::Character { signed: true },
                    constants::DW_ATE_unsigned_char | constants::DW_ATE_UTF => {
                        BaseEncoding::Character { signed: false }
                    }
                    _ => BaseEncoding::Other,
                },
                _ => BaseEncoding::Other,
            }),
        },
        constants::DW_TAG_array_type => {
            let element = target.unwrap_or_else(void);
            let count = element_count(unit, die.offset());
            let suffix = count.map_or_else(String::new, |count| count.to_string());
            TypeInfo {
                name: own_name.unwrap_or_else(|| format!("{}[{suffix}]", element.name)),
                size: size.or_else(|| element.size?.checked_mul(count?)),
                kind: TypeKind::Array {
                    element: Box::new(element),
                    count,
                },
            }
        }
        tag @ (constants::DW_TAG_structure_type
        | constants::DW_TAG_class_type
        | constants::DW_TAG_union_type
        | constants::DW_TAG_enumeration_type) => {
            let (word, kind) = match tag {
                constants::DW_TAG_enumeration_type => ("enum", TypeKind::Enumeration),
                constants::DW_TAG_union_type => ("union", TypeKind::Aggregate),
                _ => ("struct", TypeKind::Aggregate),
            };
            TypeInfo {
                name: own_name.unwrap_or_else(|| format!("{word} (unnamed)")),
                size,
                kind,
            }
        }
        _ => TypeInfo {
            name: own_name.unwrap_or_else(|| "?".to_owned()),
            size,
            kind: TypeKind::Other,
        },
    }
}

/// Product of the subranges of an array type.
fn element_count(unit: &Unit<'_>, array: UnitOffset) -> Option<u64> {
    let mut tree = unit.entries_tree(Some(array)).ok()?;
    let mut children = tree.root().ok()?.children();
    let mut count = None;
    while let Ok(Some(child)) = children.next() {
        let die = child.entry();
        if die.tag() == constants::DW_TAG_subrange_type {
            let elements = match die
                .attr_value(constants::DW_AT_count)
                .and_then(|value| value.udata_value())
            {
                Some(elements) => elements,
                None => die
                    .attr_value(constants::DW_AT_upper_bound)?
                    .udata_value()?
                    .checked_add(1)?,
            };
            count = Some(count.unwrap_or(1_u64).checked_mul(elements)?);
        }
    }
    count
}
