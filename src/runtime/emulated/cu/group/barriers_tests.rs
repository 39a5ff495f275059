//! Workgroups of several waves at barriers, in words of LLVM's assembler; the wave's number, where a wave learns it; loops over
//! the halves of a wave; barriers in LDS.
use crate::isa::IsaFamily;
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};

/// Executes words in waves whose first SGPR is their number.
fn run(
    family: IsaFamily,
    lanes: u32,
    count: usize,
    words: &[u32],
    set: impl Fn(u32, &mut Registers),
) -> Vec<Vec<Registers>> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    levels()
        .into_iter()
        .map(|level| {
            let mut waves: Vec<Registers> = (0..count as u32)
                .map(|number| {
                    let mut registers = Registers::new(lanes);
                    registers.s[0] = number;
                    set(number, &mut registers);
                    registers
                })
                .collect();
            Machine::new()
                .run_waves(level, family, lanes, 0x3f0, &code, &mut waves)
                .unwrap_or_else(|fault| panic!("{fault:?}"));
            waves
        })
        .collect()
}

/// Waves by two meet at a barrier of their own, and what one wrote before it the other reads after it.
#[test]
fn named_barriers_are_for_some_waves() {
    // s_mov_b32 m0, s1; s_cmp_eq_u32 s2, 1; s_cbranch_scc0 L; s_barrier_init m0
    // L: s_barrier_signal -1; s_barrier_wait -1; s_barrier_join m0; v_mov_b32 v1, s0; ds_store_b32 v0, v1
    // s_barrier_signal_isfirst m0; s_cselect_b32 s4, 1, 0; s_barrier_wait 1; ds_load_b32 v3, v2
    // s_barrier_signal -1; s_barrier_wait -1; s_get_barrier_state s5, m0; s_get_barrier_state s8, -1
    // s_barrier_signal -1; s_barrier_wait -1; s_barrier_leave; s_cselect_b32 s6, 1, 0
    // s_barrier_signal -1; s_barrier_wait -1; s_get_barrier_state s7, m0; s_barrier_wait 1; s_barrier_leave
    // s_cselect_b32 s9, 1, 0; s_barrier_signal_isfirst 0; s_cselect_b32 s10, 1, 0
    let words = [
        0xbefd_0001,
        0xbf06_8102,
        0xbfa1_0001,
        0xbe80_517d,
        0xbe80_4ec1,
        0xbf94_ffff,
        0xbe80_527d,
        0x7e02_0200,
        0xd834_0000,
        0x0000_0100,
        0xbe80_4f7d,
        0x9804_8081,
        0xbf94_0001,
        0xd8d8_0000,
        0x0300_0002,
        0xbe80_4ec1,
        0xbf94_ffff,
        0xbe85_507d,
        0xbe88_50c1,
        0xbe80_4ec1,
        0xbf94_ffff,
        0xbf95_0000,
        0x9806_8081,
        0xbe80_4ec1,
        0xbf94_ffff,
        0xbe87_507d,
        0xbf94_0001,
        0xbf95_0000,
        0x9809_8081,
        0xbe80_4f80,
        0x980a_8081,
    ];
    let waves = run(IsaFamily::Gfx1250, 32, 6, &words, |number, r| {
        // barriers 1, 8 and 15, of two waves each
        r.s[1] = 2 << 16 | (1 + 7 * (number / 2));
        r.s[2] = number % 2;
        for lane in 0..32 {
            r.v[0][lane] = 4 * (32 * number + lane as u32);
            r.v[2][lane] = 4 * (32 * (number ^ 1) + lane as u32);
        }
    });
    for waves in waves {
        for (number, wave) in (0u32..).zip(&waves) {
            assert_eq!(wave.v[3][..32], [number ^ 1; 32], "wave {number}");
            let partner = &waves[(number ^ 1) as usize];
            assert_eq!(wave.s[4] + partner.s[4], 1, "one is the first");
            assert_eq!(wave.s[5], 2 << 4 | 1, "two take part, none has arrived");
            assert_eq!(wave.s[6], 1);
            assert_eq!(wave.s[7], 1, "both have left");
            assert_eq!(wave.s[8] & 0xffff, 6 << 4 | 1, "six share the workgroup's");
            assert_eq!(wave.s[9], 0, "there is no barrier left to leave");
            assert_eq!(wave.s[10], 0, "nobody is the first at none");
        }
    }
}

