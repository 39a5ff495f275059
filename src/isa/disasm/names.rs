//! Symbolic immediates: counters, hardware registers, messages, formats.
//!
//! Follows AMDGPU operand syntax, sections "hwreg", "msg", "waitcnt", "delay", "fmt".
use std::fmt::Write as _;

use super::super::family::{Generation, IsaFamily};
use super::operands::Printer;

/// Inline constants 240 to 248.
pub(super) const INLINE_FLOATS: [&str; 9] = [
    "0.5",
    "-0.5",
    "1.0",
    "-1.0",
    "2.0",
    "-2.0",
    "4.0",
    "-4.0",
    "0.15915494",
];

/// Their bits as f32.
pub(super) const FLOAT_BITS: [u32; 9] = [
    0x3f00_0000,
    0xbf00_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x4000_0000,
    0xc000_0000,
    0x4080_0000,
    0xc080_0000,
    0x3e22_f983,
];

/// Name of a hardware register of `s_getreg` and `s_setreg`, by family.
fn hardware_register_name(family: IsaFamily, id: u32) -> Option<&'static str> {
    let generation = family.generation();
    if generation == Generation::Gfx12 {
        return rdna4_register_name(family, id);
    }
    let gcn = family.is_gcn();
    let gfx8 = generation == Generation::Gfx8;
    let sc = family.has_sc_bits();
    let trap_bases = matches!(generation, Generation::Gfx9 | Generation::Gfx10);
    Some(match id {
        1 => "HW_REG_MODE",
        2 => "HW_REG_STATUS",
        3 => "HW_REG_TRAPSTS",
        4 if gcn => "HW_REG_HW_ID",
        5 => "HW_REG_GPR_ALLOC",
        6 => "HW_REG_LDS_ALLOC",
        7 => "HW_REG_IB_STS",
        15 if !gfx8 => "HW_REG_SH_MEM_BASES",
        16 if trap_bases => "HW_REG_TBA_LO",
        17 if trap_bases => "HW_REG_TBA_HI",
        18 if trap_bases => "HW_REG_TMA_LO",
        19 if trap_bases => "HW_REG_TMA_HI",
        20 if sc => "HW_REG_XCC_ID",
        21 if sc => "HW_REG_SQ_PERF_SNAPSHOT_DATA",
        22 if sc => "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
        23 if sc => "HW_REG_SQ_PERF_SNAPSHOT_PC_LO",
        24 if sc => "HW_REG_SQ_PERF_SNAPSHOT_PC_HI",
        _ if gcn => return None,
        18 => "HW_REG_PERF_SNAPSHOT_PC_LO",
        19 => "HW_REG_PERF_SNAPSHOT_PC_HI",
        20 => "HW_REG_FLAT_SCR_LO",
        21 => "HW_REG_FLAT_SCR_HI",
        22 if generation == Generation::Gfx10 && family != IsaFamily::Gfx1030 => {
            "HW_REG_XNACK_MASK"
        }
        23 => "HW_REG_HW_ID1",
        24 => "HW_REG_HW_ID2",
        25 if generation == Generation::Gfx10 => "HW_REG_POPS_PACKER",
        27 if generation == Generation::Gfx11 => "HW_REG_PERF_SNAPSHOT_DATA",
        29 if family >= IsaFamily::Gfx1030 => "HW_REG_SHADER_CYCLES",
        _ => return None,
    })
}

