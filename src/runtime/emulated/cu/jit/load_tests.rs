//! Compiled loads against interpreted ones: addresses in order, alike, apart and out of range, all lanes active and some.
use super::Compile;
use crate::isa::IsaFamily;
use crate::runtime::emulated::cu::ops::op_wave::Random;
use crate::runtime::emulated::cu::simd::SimdLevel;
use crate::runtime::emulated::cu::testing::{LDS_BYTES, Machine, Registers};

/// gfx942: fills 3 KiB of LDS from v21 at v22, then loads and adds what it has loaded.
///
/// ```text
/// v_mov_b32 v20, v21
/// ds_write_b32 v22, v20 offset:0 … 2816, each followed by v_add_u32 v20, v20, v21
/// v_add_u32 v1, v0, v1
/// ds_read_b32 v2, v1 offset:64
/// ds_read2_b32 v[4:5], v1 offset0:2 offset1:200
/// ds_read2st64_b32 v[6:7], v1 offset0:1 offset1:3
/// v_lshl_add_u64 v[8:9], v[10:11], 0, s[4:5]
/// global_load_dword v16, v[8:9], off offset:16
/// global_load_dword v12, v13, s[4:5] offset:-8
/// v_add_u32 v14, v16, v2
/// v_add_u32 v15, v4, v12
/// ```
const CODE: [u32; 53] = [
    0x7e280315, 0xd81a0000, 0x00001416, 0x68282b14, 0xd81a0100, 0x00001416, 0x68282b14, 0xd81a0200,
    0x00001416, 0x68282b14, 0xd81a0300, 0x00001416, 0x68282b14, 0xd81a0400, 0x00001416, 0x68282b14,
    0xd81a0500, 0x00001416, 0x68282b14, 0xd81a0600, 0x00001416, 0x68282b14, 0xd81a0700, 0x00001416,
    0x68282b14, 0xd81a0800, 0x00001416, 0x68282b14, 0xd81a0900, 0x00001416, 0x68282b14, 0xd81a0a00,
    0x00001416, 0x68282b14, 0xd81a0b00, 0x00001416, 0x68282b14, 0x68020300, 0xd86c0040, 0x02000001,
    0xd86ec802, 0x04000001, 0xd8700301, 0x06000001, 0xd2080008, 0x0011010a, 0xdc508010, 0x107f0008,
    0xdc509ff8, 0x0c04000d, 0x681c0510, 0x681e1904, 0xbf800000,
];

/// Bytes of memory that may be read.
const MEMORY: u64 = 8192;

/// What a lane adds to the first address, in one of several ways.
fn pattern(kind: usize, lane: u32, random: &mut Random) -> u32 {
    match kind {
        0 => 0,
        1 => 4 * lane,
        2 => 4 * (lane & 15),
        3 => 64 * (lane >> 4),
        4 => 4 * (lane ^ 7),
        5 => 4 * (63 - lane),
        6 => 4 * (random.next() % 256) as u32,
        7 => 4 * lane + 1,
        // dwords that lie near but are not whole ones apart
        8 => 2 * lane,
        // beyond the end in the last lanes
        9 => 1200 * lane,
        _ => 8 * lane,
    }
}

#[test]
fn loads_are_those_of_the_interpreter() {
    let levels = [SimdLevel::Avx2, SimdLevel::Avx512];
    for level in levels.into_iter().filter(|level| level.available()) {
        let mut random = Random(0x5eed_0f10_ad5e_ed01);
        let mut machine = Machine::new();
        let memory = machine.memory(MEMORY);
        let code: Vec<u8> = CODE.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (mut faults, mut ends) = (0, 0);
        for round in 0..11 * 11 * 3 {
            let (lds, global) = (round % 11, round / 11 % 11);
            let mut before = Registers::new(64);
            let exec = [!0, random.next(), 0xff00_0000_0000_00f0][round / 121];
            (before.s[126], before.s[127]) = (exec as u32, (exec >> 32) as u32);
            (before.s[4], before.s[5]) = (memory as u32, (memory >> 32) as u32);
            let start = match random.next() % 4 {
                0 => LDS_BYTES - 4096,
                part => 4 * part as u32,
            };
            for lane in 0..64 {
                let at = lane as usize;
                before.v[0][at] = pattern(lds, lane, &mut random);
                before.v[1][at] = start;
                before.v[10][at] = pattern(global, lane, &mut random);
                before.v[13][at] = 8 + pattern(global, lane, &mut random);
                before.v[21][at] = random.next() as u32;
                before.v[22][at] = 4 * lane;
            }
            let mut run = |compile| {
                machine.compile = compile;
                let mut registers = before.clone();
                let end = machine.run(level, IsaFamily::Gfx942, 64, 0, &code, &mut registers);
                (
                    end.map_err(|fault| (fault.kind, fault.lane, fault.pc)),
                    registers,
                )
            };
            let (end, interpreted) = run(Compile::Never);
            let (compiled_end, compiled) = run(Compile::Always);
            assert_eq!(compiled_end, end, "round {round}");
            match end {
                Err(_) => faults += 1,
                Ok(()) => {
                    ends += 1;
                    assert_eq!(compiled, interpreted, "round {round}");
                }
            }
        }
        assert!(faults > 20 && ends > 200, "{faults} faults, {ends} ends");
        assert!(machine.compiled.get() > 200);
    }
}
