//! Copies of tiles, in words of LLVM's assembler, with descriptors that the tests write field by field.
use crate::isa::IsaFamily;
use crate::runtime::emulated::cu::testing::{Machine, Registers, levels};

/// A descriptor: four groups of SGPRs from s4 on, which begin at these bits.
const GROUPS: [usize; 4] = [0, 128, 128 + 256, 128 + 256 + 128];

struct Fields([u32; 20]);

impl Fields {
    fn new(memory: u64, lds: u32, element: u32) -> Self {
        let mut fields = Self([0; 20]);
        fields.set(0, 0, 2, 1);
        fields.set(0, 32, 32, u64::from(lds));
        fields.set(0, 64, 57, memory);
        // the type that a descriptor of an image has
        fields.set(0, 126, 2, 2);
        fields.set(1, 16, 2, u64::from(element.trailing_zeros()));
        fields
    }
    fn set(&mut self, group: usize, first: usize, count: usize, value: u64) {
        for bit in 0..count {
            let at = GROUPS[group] + first + bit;
            self.0[at / 32] |= ((value >> bit & 1) as u32) << (at % 32);
        }
    }
    /// Extents of the tensor and of the tile, and the strides from the second dimension on.
    fn shape(&mut self, tensor: &[u64], tile: &[u64], strides: &[u64]) {
        let places = [(1, 48), (1, 80), (2, 0), (2, 32), (3, 48)];
        for (&size, (group, at)) in tensor.iter().zip(places) {
            self.set(group, at, 32, size);
        }
        let places = [(1, 112), (1, 128), (1, 144), (2, 112), (3, 80)];
        for (&size, (group, at)) in tile.iter().zip(places) {
            self.set(group, at, 16, size);
        }
        let places = [(1, 160), (1, 208), (2, 64), (3, 0)];
        for (&stride, (group, at)) in strides.iter().zip(places) {
            self.set(group, at, 48, stride);
        }
    }
}

/// global_store_b32 v[10:11], v1, off; ds_store_b32 v0, v2
const FILL: [u32; 5] = [
    0xee06_807c,
    0x0080_0000,
    0x0000_000a,
    0xd834_0000,
    0x0000_0200,
];
/// tensor_load_to_lds s[4:7], s[8:15], s[16:19], s[20:23]
const LOAD: [u32; 3] = [0xd071_0001, 0x7c00_0000, 0x1410_0804];
/// tensor_load_to_lds s[4:7], s[8:15]
const LOAD_2D: [u32; 3] = [0xd071_0001, 0x7c00_0000, 0x7c7c_0804];
/// tensor_store_from_lds s[4:7], s[8:15], s[16:19], s[20:23]
const STORE: [u32; 3] = [0xd071_4001, 0x7c00_0000, 0x1410_0804];
/// ds_load_b32 v4, v0; global_load_b32 v5, v[10:11], off
const READ: [u32; 5] = [
    0xd8d8_0000,
    0x0400_0000,
    0xee05_007c,
    0x0000_0005,
    0x0000_000a,
];

/// Bytes of memory and of LDS that the tests look at: a dword for each lane of every one of so many waves' worth.
const BYTES: usize = 128;

/// Runs a copy where memory holds 0, 1, 2, … and LDS 0x80, 0x81, …; gives LDS and memory afterwards.
fn copy(words: &[u32], fields: impl Fn(u64) -> Fields) -> Vec<(Vec<u8>, Vec<u8>)> {
    // all lanes fill and read, none is active for the copy: s_mov_b32 exec_lo, 0; s_mov_b32 exec_lo, -1
    let words = [&FILL, &[0xbefe_0080][..], words, &[0xbefe_00c1], &READ].concat();
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    levels()
        .into_iter()
        .map(|level| {
            let machine = Machine::new();
            let base = machine.memory(4096);
            let mut registers = Registers::new(32);
            registers.s[4..24].copy_from_slice(&fields(base).0);
            for lane in 0..32 {
                let at = 4 * lane as u32;
                let address = base + u64::from(at);
                registers.v[0][lane] = at;
                (registers.v[10][lane], registers.v[11][lane]) =
                    (address as u32, (address >> 32) as u32);
                let four = [0, 1, 2, 3].map(|byte| (at + byte) as u8);
                registers.v[1][lane] = u32::from_le_bytes(four);
                registers.v[2][lane] = u32::from_le_bytes(four.map(|byte| byte | 0x80));
            }
            machine
                .run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers)
                .unwrap_or_else(|fault| panic!("{fault:?}"));
            let bytes = |row: usize| -> Vec<u8> {
                registers.v[row][..32]
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect()
            };
            (bytes(4), bytes(5))
        })
        .collect()
}

fn memory() -> Vec<u8> {
    (0..BYTES as u8).collect()
}

fn lds() -> Vec<u8> {
    (0..BYTES as u8).map(|byte| byte | 0x80).collect()
}