fn rdna4_register_name(family: IsaFamily, id: u32) -> Option<&'static str> {
    let gfx1250 = family == IsaFamily::Gfx1250;
    Some(match id {
        1 => "HW_REG_WAVE_MODE",
        2 => "HW_REG_WAVE_STATUS",
        4 => "HW_REG_WAVE_STATE_PRIV",
        5 => "HW_REG_WAVE_GPR_ALLOC",
        6 => "HW_REG_WAVE_LDS_ALLOC",
        7 => "HW_REG_IB_STS",
        10 => "HW_REG_PERF_SNAPSHOT_DATA",
        11 => "HW_REG_PERF_SNAPSHOT_PC_LO",
        12 => "HW_REG_PERF_SNAPSHOT_PC_HI",
        15 => "HW_REG_PERF_SNAPSHOT_DATA1",
        16 => "HW_REG_PERF_SNAPSHOT_DATA2",
        17 => "HW_REG_WAVE_EXCP_FLAG_PRIV",
        18 => "HW_REG_WAVE_EXCP_FLAG_USER",
        19 => "HW_REG_WAVE_TRAP_CTRL",
        20 => "HW_REG_WAVE_SCRATCH_BASE_LO",
        21 => "HW_REG_WAVE_SCRATCH_BASE_HI",
        23 => "HW_REG_WAVE_HW_ID1",
        24 => "HW_REG_WAVE_HW_ID2",
        26 => "HW_REG_WAVE_SCHED_MODE",
        28 if gfx1250 => "HW_REG_IB_STS2",
        29 => "HW_REG_SHADER_CYCLES_LO",
        30 => "HW_REG_SHADER_CYCLES_HI",
        31 => "HW_REG_WAVE_DVGPR_ALLOC_LO",
        32 => "HW_REG_WAVE_DVGPR_ALLOC_HI",
        33 if gfx1250 => "HW_REG_XNACK_STATE_PRIV",
        34 if gfx1250 => "HW_REG_XNACK_MASK",
        _ => return None,
    })
}

fn message_name(family: IsaFamily, id: u32) -> Option<&'static str> {
    let generation = family.generation();
    if generation < Generation::Gfx11 {
        return old_message_name(generation, id);
    }
    let gfx12 = generation == Generation::Gfx12;
    let gfx1250 = family == IsaFamily::Gfx1250;
    Some(match id {
        1 => "MSG_INTERRUPT",
        2 => "MSG_HS_TESSFACTOR",
        3 => "MSG_DEALLOC_VGPRS",
        5 if !gfx12 => "MSG_STALL_WAVE_GEN",
        6 if !gfx12 => "MSG_HALT_WAVES",
        9 => "MSG_GS_ALLOC_REQ",
        10 if gfx1250 => "MSG_SAVEWAVE_HAS_TDM",
        128 => "MSG_RTN_GET_DOORBELL",
        129 => "MSG_RTN_GET_DDID",
        130 => "MSG_RTN_GET_TMA",
        131 => "MSG_RTN_GET_REALTIME",
        132 => "MSG_RTN_SAVE_WAVE",
        133 => "MSG_RTN_GET_TBA",
        134 => "MSG_RTN_GET_TBA_TO_PC",
        135 if gfx12 => "MSG_RTN_GET_SE_AID_ID",
        136 if gfx1250 => "MSG_RTN_GET_CLUSTER_BARRIER_STATE",
        _ => return None,
    })
}

/// Messages up to RDNA2, which have operations and streams.
fn old_message_name(generation: Generation, id: u32) -> Option<&'static str> {
    let gfx8 = generation == Generation::Gfx8;
    Some(match id {
        1 => "MSG_INTERRUPT",
        2 => "MSG_GS",
        3 => "MSG_GS_DONE",
        4 => "MSG_SAVEWAVE",
        5 if !gfx8 => "MSG_STALL_WAVE_GEN",
        6 if !gfx8 => "MSG_HALT_WAVES",
        7 if !gfx8 => "MSG_ORDERED_PS_DONE",
        8 if !gfx8 => "MSG_EARLY_PRIM_DEALLOC",
        9 if !gfx8 => "MSG_GS_ALLOC_REQ",
        10 if !gfx8 => "MSG_GET_DOORBELL",
        11 if generation == Generation::Gfx10 => "MSG_GET_DDID",
        15 => "MSG_SYSMSG",
        _ => return None,
    })
}

/// Data formats of GCN's typed buffer instructions.
const DATA_FORMATS: [&str; 16] = [
    "INVALID",
    "8",
    "16",
    "8_8",
    "32",
    "16_16",
    "10_11_11",
    "11_11_10",
    "10_10_10_2",
    "2_10_10_10",
    "8_8_8_8",
    "32_32",
    "16_16_16_16",
    "32_32_32",
    "32_32_32_32",
    "RESERVED_15",
];

const NUMBER_FORMATS: [&str; 8] = [
    "UNORM",
    "SNORM",
    "USCALED",
    "SSCALED",
    "UINT",
    "SINT",
    "RESERVED_6",
    "FLOAT",
];