#[test]
fn a_wave_that_leaves_completes_a_barrier() {
    // s_mov_b32 m0, 0x30002; s_cmp_eq_u32 s0, 0; s_cbranch_scc0 L1; s_barrier_init m0
    // L1: s_barrier_signal -1; s_barrier_wait -1; s_mov_b32 m0, 2
    // s_cmp_eq_u32 s0, 1; s_cbranch_scc1 L2; s_cmp_eq_u32 s0, 2; s_cbranch_scc1 L3
    // s_barrier_join 2; s_barrier_signal 2; s_barrier_wait 2; s_get_barrier_state s4, 2; s_endpgm
    // L2: s_barrier_signal m0; s_endpgm
    // L3: s_barrier_join m0
    // L4: s_sleep 1; s_get_barrier_state s4, m0; s_bfe_u32 s5, s4, 0x70010; s_cmp_eq_u32 s5, 2; s_cbranch_scc0 L4
    // s_barrier_leave
    let words = [
        0xbefd_00ff,
        0x0003_0002,
        0xbf06_8000,
        0xbfa1_0001,
        0xbe80_517d,
        0xbe80_4ec1,
        0xbf94_ffff,
        0xbefd_0082,
        0xbf06_8100,
        0xbfa2_0007,
        0xbf06_8200,
        0xbfa2_0007,
        0xbe80_5282,
        0xbe80_4e82,
        0xbf94_0002,
        0xbe84_5082,
        0xbfb0_0000,
        0xbe80_4e7d,
        0xbfb0_0000,
        0xbe80_527d,
        0xbf83_0001,
        0xbe84_507d,
        0x9305_ff04,
        0x0007_0010,
        0xbf06_8205,
        0xbfa1_fffa,
        0xbf95_0000,
    ];
    for waves in run(IsaFamily::Gfx1250, 32, 3, &words, |_, _| {}) {
        assert_eq!(waves[0].s[4], 2 << 4 | 1, "the wave went on, among two");
        assert_eq!(waves[2].s[4], 3 << 4 | 2 << 16 | 1);
        assert!(waves[2].scc);
    }
}

#[test]
fn waves_are_woken_before_all_have_arrived() {
    // s_mov_b32 m0, 0x50003; s_cmp_eq_u32 s0, 0; s_cbranch_scc0 L1
    // s_barrier_init m0; s_barrier_join 3; s_barrier_signal 3; s_barrier_wait 3; s_mov_b32 s6, 1; s_endpgm
    // L1: s_sleep 1; s_get_barrier_state s4, 3; s_bfe_u32 s5, s4, 0x70010; s_cmp_eq_u32 s5, 1; s_cbranch_scc0 L1
    // s_sleep 1; s_sleep 1; s_wakeup_barrier 3
    let words = [
        0xbefd_00ff,
        0x0005_0003,
        0xbf06_8000,
        0xbfa1_0006,
        0xbe80_517d,
        0xbe80_5283,
        0xbe80_4e83,
        0xbf94_0003,
        0xbe86_0081,
        0xbfb0_0000,
        0xbf83_0001,
        0xbe84_5083,
        0x9305_ff04,
        0x0007_0010,
        0xbf06_8105,
        0xbfa1_fffa,
        0xbf83_0001,
        0xbf83_0001,
        0xbe80_5783,
    ];
    for waves in run(IsaFamily::Gfx1250, 32, 2, &words, |_, _| {}) {
        assert_eq!(waves[0].s[6], 1);
        assert_eq!(waves[1].s[4], 5 << 4 | 1 << 16 | 1);
    }
    // s_mov_b32 m0, 17; s_barrier_signal m0
    let code: Vec<u8> = [0xbefd_0091u32, 0xbe80_4e7d]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for level in levels() {
        let mut registers = Registers::new(32);
        let fault = Machine::new().run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers);
        let fault = format!("{:?}", fault.unwrap_err().kind);
        assert!(fault.contains("barrier 17 does not exist"), "{fault}");
    }
}

