//! Image, export and interpolation instructions, printed from their words: the embedded GPU has no
//! graphics pipe, so decode keeps no operands of them beyond the registers.
use std::fmt::Write as _;

use super::super::family::Generation;
use super::super::row::Field;
use super::operands::Printer;

/// Address components of RDNA's image dimensions: name, coordinates, gradients.
const DIMENSIONS: [(&str, u32, u32); 8] = [
    ("1D", 1, 2),
    ("2D", 2, 4),
    ("3D", 3, 6),
    ("CUBE", 3, 4),
    ("1D_ARRAY", 2, 2),
    ("2D_ARRAY", 3, 4),
    ("2D_MSAA", 3, 4),
    ("2D_MSAA_ARRAY", 4, 4),
];

/// Extra address words by the parts of a mnemonic such as `image_sample_c_d_cl_o_g16`.
struct AddressParts {
    /// Offset, bias and compare value: a word each.
    extra: u32,
    gradients: bool,
    g16: bool,
    /// A level of detail, its clamp or a mip level.
    lod: bool,
    coordinates: bool,
}

fn address_parts(mnemonic: &str) -> AddressParts {
    let mut parts = AddressParts {
        extra: 0,
        gradients: false,
        g16: false,
        lod: false,
        coordinates: true,
    };
    for part in mnemonic.split('_').skip(2) {
        match part {
            "o" | "b" | "c" => parts.extra += 1,
            "d" => parts.gradients = true,
            "g16" => parts.g16 = true,
            "l" | "cl" | "mip" => parts.lod = true,
            "resinfo" => {
                parts.lod = true;
                parts.coordinates = false;
            }
            _ => {}
        }
    }
    parts
}

/// What an RDNA image instruction's words say, but for the address.
struct Fields {
    vdata: u16,
    dmask: u32,
    dimension: usize,
    unorm: bool,
    r128: bool,
    a16: bool,
    tfe: bool,
    lwe: bool,
    d16: bool,
    /// Address registers in the order of the fields; the last one may begin a tuple.
    addresses: Addresses,
}

/// Where the address is.
enum Addresses {
    /// Consecutive registers from here.
    Packed(u16),
    /// As many registers as there are fields, one each.
    Separate(Vec<u16>),
}