/// Unified formats of RDNA3.
const UNIFIED_FORMATS: [&str; 64] = [
    "INVALID",
    "8_UNORM",
    "8_SNORM",
    "8_USCALED",
    "8_SSCALED",
    "8_UINT",
    "8_SINT",
    "16_UNORM",
    "16_SNORM",
    "16_USCALED",
    "16_SSCALED",
    "16_UINT",
    "16_SINT",
    "16_FLOAT",
    "8_8_UNORM",
    "8_8_SNORM",
    "8_8_USCALED",
    "8_8_SSCALED",
    "8_8_UINT",
    "8_8_SINT",
    "32_UINT",
    "32_SINT",
    "32_FLOAT",
    "16_16_UNORM",
    "16_16_SNORM",
    "16_16_USCALED",
    "16_16_SSCALED",
    "16_16_UINT",
    "16_16_SINT",
    "16_16_FLOAT",
    "10_11_11_FLOAT",
    "11_11_10_FLOAT",
    "10_10_10_2_UNORM",
    "10_10_10_2_SNORM",
    "10_10_10_2_UINT",
    "10_10_10_2_SINT",
    "2_10_10_10_UNORM",
    "2_10_10_10_SNORM",
    "2_10_10_10_USCALED",
    "2_10_10_10_SSCALED",
    "2_10_10_10_UINT",
    "2_10_10_10_SINT",
    "8_8_8_8_UNORM",
    "8_8_8_8_SNORM",
    "8_8_8_8_USCALED",
    "8_8_8_8_SSCALED",
    "8_8_8_8_UINT",
    "8_8_8_8_SINT",
    "32_32_UINT",
    "32_32_SINT",
    "32_32_FLOAT",
    "16_16_16_16_UNORM",
    "16_16_16_16_SNORM",
    "16_16_16_16_USCALED",
    "16_16_16_16_SSCALED",
    "16_16_16_16_UINT",
    "16_16_16_16_SINT",
    "16_16_16_16_FLOAT",
    "32_32_32_UINT",
    "32_32_32_SINT",
    "32_32_32_FLOAT",
    "32_32_32_32_UINT",
    "32_32_32_32_SINT",
    "32_32_32_32_FLOAT",
];

/// Formats of RDNA1 and RDNA2 by shape, with their number formats: the unified formats in order.
const OLD_UNIFIED_FORMATS: [(&str, &[&str]); 16] = [
    ("", &["INVALID"]),
    ("8_", &SMALL),
    ("16_", &WITH_FLOAT),
    ("8_8_", &SMALL),
    ("32_", &WIDE),
    ("16_16_", &WITH_FLOAT),
    ("10_11_11_", &WITH_FLOAT),
    ("11_11_10_", &WITH_FLOAT),
    ("10_10_10_2_", &SMALL),
    ("2_10_10_10_", &SMALL),
    ("8_8_8_8_", &SMALL),
    ("32_32_", &WIDE),
    ("16_16_16_16_", &WITH_FLOAT),
    ("32_32_32_", &WIDE),
    ("32_32_32_32_", &WIDE),
    ("", &[]),
];
const SMALL: [&str; 6] = ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT"];
const WITH_FLOAT: [&str; 7] = [
    "UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT",
];
const WIDE: [&str; 3] = ["UINT", "SINT", "FLOAT"];

/// Shape and number format of RDNA1 and RDNA2.
fn old_unified_format(format: u8) -> Option<(&'static str, &'static str)> {
    OLD_UNIFIED_FORMATS
        .iter()
        .flat_map(|(shape, numbers)| numbers.iter().map(move |number| (*shape, *number)))
        .nth(usize::from(format))
}

/// Fields of `s_waitcnt_depctr` in printing order: name, low bit, width.
const DEPCTR: [(&str, u32, u32); 7] = [
    ("depctr_hold_cnt", 7, 1),
    ("depctr_sa_sdst", 0, 1),
    ("depctr_va_vdst", 12, 4),
    ("depctr_va_sdst", 9, 3),
    ("depctr_va_ssrc", 8, 1),
    ("depctr_va_vcc", 1, 1),
    ("depctr_vm_vsrc", 2, 3),
];