#[test]
fn waves_know_their_number() {
    // s_get_waveid_in_workgroup s5
    for waves in run(IsaFamily::Gfx1010, 64, 3, &[0xf4a8_0140, 0], |_, _| {}) {
        let numbers: Vec<u32> = waves.iter().map(|wave| wave.s[5]).collect();
        assert_eq!(numbers, [0, 1, 2]);
    }
    // s_cmp_eq_u32 s0, s0; s_alloc_vgpr 64
    for waves in run(
        IsaFamily::Gfx1200,
        32,
        1,
        &[0xbf06_0000, 0xbe80_53c0],
        |_, _| {},
    ) {
        assert!(!waves[0].scc, "the number of VGPRs is fixed");
    }
}

#[test]
fn halves_of_a_wave_take_turns() {
    // s_subvector_loop_begin s0, L2; L1: v_add_nc_u32 v0, v0, v1; s_add_u32 s3, s3, 1; s_subvector_loop_end s0, L1
    // L2: s_mov_b32 s4, 7
    let rdna1 = [
        0xbd80_0003,
        0x4a00_0300,
        0x8003_8103,
        0xbe00_fffd,
        0xbe84_0387,
    ];
    let rdna3 = [
        0xbb00_0003,
        0x4a00_0300,
        0x8003_8103,
        0xbb80_fffd,
        0xbe84_0087,
    ];
    for (family, words) in [
        (IsaFamily::Gfx1010, rdna1),
        (IsaFamily::Gfx1030, rdna1),
        (IsaFamily::Gfx1100, rdna3),
    ] {
        for (low, high) in [(5, 0x8000_0001), (0xffff_ffff, 0), (0, 0x10), (0, 0)] {
            let waves = run(family, 64, 1, &words, |_, r| {
                (r.s[126], r.s[127]) = (low, high);
                r.s[0] = 0x1234;
                for lane in 0..64 {
                    (r.v[0][lane], r.v[1][lane]) = (100, lane as u32 + 1);
                }
            });
            for waves in waves {
                let wave = &waves[0];
                assert_eq!(
                    wave.s[3],
                    u32::from(low != 0) + u32::from(high != 0),
                    "passes"
                );
                assert_eq!(
                    (wave.s[126], wave.s[127]),
                    (low, high),
                    "EXEC is whole again"
                );
                assert_eq!(wave.s[4], 7);
                for lane in 0..64u32 {
                    let active = u64::from(low) | u64::from(high) << 32;
                    let added = if active >> lane & 1 == 1 { lane + 1 } else { 0 };
                    assert_eq!(wave.v[0][lane as usize], 100 + added, "once, {family:?}");
                }
            }
        }
    }
}

