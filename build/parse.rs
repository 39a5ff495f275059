//! Text of one table file to rows; every error names file and line.

/// Encodings as the tables spell them, with the Rust variant and the number of opcodes the field has.
pub(crate) const ENCODINGS: &[(&str, &str, u16)] = &[
    ("sop2", "Sop2", 128),
    ("sop1", "Sop1", 256),
    ("sopk", "Sopk", 32),
    ("sopc", "Sopc", 128),
    ("sopp", "Sopp", 128),
    ("smem", "Smem", 256),
    ("vop1", "Vop1", 256),
    ("vop2", "Vop2", 64),
    ("vopc", "Vopc", 256),
    ("vop3", "Vop3", 1024),
    ("vop3p", "Vop3p", 256),
    ("vop3px", "Vop3px", 512),
    ("vopdx", "VopdX", 16),
    ("vopdy", "VopdY", 32),
    ("vopd3x", "Vopd3X", 64),
    ("vopd3y", "Vopd3Y", 64),
    ("vinterp", "Vinterp", 128),
    ("vintrp", "Vintrp", 4),
    ("ldsdir", "Ldsdir", 4),
    ("ds", "Ds", 256),
    ("flat", "Flat", 256),
    ("global", "Global", 256),
    ("scratch", "Scratch", 256),
    ("mubuf", "Mubuf", 256),
    ("mtbuf", "Mtbuf", 256),
    ("mimg", "Mimg", 256),
    ("exp", "Exp", 2),
];

/// Fields as the tables spell them, with the Rust variant; `+` marks one that is read and written.
const FIELDS: &[(&str, &str)] = &[
    ("vdst", "Vdst"),
    ("vdst+", "VdstTied"),
    ("sdst", "Sdst"),
    ("sdst+", "SdstTied"),
    ("vccdst", "VccDst"),
    ("vccsrc", "VccSrc"),
    ("execdst", "ExecDst"),
    ("src0", "Src0"),
    ("src1", "Src1"),
    ("src2", "Src2"),
    ("ssrc0", "Ssrc0"),
    ("ssrc1", "Ssrc1"),
    ("simm16", "Simm16"),
    ("simm32", "Simm32"),
    ("sbase", "Sbase"),
    ("soffset", "Soffset"),
    ("sdata", "Sdata"),
    ("sdata+", "SdataTied"),
    ("vaddr", "Vaddr"),
    ("saddr", "Saddr"),
    ("vdata", "Vdata"),
    ("vdata+", "VdataTied"),
    ("data0", "Data0"),
    ("data1", "Data1"),
    ("srsrc", "Srsrc"),
    ("ssamp", "Ssamp"),
    ("scale0", "Scale0"),
    ("scale1", "Scale1"),
    ("group0", "Group0"),
    ("group1", "Group1"),
    ("group2", "Group2"),
    ("group3", "Group3"),
];

/// Types as the tables spell them, with the Rust variant and the dwords of a plain operand.
const TYPES: &[(&str, &str, u8)] = &[
    ("b8", "B8", 1),
    ("b16", "B16", 1),
    ("b32", "B32", 1),
    ("b64", "B64", 2),
    ("b96", "B96", 3),
    ("b128", "B128", 4),
    ("b256", "Bits", 8),
    ("b512", "Bits", 16),
    ("i8", "I8", 1),
    ("u8", "U8", 1),
    ("i16", "I16", 1),
    ("u16", "U16", 1),
    ("i24", "I24", 1),
    ("u24", "U24", 1),
    ("i32", "I32", 1),
    ("u32", "U32", 1),
    ("i64", "I64", 2),
    ("u64", "U64", 2),
    ("f16", "F16", 1),
    ("bf16", "Bf16", 1),
    ("f32", "F32", 1),
    ("f64", "F64", 2),
    ("pk_f16", "PkF16", 1),
    ("pk_bf16", "PkBf16", 1),
    ("pk_i16", "PkI16", 1),
    ("pk_u16", "PkU16", 1),
    ("pk_b16", "PkB16", 1),
    ("pk_f32", "PkF32", 2),
    ("pk_b32", "PkB32", 2),
    ("mix_f16", "MixF16", 1),
    ("mix_bf16", "MixBf16", 1),
    ("pk4_i8", "Pk4I8", 1),
    ("pk8_i4", "Pk8I4", 1),
    ("mask", "Mask", 0),
    ("matrix", "Matrix", 1),
    ("imm", "Imm", 0),
    ("label", "Label", 0),
    ("wait", "Wait", 0),
    ("hwreg", "Hwreg", 0),
    ("message", "Message", 0),
    ("delay", "Delay", 0),
    ("gpr_idx", "GprIdx", 0),
    ("depctr", "Depctr", 0),
];

