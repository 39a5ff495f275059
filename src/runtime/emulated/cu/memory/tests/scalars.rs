//! Scalar loads, stores and atomics.
use super::super::test_wave::{TestWave, on_back_ends};
use super::Run;
use crate::runtime::emulated::cu::microop::flat_flags;
use crate::runtime::emulated::cu::ops::smem;
use crate::runtime::emulated::cu::wave::Event;
use crate::runtime::emulated::vm::{PAGE_READ, PAGE_WRITE};
use crate::runtime::instrument::{Access, FaultKind};

#[test]
fn scalar_loads_add_their_parts_and_drop_the_low_bits() {
    let mut wave = TestWave::new(64);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    let words: Vec<u32> = (0..1024u32).map(|k| !k.wrapping_mul(77)).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    wave.space.write(base, &bytes).unwrap();
    let zero = wave.constant(&[0]);
    on_back_ends!(|v| {
        let ops: [(Run<'_>, u32); 5] = [
            (&|cx, op, pc| smem::s_load_b32(v, cx, op, pc), 1),
            (&|cx, op, pc| smem::s_load_b64(v, cx, op, pc), 2),
            (&|cx, op, pc| smem::s_load_b128(v, cx, op, pc), 4),
            (&|cx, op, pc| smem::s_load_b256(v, cx, op, pc), 8),
            (&|cx, op, pc| smem::s_load_b512(v, cx, op, pc), 16),
        ];
        for (run, dwords) in ops {
            for (soffset, imm, at) in [
                (None, 0, 40),
                (None, -40, 0),
                (Some(100u32), -60, 80),
                (Some(7), 8, 52),
                (None, 4096 - 40 - 4 * dwords as i32, 4096 - 4 * dwords),
            ] {
                for d in [20u32, 4, 3] {
                    wave.set_sgpr64(4, base + 40);
                    wave.set_sgpr(3, soffset.unwrap_or(0));
                    let mut op = TestWave::op();
                    op.a = TestWave::s(4);
                    op.b = soffset.map_or(zero, |_| TestWave::s(3));
                    op.d = TestWave::s(d);
                    op.imm = imm;
                    assert!(wave.run(|cx, pc| run(cx, &op, pc)), "{:?}", wave.event);
                    for k in 0..dwords {
                        assert_eq!(wave.sgpr(d + k), words[(at / 4 + k) as usize]);
                    }
                }
            }
            let mut op = TestWave::op();
            op.a = TestWave::s(4);
            op.b = zero;
            op.d = TestWave::s(20);
            wave.set_sgpr64(4, base + 4096 - 4 * u64::from(dwords) + 4);
            assert!(!wave.run(|cx, pc| run(cx, &op, pc)));
            assert_eq!(
                wave.event,
                Event::Fault {
                    at: 7,
                    kind: FaultKind::Memory {
                        address: base + 4096,
                        size_bytes: 4 * dwords,
                        access: Access::Read
                    },
                    lane: None
                }
            );
        }
    });
}

#[test]
fn scalar_buffer_accesses_stop_at_the_buffers_end() {
    let mut wave = TestWave::new(64);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    let zero = wave.constant(&[0]);
    on_back_ends!(|v| {
        for k in 0..64u32 {
            let word = (0x1000 + k).to_le_bytes();
            wave.space.write(base + 4 * u64::from(k), &word).unwrap();
        }
        // (GFX major, stride, records, bytes in range)
        for (major, stride, records, size) in [
            (9, 0, 24, 24),
            (9, 8, 24, 24),
            (11, 0, 24, 24),
            (11, 8, 3, 24),
        ] {
            wave.env.gfx_major = major;
            for (k, word) in [base as u32, (base >> 32) as u32 | stride << 16, records, 0]
                .into_iter()
                .enumerate()
            {
                wave.set_sgpr(4 + k as u32, word);
            }
            let mut op = TestWave::op();
            op.a = TestWave::s(4);
            op.b = zero;
            op.d = TestWave::s(20);
            op.imm = 16;
            assert!(wave.run(|cx, pc| smem::s_buffer_load_b128(v, cx, &op, pc)));
            for k in 0..4 {
                let want = if 16 + 4 * k < size { 0x1004 + k } else { 0 };
                assert_eq!(wave.sgpr(20 + k), want, "{major} {stride} {k}");
            }
            // the store drops what is beyond
            for k in 0..4 {
                wave.set_sgpr(20 + k, 7 + k);
            }
            op.c = TestWave::s(20);
            assert!(wave.run(|cx, pc| smem::s_buffer_store_b128(v, cx, &op, pc)));
            for k in 0..4u32 {
                let mut got = [0; 4];
                wave.space
                    .read(base + 16 + 4 * u64::from(k), &mut got)
                    .unwrap();
                let want = if 16 + 4 * k < size { 7 + k } else { 0x1004 + k };
                assert_eq!(u32::from_le_bytes(got), want);
                let back = (0x1004 + k).to_le_bytes();
                wave.space
                    .write(base + 16 + 4 * u64::from(k), &back)
                    .unwrap();
            }
        }
    });
}

#[test]
fn scalar_stores_and_atomics_write_memory() {
    let mut wave = TestWave::new(64);
    let base = wave.map(1, PAGE_READ | PAGE_WRITE);
    let eight = wave.constant(&[8]);
    on_back_ends!(|v| {
        wave.space.write(base, &[0; 64]).unwrap();
        wave.set_sgpr64(4, base);
        for k in 0..4 {
            wave.set_sgpr(20 + k, 0x0101_0101 * (k + 1));
        }
        let mut op = TestWave::op();
        op.a = TestWave::s(4);
        op.b = eight;
        op.c = TestWave::s(20);
        op.d = TestWave::s(20);
        op.imm = 4;
        assert!(wave.run(|cx, pc| smem::s_store_b128(v, cx, &op, pc)));
        let mut got = [0; 32];
        wave.space.read(base, &mut got).unwrap();
        let want: Vec<u8> = (0..32)
            .map(|k| if (12..28).contains(&k) { k / 4 - 2 } else { 0 })
            .collect();
        assert_eq!(got[..], want[..]);
        // add to the second dword stored, with and without the old value
        wave.set_sgpr(20, 5);
        op.imm = 8;
        assert!(wave.run(|cx, pc| smem::s_atomic_add_u32(v, cx, &op, pc)));
        assert_eq!(wave.sgpr(20), 5);
        op.aux = flat_flags::RETURN;
        assert!(wave.run(|cx, pc| smem::s_atomic_add_u32(v, cx, &op, pc)));
        assert_eq!(wave.sgpr(20), 0x0202_0202 + 5);
        // compare and swap of 64 bits: the new value first
        wave.set_sgpr64(20, 0x1122_3344_5566_7788);
        wave.set_sgpr64(22, 0x0404_0404_0303_0303);
        op.imm = 12;
        wave.set_sgpr64(4, base + 4 - 4);
        op.imm = 12 - 4 + 4;
        let at = base + 8 + 12;
        assert_eq!(at % 8, 4);
        assert!(!wave.run(|cx, pc| smem::s_atomic_cmpswap_b64(v, cx, &op, pc)));
        assert_eq!(
            wave.event,
            Event::Fault {
                at: 7,
                kind: FaultKind::Memory {
                    address: at,
                    size_bytes: 8,
                    access: Access::Atomic
                },
                lane: None
            }
        );
        wave.space
            .write(base + 24, &0x0404_0404_0303_0303u64.to_le_bytes())
            .unwrap();
        op.imm = 16;
        assert!(wave.run(|cx, pc| smem::s_atomic_cmpswap_b64(v, cx, &op, pc)));
        let mut got = [0; 8];
        wave.space.read(base + 24, &mut got).unwrap();
        assert_eq!(u64::from_le_bytes(got), 0x1122_3344_5566_7788);
        assert_eq!((wave.sgpr(20), wave.sgpr(21)), (0x0303_0303, 0x0404_0404));
    });
}

#[test]
fn clocks_go_forward() {
    let mut wave = TestWave::new(64);
    on_back_ends!(|v| {
        let mut op = TestWave::op();
        op.d = TestWave::s(20);
        assert!(wave.run(|cx, pc| smem::s_memtime(v, cx, &op, pc)));
        let first = u64::from(wave.sgpr(20)) | u64::from(wave.sgpr(21)) << 32;
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(wave.run(|cx, pc| smem::s_memtime(v, cx, &op, pc)));
        let second = u64::from(wave.sgpr(20)) | u64::from(wave.sgpr(21)) << 32;
        assert!(second > first);
        // 100 MHz: at least 200,000 ticks of 10 ns in 2 ms would be wrong by a factor; 2 ms are 200 ticks of 10 us
        assert!(wave.run(|cx, pc| smem::s_memrealtime(v, cx, &op, pc)));
        let start = u64::from(wave.sgpr(20)) | u64::from(wave.sgpr(21)) << 32;
        let host = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(wave.run(|cx, pc| smem::s_memrealtime(v, cx, &op, pc)));
        let end = u64::from(wave.sgpr(20)) | u64::from(wave.sgpr(21)) << 32;
        let most = host.elapsed().as_nanos() as u64 / 10 + 1_000_000;
        assert!((400_000..=most).contains(&(end - start)), "{}", end - start);
    });
}