/// Lanes arrive one after the other at the barrier that their address names.
#[test]
fn barriers_lie_in_lds() {
    // ds_store_b64 v0, v[4:5] offset:8; ds_atomic_barrier_arrive_rtn_b64 v[2:3], v0, v[6:7] offset:8
    // ds_atomic_async_barrier_arrive_b64 v0 offset:8; ds_load_b64 v[8:9], v0 offset:8
    let words = [
        0xd934_0008,
        0x0000_0400,
        0xd9d4_0008,
        0x0200_0600,
        0xd958_0008,
        0x0000_0000,
        0xd9d8_0008,
        0x0800_0000,
    ];
    let waves = run(IsaFamily::Gfx1250, 32, 1, &words, |_, r| {
        (r.s[126], r.s[127]) = (0b1011, 0);
        for lane in 0..4 {
            // lanes 0 and 1 share a barrier
            r.v[0][lane] = if lane < 2 { 64 } else { 128 };
            // one arrival is missing of three, in phase 0
            (r.v[4][lane], r.v[5][lane]) = (0, 2);
            (r.v[6][lane], r.v[2][lane], r.v[8][lane]) = (2, 77, 78);
        }
    });
    for waves in waves {
        let wave = &waves[0];
        // three arrivals a phase: those of lane 0 end phase 0, those of lane 1 end phase 7, the one after which none is missing
        // but for one
        assert_eq!((wave.v[2][0], wave.v[3][0]), (0, 2));
        assert_eq!((wave.v[2][1], wave.v[3][1]), (7 << 29 | 1, 2));
        // phase 6 has two more
        assert_eq!((wave.v[8][0], wave.v[9][0]), (6 << 29, 2));
        assert_eq!((wave.v[8][1], wave.v[9][1]), (6 << 29, 2));
        // lane 3 has a barrier of its own
        assert_eq!((wave.v[2][3], wave.v[3][3]), (0, 2));
        assert_eq!((wave.v[8][3], wave.v[9][3]), (7 << 29, 2));
        assert_eq!((wave.v[2][2], wave.v[8][2]), (77, 78), "a lane that is off");
    }
}

/// Waves meet at the GPU's global wave sync twice: what one wrote before it the other reads after it, and the counter of the
/// second time is what the instruction brought the first time.
#[test]
fn waves_meet_at_global_wave_sync() {
    // s_cmp_eq_u32 s0, 0; s_cbranch_scc0 L; ds_gws_init v6 offset:5 gds
    // L: s_barrier; ds_write_b32 v0, v2; ds_gws_barrier v6 offset:5 gds; ds_read_b32 v3, v4; s_waitcnt lgkmcnt(0)
    // ds_gws_barrier v6 offset:5 gds; ds_write_b32 v0, v4
    let gfx9 = [
        0xbf06_8000,
        0xbf84_0002,
        0xd933_0005,
        0x0000_0006,
        0xbf8a_0000,
        0xd81a_0000,
        0x0000_0200,
        0xd93b_0005,
        0x0000_0006,
        0xd86c_0000,
        0x0300_0004,
        0xbf8c_c07f,
        0xd93b_0005,
        0x0000_0006,
        0xd81a_0000,
        0x0000_0400,
    ];
    let gfx10 = [
        0xbf06_8000,
        0xbf84_0002,
        0xd866_0005,
        0x0000_0006,
        0xbf8a_0000,
        0xd834_0000,
        0x0000_0200,
        0xd876_0005,
        0x0000_0006,
        0xd8d8_0000,
        0x0300_0004,
        0xbf8c_c07f,
        0xd876_0005,
        0x0000_0006,
        0xd834_0000,
        0x0000_0400,
    ];
    let mut gfx11 = gfx10;
    (gfx11[1], gfx11[4], gfx11[11]) = (0xbfa1_0002, 0xbfbd_0000, 0xbf89_fc07);
    for (family, lanes, words) in [
        (IsaFamily::Gfx90a, 64, gfx9),
        (IsaFamily::Gfx1030, 32, gfx10),
        (IsaFamily::Gfx1100, 64, gfx11),
    ] {
        let count = 4;
        let waves = run(family, lanes, count, &words, |number, r| {
            for lane in 0..lanes as usize {
                r.v[0][lane] = 4 * (lanes * number + lane as u32);
                r.v[2][lane] = 1000 * number + lane as u32;
                r.v[4][lane] = 4 * (lanes * (number ^ 3) + lane as u32);
                // only the first lane's counts
                r.v[6][lane] = if lane == 0 { count as u32 - 1 } else { 99 };
            }
        });
        for waves in waves {
            for (number, wave) in (0u32..).zip(&waves) {
                for lane in 0..lanes {
                    assert_eq!(
                        wave.v[3][lane as usize],
                        1000 * (number ^ 3) + lane,
                        "{family:?}"
                    );
                }
            }
        }
    }
}