impl Printer<'_> {
    pub(super) fn image(&mut self) {
        match self.family.generation() {
            Generation::Gfx8 | Generation::Gfx9 => self.image_gcn(),
            _ if self.inst.row.mnemonic.starts_with("tensor_") => self.tensor(),
            _ if self.inst.row.mnemonic.starts_with("image_bvh") => self.ray(&self.fields()),
            _ => self.image_rdna(&self.fields()),
        }
    }

    /// Tensor copies; the last two descriptor groups may be missing.
    fn tensor(&mut self) {
        let row = self.inst.row;
        let null = self.family.null();
        let missing = |operand: &super::super::inst::Operand| matches!(operand, super::super::inst::Operand::Sgpr { index, .. } if Some(*index) == null);
        let operands = self.inst.operands();
        let groups = if operands.iter().skip(2).all(missing) {
            2
        } else {
            operands.len()
        };
        self.text.push_str(row.mnemonic);
        for (at, (spec, operand)) in row.operands.iter().zip(operands).take(groups).enumerate() {
            self.text.push_str(if at == 0 { " " } else { ", " });
            self.operand(row, spec, *operand);
        }
        self.cache_policy(self.inst.mods.cpol);
    }

    /// Ray intersections: node, extent, origin, direction and its inverse.
    fn ray(&mut self, fields: &Fields) {
        let mnemonic = self.inst.row.mnemonic;
        let node = 1 + u32::from(
            mnemonic.contains("64") || mnemonic.contains("bvh8") || mnemonic.contains("dual"),
        );
        let generation = self.family.generation();
        let tuples: &[u32] = match (generation, fields.a16) {
            (Generation::Gfx12, _) if mnemonic.contains("bvh8") => &[2, 2, 3, 3, 1],
            (Generation::Gfx12, _) if mnemonic.contains("dual") => &[2, 2, 3, 3, 2],
            (Generation::Gfx10, false) => &[1; 12],
            (Generation::Gfx10, true) => &[1; 9],
            (_, false) if node == 2 => &[2, 1, 3, 3, 3],
            (_, false) => &[1, 1, 3, 3, 3],
            (_, true) if node == 2 => &[2, 1, 3, 3],
            (_, true) => &[1, 1, 3, 3],
        };
        let total: u32 = match generation {
            Generation::Gfx10 => tuples.len() as u32 - 2 + node,
            _ => tuples.iter().sum(),
        };
        let data = if mnemonic.contains("dual") || mnemonic.contains("bvh8") {
            10
        } else {
            4
        };
        write!(self.text, "{mnemonic} ").ok();
        self.tuple('v', fields.vdata, data);
        self.text.push_str(", ");
        match &fields.addresses {
            Addresses::Separate(registers) => {
                self.text.push('[');
                let count = if generation == Generation::Gfx10 {
                    total as usize
                } else {
                    tuples.len()
                };
                for (at, (register, dwords)) in registers.iter().zip(tuples).take(count).enumerate()
                {
                    if at > 0 {
                        self.text.push_str(", ");
                    }
                    self.tuple('v', *register, *dwords as u8);
                }
                self.text.push(']');
            }
            Addresses::Packed(first) => self.tuple('v', *first, total as u8),
        }
        self.resource_and_sampler();
        if fields.a16 {
            self.text.push_str(" a16");
        }
    }

    fn fields(&self) -> Fields {
        let [low, high, third, ..] = self.inst.words;
        let bit = |word: u32, at: u32| word >> at & 1 != 0;
        let byte = |word: u32, at: u32| (word >> (8 * at) & 0xff) as u16;
        match self.family.generation() {
            Generation::Gfx12 => {
                let sample = low >> 26 == 0b11_1001;
                let mut addresses: Vec<u16> = (0..4).map(|at| byte(third, at)).collect();
                if !sample {
                    addresses.push(byte(high, 3));
                }
                Fields {
                    vdata: byte(high, 0),
                    dmask: low >> 22 & 0xf,
                    dimension: (low & 7) as usize,
                    unorm: sample && bit(low, 13),
                    r128: bit(low, 4),
                    a16: bit(low, 6),
                    tfe: if sample { bit(low, 3) } else { bit(high, 23) },
                    lwe: sample && bit(high, 8),
                    d16: bit(low, 5),
                    addresses: Addresses::Separate(addresses),
                }
            }
            Generation::Gfx11 => Fields {
                vdata: byte(high, 1),
                dmask: low >> 8 & 0xf,
                dimension: (low >> 2 & 7) as usize,
                unorm: bit(low, 7),
                r128: bit(low, 15),
                a16: bit(low, 16),
                tfe: bit(high, 21),
                lwe: bit(high, 22),
                d16: bit(low, 17),
                addresses: self.addresses(bit(low, 0).into()),
            },
            _ => Fields {
                vdata: byte(high, 1),
                dmask: low >> 8 & 0xf,
                dimension: (low >> 3 & 7) as usize,
                unorm: bit(low, 12),
                r128: bit(low, 15),
                a16: bit(high, 30),
                tfe: bit(low, 16),
                lwe: bit(low, 17),
                d16: bit(high, 31),
                addresses: self.addresses(low >> 1 & 3),
            },
        }
    }

    /// The address of RDNA1 to RDNA3, in the second word and `extra` more.
    fn addresses(&self, extra: u32) -> Addresses {
        let words = &self.inst.words;
        let first = (words[1] & 0xff) as u16;
        if extra == 0 {
            return Addresses::Packed(first);
        }
        let rest =
            (0..4 * extra as usize).map(|at| (words[2 + at / 4] >> (8 * (at % 4)) & 0xff) as u16);
        Addresses::Separate(std::iter::once(first).chain(rest).collect())
    }

    /// Registers of the data operand.
    fn data_dwords(&self, dmask: u32, d16: bool, tfe: bool) -> u8 {
        let mnemonic = self.inst.row.mnemonic;
        let mut dwords = dmask.count_ones().max(1);
        if mnemonic.starts_with("image_gather4") || mnemonic == "image_msaa_load" {
            dwords = 4;
        }
        // GCN3 does not pack halves
        if d16 && self.family.generation() > Generation::Gfx8 {
            dwords = dwords.div_ceil(2);
        }
        (dwords + u32::from(tfe)) as u8
    }

    fn resource_and_sampler(&mut self) {
        for operand in &self.inst.operands[2..self.inst.row.operands.len()] {
            if let super::super::inst::Operand::Sgpr { index, dwords } = *operand {
                self.text.push_str(", ");
                self.scalar(index, dwords);
            }
        }
    }

    fn image_gcn(&mut self) {
        let [low, high, ..] = self.inst.words;
        let bit = |at: u32| low >> at & 1 != 0;
        let dmask = low >> 8 & 0xf;
        let acc = self.family.has_memory_agprs();
        let tfe = !acc && bit(16);
        let d16 = high >> 31 != 0;
        write!(self.text, "{} ", self.inst.row.mnemonic).ok();
        let letter = if acc && bit(16) { 'a' } else { 'v' };
        self.tuple(
            letter,
            (high >> 8 & 0xff) as u16,
            self.data_dwords(dmask, d16, tfe),
        );
        write!(self.text, ", v{}", high & 0xff).ok();
        self.resource_and_sampler();
        if dmask != 0 {
            write!(self.text, " dmask:{dmask:#x}").ok();
        }
        let gfx8 = self.family.generation() == Generation::Gfx8;
        for (set, name) in [
            (bit(12), " unorm"),
            (bit(13), " glc"),
            (bit(25), " slc"),
            (acc && bit(7), " scc"),
            (gfx8 && bit(15), " r128"),
            (!gfx8 && bit(15), " a16"),
            (tfe, " tfe"),
            (bit(17), " lwe"),
            (bit(14), " da"),
            (d16, " d16"),
        ] {
            if set {
                self.text.push_str(name);
            }
        }
    }

    /// Words that the address takes.
    fn address_words(&self, fields: &Fields) -> u32 {
        let (_, coordinates, gradients) = DIMENSIONS[fields.dimension];
        let parts = address_parts(self.inst.row.mnemonic);
        let mut components = u32::from(parts.lod);
        if parts.coordinates {
            components += coordinates;
        }
        let mut words = parts.extra
            + if fields.a16 {
                components.div_ceil(2)
            } else {
                components
            };
        if parts.gradients {
            let half = parts.g16
                || fields.a16
                    && self.family.generation() == Generation::Gfx10
                    && self.family != super::super::family::IsaFamily::Gfx1030;
            words += if half {
                (gradients / 2).next_multiple_of(2)
            } else {
                gradients
            };
        }
        words
    }

    fn image_rdna(&mut self, fields: &Fields) {
        let words = self.address_words(fields);
        write!(self.text, "{} ", self.inst.row.mnemonic).ok();
        self.tuple(
            'v',
            fields.vdata,
            self.data_dwords(fields.dmask, fields.d16, fields.tfe),
        );
        self.text.push_str(", ");
        match &fields.addresses {
            Addresses::Separate(registers) if words > 1 => {
                self.text.push('[');
                // RDNA3 and RDNA4 put what is left into consecutive registers
                let fields = registers.len() as u32;
                for (at, register) in (0..words.min(fields)).zip(registers) {
                    if at > 0 {
                        self.text.push_str(", ");
                    }
                    let rest = if at + 1 == fields { words - at } else { 1 };
                    self.tuple('v', *register, rest as u8);
                }
                self.text.push(']');
            }
            Addresses::Separate(registers) => {
                self.tuple('v', registers.first().copied().unwrap_or_default(), 1);
            }
            Addresses::Packed(first) => {
                let dwords = if words > 12 { 16 } else { words };
                self.tuple('v', *first, dwords as u8);
            }
        }
        self.resource_and_sampler();
        if fields.dmask != 0 {
            write!(self.text, " dmask:{:#x}", fields.dmask).ok();
        }
        let (dimension, ..) = DIMENSIONS[fields.dimension];
        write!(self.text, " dim:SQ_RSRC_IMG_{dimension}").ok();
        if fields.unorm {
            self.text.push_str(" unorm");
        }
        self.cache_policy(self.image_policy());
        for (set, name) in [
            (fields.r128, " r128"),
            (fields.a16, " a16"),
            (fields.tfe, " tfe"),
            (fields.lwe, " lwe"),
            (fields.d16, " d16"),
        ] {
            if set {
                self.text.push_str(name);
            }
        }
    }

    /// The cache policy as [`super::super::inst::Mods::cpol`] has it.
    fn image_policy(&self) -> u8 {
        let low = self.inst.words[0];
        let bit = |at: u32| (low >> at & 1) as u8;
        match self.family.generation() {
            Generation::Gfx12 => self.inst.mods.cpol,
            Generation::Gfx11 => bit(14) | bit(12) << 1 | bit(13) << 2,
            _ => bit(13) | bit(25) << 1 | bit(7) << 2,
        }
    }

    pub(super) fn export(&mut self) {
        let [low, high, ..] = self.inst.words;
        let generation = self.family.generation();
        let gfx9 = self.family.is_gcn();
        let target = low >> 4 & 0x3f;
        write!(self.text, "{} ", self.inst.row.mnemonic).ok();
        match target {
            0..=7 => write!(self.text, "mrt{target}"),
            8 => write!(self.text, "mrtz"),
            9 if generation < Generation::Gfx11 => write!(self.text, "null"),
            12..=15 => write!(self.text, "pos{}", target - 12),
            16 if !gfx9 => write!(self.text, "pos4"),
            20 if !gfx9 => write!(self.text, "prim"),
            21 | 22 if generation >= Generation::Gfx11 => {
                write!(self.text, "dual_src_blend{}", target - 21)
            }
            32..=63 if generation < Generation::Gfx11 => write!(self.text, "param{}", target - 32),
            _ => write!(self.text, "invalid_target_{target}"),
        }
        .ok();
        for at in 0..4 {
            self.text.push_str(if at == 0 { " " } else { ", " });
            // a compressed export has two halves in each of two registers
            let compressed = generation < Generation::Gfx11 && low >> 10 & 1 != 0;
            let register = if compressed { at / 2 } else { at };
            if low >> at & 1 != 0 {
                write!(self.text, "v{}", high >> (8 * register) & 0xff).ok();
            } else {
                self.text.push_str("off");
            }
        }
        let flags: [(u32, &str); 3] = if generation < Generation::Gfx11 {
            [(11, " done"), (10, " compr"), (12, " vm")]
        } else {
            [(11, " done"), (13, " row_en"), (31, "")]
        };
        for (bit, name) in flags {
            if low >> bit & 1 != 0 {
                self.text.push_str(name);
            }
        }
    }

    /// ` attrN.c`.
    fn attribute(&mut self, word: u32) {
        let channel = ["x", "y", "z", "w"][(word >> 8 & 3) as usize];
        write!(self.text, ", attr{}.{channel}", word >> 10 & 0x3f).ok();
    }

    pub(super) fn vintrp(&mut self) {
        let word = self.inst.words[0];
        write!(
            self.text,
            "{}_e32 v{}, ",
            self.inst.row.mnemonic,
            word >> 18 & 0xff
        )
        .ok();
        let source = word & 0xff;
        match (self.inst.row.mnemonic, source) {
            ("v_interp_mov_f32", 0) => self.text.push_str("p10"),
            ("v_interp_mov_f32", 1) => self.text.push_str("p20"),
            ("v_interp_mov_f32", 2) => self.text.push_str("p0"),
            ("v_interp_mov_f32", _) => {
                write!(self.text, "invalid_param_{source}").ok();
            }
            _ => {
                write!(self.text, "v{source}").ok();
            }
        }
        self.attribute(word);
    }

    /// VOP3 forms of the parameter interpolation (GCN, RDNA1 and RDNA2): attribute, channel and half lie
    /// in the field of source 0.
    pub(super) fn interpolation(&mut self) {
        let row = self.inst.row;
        let [low, high, ..] = self.inst.words;
        let suffix = if row.mnemonic.ends_with("_f32") {
            "_e64"
        } else {
            ""
        };
        write!(self.text, "{}{suffix} v{}, ", row.mnemonic, low & 0xff).ok();
        let sources = [(1, high >> 9 & 0x1ff), (2, high >> 18 & 0x1ff)];
        let third = row.mnemonic.starts_with("v_interp_p1lv")
            || row.mnemonic.starts_with("v_interp_p2_") && !row.mnemonic.ends_with("_f32");
        for (at, code) in &sources[..1 + usize::from(third)] {
            if *at == 2 {
                self.text.push_str(", ");
            }
            if row.mnemonic == "v_interp_mov_f32" {
                match code {
                    0 => self.text.push_str("p10"),
                    1 => self.text.push_str("p20"),
                    2 => self.text.push_str("p0"),
                    _ => {
                        write!(self.text, "invalid_param_{code}").ok();
                    }
                }
            } else if let Some((spec, operand)) =
                row.operands
                    .iter()
                    .zip(&self.inst.operands)
                    .find(|(spec, _)| match at {
                        1 => spec.field == Field::Src1,
                        _ => spec.field == Field::Src2,
                    })
            {
                self.operand(row, spec, *operand);
            }
            if *at == 1 {
                let channel = ["x", "y", "z", "w"][(high >> 6 & 3) as usize];
                write!(self.text, ", attr{}.{channel}", high & 0x3f).ok();
            }
        }
        if high >> 8 & 1 != 0 && suffix.is_empty() {
            self.text.push_str(" high");
        }
        self.clamp_and_omod();
    }

    pub(super) fn ldsdir(&mut self) {
        let word = self.inst.words[0];
        write!(self.text, "{} v{}", self.inst.row.mnemonic, word & 0xff).ok();
        if self.inst.row.mnemonic.ends_with("_param_load") {
            self.attribute(word);
        }
        let wait = word >> 16 & 0xf;
        if self.family.generation() >= Generation::Gfx12 {
            let sources = word >> 23 & 1;
            write!(self.text, " wait_va_vdst:{wait} wait_vm_vsrc:{sources}").ok();
        } else {
            write!(self.text, " wait_vdst:{wait}").ok();
        }
    }
}
