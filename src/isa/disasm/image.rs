//! Image, export and interpolation instructions, printed from their words: the embedded GPU has no
//! graphics pipe, so decode keeps no operands of them beyond the registers.
use std::fmt::Write as _;

use super::super::family::Generation;
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

impl Printer<'_> {
    pub(super) fn image(&mut self) {
        match self.family.generation() {
            Generation::Gfx9 => self.image_gfx9(),
            Generation::Gfx11 => self.image_gfx11(),
        }
    }

    /// Registers of the data operand.
    fn data_dwords(&self, dmask: u32, d16: bool, tfe: bool) -> u8 {
        let mnemonic = self.inst.row.mnemonic;
        let mut dwords = dmask.count_ones().max(1);
        if mnemonic.starts_with("image_gather4") || mnemonic == "image_msaa_load" {
            dwords = 4;
        }
        if d16 {
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

    fn image_gfx9(&mut self) {
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
        for (set, name) in [
            (bit(12), " unorm"),
            (bit(13), " glc"),
            (bit(25), " slc"),
            (acc && bit(7), " scc"),
            (bit(15), " a16"),
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

    fn image_gfx11(&mut self) {
        let [low, high, addresses, ..] = self.inst.words;
        let bit = |at: u32| low >> at & 1 != 0;
        let dmask = low >> 8 & 0xf;
        let (a16, d16) = (bit(16), bit(17));
        let (tfe, lwe) = (high >> 21 & 1 != 0, high >> 22 & 1 != 0);
        let (dimension, coordinates, gradients) = DIMENSIONS[(low >> 2 & 7) as usize];
        let parts = address_parts(self.inst.row.mnemonic);
        let mut components = u32::from(parts.lod);
        if parts.coordinates {
            components += coordinates;
        }
        let mut words = parts.extra
            + if a16 {
                components.div_ceil(2)
            } else {
                components
            };
        if parts.gradients {
            words += if parts.g16 {
                (gradients / 2).next_multiple_of(2)
            } else {
                gradients
            };
        }
        write!(self.text, "{} ", self.inst.row.mnemonic).ok();
        self.tuple(
            'v',
            (high >> 8 & 0xff) as u16,
            self.data_dwords(dmask, d16, tfe),
        );
        self.text.push_str(", ");
        let first = (high & 0xff) as u16;
        if bit(0) && words > 1 {
            self.text.push('[');
            write!(self.text, "v{first}").ok();
            for at in 1..words.min(5) {
                let register = (addresses >> (8 * (at - 1)) & 0xff) as u16;
                self.text.push_str(", ");
                let rest = if at == 4 { words - 4 } else { 1 };
                self.tuple('v', register, rest as u8);
            }
            self.text.push(']');
        } else {
            let dwords = if words > 12 { 16 } else { words };
            self.tuple('v', first, dwords as u8);
        }
        self.resource_and_sampler();
        if dmask != 0 {
            write!(self.text, " dmask:{dmask:#x}").ok();
        }
        write!(self.text, " dim:SQ_RSRC_IMG_{dimension}").ok();
        for (set, name) in [
            (bit(7), " unorm"),
            (bit(14), " glc"),
            (bit(12), " slc"),
            (bit(13), " dlc"),
            (bit(15), " r128"),
            (a16, " a16"),
            (tfe, " tfe"),
            (lwe, " lwe"),
            (d16, " d16"),
        ] {
            if set {
                self.text.push_str(name);
            }
        }
    }

    pub(super) fn export(&mut self) {
        let [low, high, ..] = self.inst.words;
        let gfx9 = self.family.generation() == Generation::Gfx9;
        let target = low >> 4 & 0x3f;
        self.text.push_str("exp ");
        match target {
            0..=7 => write!(self.text, "mrt{target}"),
            8 => write!(self.text, "mrtz"),
            9 if gfx9 => write!(self.text, "null"),
            12..=15 => write!(self.text, "pos{}", target - 12),
            16 if !gfx9 => write!(self.text, "pos4"),
            20 if !gfx9 => write!(self.text, "prim"),
            21 | 22 if !gfx9 => write!(self.text, "dual_src_blend{}", target - 21),
            32..=63 if gfx9 => write!(self.text, "param{}", target - 32),
            _ => write!(self.text, "invalid_target_{target}"),
        }
        .ok();
        for at in 0..4 {
            self.text.push_str(if at == 0 { " " } else { ", " });
            if low >> at & 1 != 0 {
                write!(self.text, "v{}", high >> (8 * at) & 0xff).ok();
            } else {
                self.text.push_str("off");
            }
        }
        let flags: [(u32, &str); 3] = if gfx9 {
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

    pub(super) fn ldsdir(&mut self) {
        let word = self.inst.words[0];
        write!(self.text, "{} v{}", self.inst.row.mnemonic, word & 0xff).ok();
        if self.inst.row.mnemonic == "lds_param_load" {
            self.attribute(word);
        }
        write!(self.text, " wait_vdst:{}", word >> 16 & 0xf).ok();
    }
}