/// Flags as the tables spell them, with the constant of `RowFlags`.
pub(crate) const FLAGS: &[(&str, &str)] = &[
    ("e32", "E32_ONLY"),
    ("mai", "MAI"),
    ("rtn", "RTN"),
    ("offset2", "OFFSET2"),
    ("gds", "GDS"),
    ("lds", "LDS"),
    ("opsel", "OP_SEL"),
    ("clamp", "CLAMP"),
    ("mods", "MODS"),
    ("noclamp", "NO_CLAMP"),
    ("bitop3", "BITOP3"),
    ("scales", "SCALES"),
    ("formats", "FORMATS"),
];

const TRUSTS: &[(&str, &str)] = &[
    ("hardware", "Hardware"),
    ("manual", "Manual"),
    ("derived", "Derived"),
    ("approximate", "Approximate"),
];

/// Where a row stands, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: usize,
}

impl Place {
    pub(crate) fn fail<T>(&self, what: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("{}:{}: {what}", self.file, self.line))
    }
}

/// One operand: Rust names of field and type, dwords in wave32 and in wave64.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    pub(crate) field: &'static str,
    pub(crate) ty: &'static str,
    pub(crate) dwords: u8,
    pub(crate) wave64_dwords: u8,
}

/// One opcode slot.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) place: Place,
    /// Index into [`ENCODINGS`].
    pub(crate) encoding: usize,
    pub(crate) opcode: u16,
    pub(crate) mnemonic: String,
    pub(crate) operands: Vec<Operand>,
    /// Constants of `RowFlags`.
    pub(crate) flags: Vec<&'static str>,
    /// The operation's name, or why there is none.
    pub(crate) semantics: Result<String, String>,
    pub(crate) trust: &'static str,
}

/// Inclusive opcode ranges of an encoding that a family does not inherit.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) place: Place,
    pub(crate) encoding: usize,
    pub(crate) first: u16,
    pub(crate) last: u16,
}

/// One table file.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    /// Where the VOP3 forms of VOP1, VOP2 and VOPC opcodes begin.
    pub(crate) vop3: Option<[u16; 3]>,
    pub(crate) removals: Vec<Removal>,
    pub(crate) rows: Vec<Row>,
}

pub(crate) fn encoding(name: &str) -> Option<usize> {
    ENCODINGS.iter().position(|e| e.0 == name)
}

/// RDNA4's names of formats that differ from older ones in their words only.
const RDNA4_NAMES: &[(&str, &str)] = &[
    ("vflat", "flat"),
    ("vglobal", "global"),
    ("vscratch", "scratch"),
    ("vimage", "mimg"),
    ("vsample", "mimg"),
    ("vexport", "exp"),
    ("vdsdir", "ldsdir"),
];

/// The encoding of a row; VBUFFER's opcodes from 128 on are the typed ones.
fn row_encoding(name: &str, opcode: u16) -> Option<usize> {
    let name = match name {
        "vbuffer" if opcode >= 128 => "mtbuf",
        "vbuffer" => "mubuf",
        name => named(RDNA4_NAMES, name).unwrap_or(name),
    };
    encoding(name)
}

fn named<T: Copy>(list: &[(&str, T)], name: &str) -> Option<T> {
    list.iter()
        .find(|entry| entry.0 == name)
        .map(|entry| entry.1)
}

/// Parses one file.
pub(crate) fn family(file: &str, text: &str) -> Result<Family, String> {
    let mut family: Option<Family> = None;
    for (index, line) in text.lines().enumerate() {
        let place = Place {
            file: file.to_owned(),
            line: index + 1,
        };
        let line = line.split('#').next().unwrap_or_default().trim();
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first == "family" {
            if family.is_some() {
                return place.fail("a file holds one family");
            }
            let words: Vec<&str> = words.collect();
            let (name, parent) = match words[..] {
                [name] => (name, None),
                [name, ":", parent] => (name, Some(parent.to_owned())),
                _ => return place.fail("expected `family NAME` or `family NAME : PARENT`"),
            };
            family = Some(Family {
                place,
                name: name.to_owned(),
                parent,
                vop3: None,
                removals: vec![],
                rows: vec![],
            });
            continue;
        }
        let Some(family) = family.as_mut() else {
            return place.fail("the first statement is `family NAME`");
        };
        match first {
            "vop3" if line.contains("vop1+") => family.vop3 = Some(vop3_bases(&place, words)?),
            "remove" => removals(&place, words, &mut family.removals)?,
            _ => family.rows.push(row(place, first, line)?),
        }
    }
    family.ok_or_else(|| format!("{file}: no `family` statement"))
}

fn vop3_bases<'a>(place: &Place, words: impl Iterator<Item = &'a str>) -> Result<[u16; 3], String> {
    let mut bases = [0; 3];
    for word in words {
        let Some((name, base)) = word.split_once('+') else {
            return place.fail(format_args!("expected ENCODING+OPCODE, found `{word}`"));
        };
        let Some(slot) = ["vop1", "vop2", "vopc"].iter().position(|n| *n == name) else {
            return place.fail(format_args!("`{name}` has no VOP3 form"));
        };
        bases[slot] = base
            .parse()
            .or_else(|e| place.fail(format_args!("`{base}`: {e}")))?;
    }
    Ok(bases)
}