/// Dependency names of `s_delay_alu`.
const DELAYS: [&str; 12] = [
    "NO_DEP",
    "VALU_DEP_1",
    "VALU_DEP_2",
    "VALU_DEP_3",
    "VALU_DEP_4",
    "TRANS32_DEP_1",
    "TRANS32_DEP_2",
    "TRANS32_DEP_3",
    "FMA_ACCUM_CYCLE_1",
    "SALU_CYCLE_1",
    "SALU_CYCLE_2",
    "SALU_CYCLE_3",
];

const SKIPS: [&str; 6] = ["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];

impl Printer<'_> {
    /// `s_waitcnt`: counters that wait, or all of them if none does.
    pub(super) fn wait_count(&mut self, field: u32) {
        let (vm, exp, lgkm, vm_max, lgkm_max) = match self.family.generation() {
            Generation::Gfx8 => (field & 0xf, field >> 4 & 7, field >> 8 & 0xf, 15, 15),
            Generation::Gfx9 => (
                field & 0xf | field >> 14 << 4,
                field >> 4 & 7,
                field >> 8 & 0xf,
                63,
                15,
            ),
            Generation::Gfx10 => (
                field & 0xf | field >> 14 << 4,
                field >> 4 & 7,
                field >> 8 & 0x3f,
                63,
                63,
            ),
            Generation::Gfx11 | Generation::Gfx12 => {
                (field >> 10 & 0x3f, field & 7, field >> 4 & 0x3f, 63, 63)
            }
        };
        let none = vm == vm_max && exp == 7 && lgkm == lgkm_max;
        let mut separator = "";
        for (name, count, max) in [
            ("vmcnt", vm, vm_max),
            ("expcnt", exp, 7),
            ("lgkmcnt", lgkm, lgkm_max),
        ] {
            if count != max || none {
                write!(self.text, "{separator}{name}({count})").ok();
                separator = " ";
            }
        }
    }

    pub(super) fn hardware_register(&mut self, field: u32) {
        let (id, offset, size) = (field & 0x3f, field >> 6 & 0x1f, (field >> 11) + 1);
        self.text.push_str("hwreg(");
        match hardware_register_name(self.family, id) {
            Some(name) => self.text.push_str(name),
            None => {
                write!(self.text, "{id}").ok();
            }
        }
        if offset != 0 || size != 32 {
            write!(self.text, ", {offset}, {size}").ok();
        }
        self.text.push(')');
    }

    /// Messages: GCN has an operation and a stream beside the number.
    pub(super) fn message(&mut self, field: u32) {
        let name_of = |id| message_name(self.family, id);
        if self.family.generation() >= Generation::Gfx11 {
            let id = field & 0xff;
            match name_of(id) {
                Some(name) => write!(self.text, "sendmsg({name})"),
                None if field <= 0xff => write!(self.text, "sendmsg({id}, 0, 0)"),
                None => write!(self.text, "{field}"),
            }
            .ok();
            return;
        }
        let (id, operation, stream) = (field & 0xf, field >> 4 & 7, field >> 8 & 3);
        let name = name_of(id);
        let geometry = id == 2 || id == 3;
        let operation_name = match (id, operation) {
            (3, 0) => Some("GS_OP_NOP"),
            (2 | 3, 1) => Some("GS_OP_CUT"),
            (2 | 3, 2) => Some("GS_OP_EMIT"),
            (2 | 3, 3) => Some("GS_OP_EMIT_CUT"),
            (15, 1) => Some("SYSMSG_OP_ECC_ERR_INTERRUPT"),
            (15, 2) => Some("SYSMSG_OP_REG_RD"),
            (15, 4) => Some("SYSMSG_OP_TTRACE_PC"),
            _ => None,
        };
        let takes_stream = geometry && operation != 0;
        match (name, operation_name) {
            (Some(name), Some(operation)) if takes_stream => {
                write!(self.text, "sendmsg({name}, {operation}, {stream})")
            }
            (Some(name), Some(operation)) if stream == 0 => {
                write!(self.text, "sendmsg({name}, {operation})")
            }
            (Some(name), None) if !geometry && id != 15 && operation == 0 && stream == 0 => {
                write!(self.text, "sendmsg({name})")
            }
            _ if field == (id | operation << 4 | stream << 8) => {
                write!(self.text, "sendmsg({id}, {operation}, {stream})")
            }
            _ => write!(self.text, "{field}"),
        }
        .ok();
    }

    pub(super) fn delay(&mut self, field: u32) {
        let parts = [
            ("instid0", field & 0xf, &DELAYS[..], "instid"),
            ("instskip", field >> 4 & 7, &SKIPS[..], "instskip"),
            ("instid1", field >> 7 & 0xf, &DELAYS[..], "instid"),
        ];
        let mut separator = "";
        for (name, value, values, what) in parts {
            if value == 0 {
                continue;
            }
            match values.get(value as usize) {
                Some(value) => write!(self.text, "{separator}{name}({value})"),
                None => write!(self.text, "{separator}{name}(/* invalid {what} value */)"),
            }
            .ok();
            separator = " | ";
        }
        if separator.is_empty() {
            self.text.push('0');
        }
    }

    pub(super) fn depctr(&mut self, field: u32) {
        let mut known = 0;
        let mut waits = false;
        // hold_cnt came with RDNA2
        let fields = match self.family {
            family if family < IsaFamily::Gfx1030 => &DEPCTR[1..],
            _ => &DEPCTR[..],
        };
        for &(_, low, width) in fields {
            let mask = ((1 << width) - 1) << low;
            known |= mask;
            waits |= field & mask != mask;
        }
        if field & !known != 0 {
            write!(self.text, "{field:#x}").ok();
            return;
        }
        let mut separator = "";
        for &(name, low, width) in fields {
            let max = (1 << width) - 1;
            let value = field >> low & max;
            if value != max || !waits {
                write!(self.text, "{separator}{name}({value})").ok();
                separator = " ";
            }
        }
    }

    pub(super) fn gpr_index(&mut self, field: u32) {
        if field > 15 {
            write!(self.text, "{field:#x}").ok();
            return;
        }
        self.text.push_str("gpr_idx(");
        let mut separator = "";
        for (bit, name) in ["SRC0", "SRC1", "SRC2", "DST"].iter().enumerate() {
            if field >> bit & 1 != 0 {
                write!(self.text, "{separator}{name}").ok();
                separator = ",";
            }
        }
        self.text.push(')');
    }

    pub(super) fn version(&mut self, field: u32) {
        let name = match field & 0xff {
            0 => "UC_VERSION_GFX7",
            4 => "UC_VERSION_GFX10",
            6 => "UC_VERSION_GFX11",
            9 => "UC_VERSION_GFX12",
            _ => "",
        };
        if field > 0xff || name.is_empty() {
            if field <= 0xff {
                write!(self.text, "{field}").ok();
            } else {
                write!(self.text, "{field:#x}").ok();
            }
        } else {
            self.text.push_str(name);
        }
    }

    /// ` format:[…]` of typed buffer instructions; the default format is left out.
    pub(super) fn buffer_format(&mut self, format: u8) {
        if format == 1 {
            return;
        }
        if self.family.generation() == Generation::Gfx10 {
            match old_unified_format(format) {
                Some((shape, number)) => write!(self.text, " format:[BUF_FMT_{shape}{number}]"),
                None => write!(self.text, " format:{format}"),
            }
            .ok();
            return;
        }
        if !self.family.is_gcn() {
            match UNIFIED_FORMATS.get(usize::from(format)) {
                Some(name) => write!(self.text, " format:[BUF_FMT_{name}]"),
                None => write!(self.text, " format:{format}"),
            }
            .ok();
            return;
        }
        let data = DATA_FORMATS[usize::from(format & 0xf)];
        let number = NUMBER_FORMATS[usize::from(format >> 4 & 7)];
        match (format & 0xf, format >> 4) {
            (1, _) => write!(self.text, " format:[BUF_NUM_FORMAT_{number}]"),
            (_, 0) => write!(self.text, " format:[BUF_DATA_FORMAT_{data}]"),
            _ => write!(
                self.text,
                " format:[BUF_DATA_FORMAT_{data},BUF_NUM_FORMAT_{number}]"
            ),
        }
        .ok();
    }
}