#[test]
fn tiles_come_from_a_tensor() {
    // 4 x 3 bytes of a tensor of rows of 16, of which 3 columns and 2 rows are there
    let results = copy(&LOAD_2D, |base| {
        let mut fields = Fields::new(base + 20, 8, 1);
        fields.shape(&[3, 2], &[4, 3], &[16]);
        fields
    });
    let mut want = lds();
    want[8..20].copy_from_slice(&[20, 21, 22, 0, 36, 37, 38, 0, 0, 0, 0, 0]);
    for (lds, after) in results {
        assert_eq!(lds, want);
        assert_eq!(after, memory());
    }
    // 2 x 2 x 2 halves, two bytes of padding dwords after every two dwords
    let results = copy(&LOAD, |base| {
        let mut fields = Fields::new(base, 0, 2);
        fields.shape(&[2, 2, 2, 1], &[2, 2, 2, 1], &[4, 16, 1]);
        fields.set(1, 20, 1, 1);
        // every 4 bytes << 1, one dword
        fields.set(1, 22, 3, 0);
        fields.set(1, 25, 7, 0);
        fields
    });
    let mut want = lds();
    want[..8].copy_from_slice(&[0, 1, 2, 3, 8, 9, 10, 11]);
    want[12..20].copy_from_slice(&[32, 33, 34, 35, 40, 41, 42, 43]);
    for (lds, _) in results {
        assert_eq!(lds, want);
    }
}

#[test]
fn tiles_go_to_a_tensor() {
    // 3 x 2 dwords, the third column beyond the tensor; padding is for loads
    let results = copy(&STORE, |base| {
        let mut fields = Fields::new(base + 4, 64, 4);
        fields.shape(&[2, 2], &[3, 2], &[8]);
        fields.set(1, 20, 1, 1);
        fields
    });
    let mut want = memory();
    want[4..12].copy_from_slice(&lds()[64..72]);
    want[36..44].copy_from_slice(&lds()[76..84]);
    for (after, memory) in results {
        assert_eq!(memory, want);
        assert_eq!(after, lds());
    }
}

#[test]
fn rows_are_gathered_and_tiles_repeated() {
    // rows 3, 0 and 9 of a tensor of 4 rows of 8 bytes
    for wide in [false, true] {
        let results = copy(&LOAD, |base| {
            let mut fields = Fields::new(base, 0, 1);
            fields.set(0, 31, 1, 1);
            fields.set(0, 30, 1, u64::from(wide));
            fields.shape(&[8, 4], &[2, 3], &[8]);
            let width = if wide { 32 } else { 16 };
            for (at, row) in [3, 0, 9].into_iter().enumerate() {
                fields.set(2, width * at, width, row);
            }
            fields
        });
        let mut want = lds();
        want[..6].copy_from_slice(&[24, 25, 0, 1, 0, 0]);
        for (lds, _) in results {
            assert_eq!(lds, want);
        }
    }
    // 2 x 2 bytes, three times, 3 columns on each time, 8 bytes of LDS apart, in a tensor of 7 columns
    let results = copy(&LOAD, |base| {
        let mut fields = Fields::new(base, 0, 1);
        fields.shape(&[7, 2], &[2, 2], &[16]);
        fields.set(1, 19, 1, 1);
        fields.set(2, 32, 32, 8);
        fields.set(2, 64, 48, 3);
        fields.set(2, 112, 16, 2);
        fields
    });
    let mut want = lds();
    want[..4].copy_from_slice(&[0, 1, 16, 17]);
    want[8..12].copy_from_slice(&[3, 4, 19, 20]);
    want[16..20].copy_from_slice(&[6, 0, 22, 0]);
    for (lds, _) in results {
        assert_eq!(lds, want);
    }
}

#[test]
fn copies_arrive_at_a_barrier_and_may_be_off() {
    let barrier = |base| {
        let mut fields = Fields::new(base, 0, 1);
        fields.shape(&[1], &[1], &[]);
        fields.set(1, 18, 1, 1);
        // at 16 bytes
        fields.set(1, 32, 16, 2);
        fields
    };
    for (lds, _) in copy(&LOAD_2D, barrier) {
        let mut want = self::lds();
        want[0] = 0;
        // the count's lowest byte
        want[16] -= 1;
        assert_eq!(lds, want);
    }
    let off = |base| {
        let mut fields = barrier(base);
        fields.0[0] &= !3;
        fields
    };
    for (lds, memory) in copy(&LOAD_2D, off) {
        assert_eq!((lds, memory), (self::lds(), self::memory()));
    }
}

/// A change of a good descriptor.
type Change = fn(&mut Fields);

#[test]
fn what_a_copy_refuses() {
    let code: Vec<u8> = LOAD.iter().flat_map(|word| word.to_le_bytes()).collect();
    let cases: [(&str, Change); 4] = [
        ("reserved", |fields| fields.set(0, 1, 1, 1)),
        ("without extent", |fields| {
            fields.shape(&[1, 1], &[0, 1], &[1]);
        }),
        ("larger than LDS", |fields| {
            fields.shape(&[1, 1, 1], &[0xffff; 3], &[1, 1]);
        }),
        ("rows that a descriptor does not hold", |fields| {
            fields.set(0, 31, 1, 1);
            fields.shape(&[1, 1], &[1, 17], &[1]);
        }),
    ];
    for level in levels() {
        for (why, change) in cases {
            let machine = Machine::new();
            let mut registers = Registers::new(32);
            let mut fields = Fields::new(machine.memory(4096), 0, 1);
            change(&mut fields);
            registers.s[4..24].copy_from_slice(&fields.0);
            let fault = machine
                .run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers)
                .unwrap_err();
            let fault = format!("{:?}", fault.kind);
            assert!(fault.contains(why), "{fault}");
        }
        // memory that is not there
        let machine = Machine::new();
        let mut registers = Registers::new(32);
        let mut fields = Fields::new(0x1000, 0, 1);
        fields.shape(&[1], &[1], &[]);
        registers.s[4..24].copy_from_slice(&fields.0);
        let fault = machine
            .run(level, IsaFamily::Gfx1250, 32, 0x3f0, &code, &mut registers)
            .unwrap_err();
        assert!(format!("{:?}", fault.kind).contains("Memory"));
    }
}