fn removals<'a>(
    place: &Place,
    mut words: impl Iterator<Item = &'a str>,
    list: &mut Vec<Removal>,
) -> Result<(), String> {
    let name = words.next().unwrap_or_default();
    for range in words {
        let (first, last) = range.split_once("..").unwrap_or((range, range));
        let number = |text: &str| {
            text.parse()
                .or_else(|e| place.fail(format_args!("opcode `{text}`: {e}")))
        };
        let first = number(first)?;
        let Some(encoding) = row_encoding(name, first) else {
            return place.fail(format_args!("unknown encoding `{name}`"));
        };
        list.push(Removal {
            place: place.clone(),
            encoding,
            first,
            last: number(last)?,
        });
    }
    Ok(())
}

/// `ENCODING OPCODE MNEMONIC field:type… [flags] SEMANTICS TRUST`, or `-reason` for the last two.
fn row(place: Place, encoding_name: &str, line: &str) -> Result<Row, String> {
    // the reason is free text, so it is cut off first
    let (line, reason) = match line.find(" -") {
        Some(at) => (&line[..at], Some(line[at + 2..].trim().to_owned())),
        None => (line, None),
    };
    let mut rest = line.split_whitespace().skip(1).peekable();
    let (Some(opcode), Some(mnemonic)) = (rest.next(), rest.next()) else {
        return place.fail("expected ENCODING OPCODE MNEMONIC");
    };
    let opcode: u16 = opcode
        .parse()
        .or_else(|e| place.fail(format_args!("opcode `{opcode}`: {e}")))?;
    let Some(encoding) = row_encoding(encoding_name, opcode) else {
        return place.fail(format_args!("unknown encoding `{encoding_name}`"));
    };
    if opcode >= ENCODINGS[encoding].2 {
        return place.fail(format_args!("{encoding_name} has no opcode {opcode}"));
    }
    let mut operands = Vec::new();
    while let Some(word) = rest.next_if(|word| word.contains(':')) {
        operands.push(operand(&place, word)?);
    }
    let mut flags = Vec::new();
    if let Some(word) = rest.next_if(|word| word.starts_with('[')) {
        let mut word = word.trim_start_matches('[');
        loop {
            let name = word.trim_end_matches(']');
            match named(FLAGS, name) {
                Some(flag) => flags.push(flag),
                None => return place.fail(format_args!("unknown flag `{name}`")),
            }
            if word.ends_with(']') {
                break;
            }
            word = match rest.next() {
                Some(next) => next,
                None => return place.fail("`[` without `]`"),
            };
        }
    }
    let (semantics, trust) = match reason {
        Some(reason) => (Err(reason), "Manual"),
        None => {
            let (Some(name), Some(trust)) = (rest.next(), rest.next()) else {
                return place.fail("expected SEMANTICS and TRUST, or `-reason`");
            };
            let name = if name == "=" { mnemonic } else { name };
            if !name
                .bytes()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
            {
                return place.fail(format_args!("`{name}` is not a semantics name"));
            }
            let Some(trust) = named(TRUSTS, trust) else {
                return place.fail(format_args!("unknown trust `{trust}`"));
            };
            (Ok(name.to_owned()), trust)
        }
    };
    if let Some(word) = rest.next() {
        return place.fail(format_args!("`{word}` is left over"));
    }
    Ok(Row {
        place,
        encoding,
        opcode,
        mnemonic: mnemonic.to_owned(),
        operands,
        flags,
        semantics,
        trust,
    })
}

/// `field:type`, `field:type*DWORDS` or `field:type*WAVE32/WAVE64`.
fn operand(place: &Place, word: &str) -> Result<Operand, String> {
    let Some((field, ty)) = word.split_once(':') else {
        return place.fail(format_args!("expected FIELD:TYPE, found `{word}`"));
    };
    let Some(field) = named(FIELDS, field) else {
        return place.fail(format_args!("unknown field `{field}`"));
    };
    let (ty, count) = ty
        .split_once('*')
        .map_or((ty, None), |(ty, count)| (ty, Some(count)));
    let Some(&(_, ty, plain)) = TYPES.iter().find(|t| t.0 == ty) else {
        return place.fail(format_args!("unknown type `{ty}`"));
    };
    let number = |text: &str| {
        text.parse::<u8>()
            .or_else(|e| place.fail(format_args!("dwords `{text}`: {e}")))
    };
    let (dwords, wave64_dwords) = match count.map(|c| c.split_once('/').ok_or(c)) {
        None => (plain, plain),
        Some(Err(both)) => (number(both)?, number(both)?),
        Some(Ok((wave32, wave64))) => (number(wave32)?, number(wave64)?),
    };
    Ok(Operand {
        field,
        ty,
        dwords,
        wave64_dwords,
    })
}
