//! What changes under MODE while a wave runs.
//!
//! Knows: whole waves on a test machine. Must not know: how MODE is kept.
use super::testing::{Machine, Registers, levels};
use crate::isa::IsaFamily;

/// The code of:
/// ```text
/// s_mov_b32 s0, 5
/// s_setvskip s0, 0            ; bit 0 is set
/// v_mov_b32_e32 v0, 7
/// v_readfirstlane_b32 s3, v0
/// v_cmp_eq_u32_e32 vcc, v0, v0
/// v_accvgpr_write_b32 a0, v0
/// global_store_dword v[4:5], v0, off
/// ds_write_b32 v1, v0
/// s_mov_b32 s4, 3
/// s_setvskip s0, 33           ; bit 1 is not: the upper bits of the number do not count
/// v_mov_b32_e32 v1, 9
/// s_setvskip s0, 2            ; bit 2 is
/// v_mov_b32_e32 v1, 8
/// s_getreg_b32 s5, hwreg(HW_REG_MODE, 28, 1)
/// s_setvskip 0, 0
/// v_add_u32_e32 v2, v1, v1
/// ```
const SKIPPING: [u32; 19] = [
    0xbe80_0085,
    0xbf10_8000,
    0x7e00_0287,
    0x7e06_0500,
    0x7d94_0100,
    0xd3d9_4000,
    0x1800_0100,
    0xdc70_8000,
    0x007f_0004,
    0xd81a_0000,
    0x0000_0001,
    0xbe84_0083,
    0xbf10_a100,
    0x7e02_0289,
    0xbf10_8200,
    0x7e02_0288,
    0xb885_0701,
    0xbf10_8080,
    0x6804_0301,
];

/// AMD CDNA3 ISA, "S_SETVSKIP": VOP, memory, LDS and matrix instructions are not issued, scalar ones are.
#[test]
fn vskip_passes_over_vector_instructions_only() {
    let code: Vec<u8> = SKIPPING
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let machine = Machine::new();
    for level in levels() {
        for family in [IsaFamily::Gfx908, IsaFamily::Gfx942] {
            let mut registers = Registers::new(64);
            registers.s[3] = 77;
            registers.s[106] = 1;
            registers.v[0] = [40; 64];
            // the store's address is mapped nowhere: executed, it would fault
            registers.v[5] = [0x7000; 64];
            machine
                .run(level, family, 64, 0xf0, &code, &mut registers)
                .unwrap();
            assert_eq!(registers.v[0], [40; 64], "{level:?} {family:?}");
            assert_eq!(registers.v[1], [9; 64]);
            assert_eq!(registers.v[2], [18; 64]);
            assert_eq!(registers.a[0], [0; 64]);
            let scalars = [
                registers.s[3],
                registers.s[4],
                registers.s[5],
                registers.s[106],
            ];
            assert_eq!(scalars, [77, 3, 1, 1]);
        }
    }
}
