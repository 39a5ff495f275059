//! References for `args.hip`, `geometry.cl` and `preload.hip`: what the runtime
//! hands to a kernel. The layouts are those of LLVM's AMDGPUUsage, "Code Object
//! V4/V5 Metadata", and of the HSA kernel dispatch packet.

use half::f16;

use crate::case::{Arg, Buffer, Build, Case, Entry, Expected, Launch, buf, val};
use crate::data::{Data, Rng};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "args_hidden_v5",
        object: "args",
        make: hidden_v5,
        samples_only: false,
    },
    Entry {
        name: "args_hidden_v4",
        object: "args_v4",
        make: hidden_v4,
        samples_only: false,
    },
    Entry {
        name: "args_packet_v5",
        object: "args",
        make: |_| packet("args"),
        samples_only: false,
    },
    Entry {
        name: "args_packet_v4",
        object: "args_v4",
        make: |_| packet("args_v4"),
        samples_only: false,
    },
    Entry {
        name: "args_ids_v5",
        object: "args",
        make: |_| ids("args"),
        samples_only: false,
    },
    Entry {
        name: "args_ids_v4",
        object: "args_v4",
        make: |_| ids("args_v4"),
        samples_only: false,
    },
    Entry {
        name: "args_struct",
        object: "args",
        make: by_value_struct,
        samples_only: false,
    },
    Entry {
        name: "args_small",
        object: "args",
        make: small,
        samples_only: false,
    },
    Entry {
        name: "geometry_v5_partial",
        object: "geometry",
        make: |_| geometry("geometry", [21, 10, 3], [8, 4, 2]),
        samples_only: false,
    },
    Entry {
        name: "geometry_v5_whole",
        object: "geometry",
        make: |_| geometry("geometry", [24, 12, 4], [8, 4, 2]),
        samples_only: false,
    },
    Entry {
        name: "geometry_v4_partial",
        object: "geometry_v4",
        make: |_| geometry("geometry_v4", [21, 10, 3], [8, 4, 2]),
        samples_only: false,
    },
    Entry {
        name: "preload_args",
        object: "preload",
        make: preload,
        samples_only: false,
    },
    Entry {
        name: "preload_hidden",
        object: "preload",
        make: preload_hidden,
        samples_only: false,
    },
];

const GRID: [u32; 3] = [40, 6, 4];
const BLOCK: [u16; 3] = [8, 3, 2];

/// A dump of words, of which some are fixed by the layout: (index, mask, want).
fn dump(words: usize, fixed: Vec<(usize, u32, u32)>) -> Buffer {
    Buffer {
        init: Data::from(vec![0u32; words]).poison(),
        expect: Expected::Holds(Box::new(move |got| {
            for &(index, mask, want) in &fixed {
                let word = got
                    .get(4 * index..4 * index + 4)
                    .and_then(|bytes| bytes.try_into().ok())
                    .map(u32::from_le_bytes);
                if word.map(|word| word & mask) != Some(want) {
                    return Err(format!(
                        "word {index}: got {word:#x?}, want {want:#x} under mask {mask:#x}"
                    ));
                }
            }
            Ok(())
        })),
    }
}

const ALL: u32 = u32::MAX;

fn hidden_v5(_: Build) -> Case {
    let mut fixed = vec![
        // hidden_block_count_x, y, z
        (0, ALL, 5),
        (1, ALL, 2),
        (2, ALL, 2),
        // hidden_group_size_x, y, z, hidden_remainder_x, y, z: 16 bits each
        (3, ALL, 3 << 16 | 8),
        (4, ALL, 2),
        (5, ALL, 0),
        // hidden_grid_dims
        (16, 0xffff, 3),
    ];
    // hidden_global_offset_x, y, z
    fixed.extend((10..16).map(|word| (word, ALL, 0)));
    Case::new(
        "args",
        vec![dump(64, fixed)],
        vec![Launch::new("args_hidden", 0, 0, vec![buf(0)]).grid3(GRID, BLOCK)],
    )
}

fn hidden_v4(_: Build) -> Case {
    // hidden_global_offset_x, y, z open the V4 block.
    let fixed = (0..6).map(|word| (word, ALL, 0)).collect();
    Case::new(
        "args_v4",
        vec![dump(14, fixed)],
        vec![Launch::new("args_hidden", 0, 0, vec![buf(0)]).grid3(GRID, BLOCK)],
    )
}

fn packet(object: &'static str) -> Case {
    let fixed = vec![
        // setup: the number of dimensions
        (0, 0x0003_0000, 3 << 16),
        // workgroup_size_x, y and z
        (1, ALL, 3 << 16 | 8),
        (2, 0xffff, 2),
        // grid_size_x, y, z
        (3, ALL, 40),
        (4, ALL, 6),
        (5, ALL, 4),
        // group_segment_size: the kernel has no LDS
        (7, ALL, 0),
    ];
    Case::new(
        object,
        vec![dump(14, fixed)],
        vec![Launch::new("args_packet", 0, 0, vec![buf(0)]).grid3(GRID, BLOCK)],
    )
}

fn ids(object: &'static str) -> Case {
    let (nx, ny, nz) = (13u32, 5u32, 3u32);
    let (grid, block) = ([16u32, 6, 4], [8u32, 3, 2]);
    let mut want = Vec::new();
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                let at = [x, y, z];
                want.extend((0..3).map(|d| at[d] % block[d]));
                want.extend((0..3).map(|d| at[d] / block[d]));
                want.push(block[0] | block[1] << 10 | block[2] << 20);
                want.push(grid[0]);
            }
        }
    }
    Case::new(
        object,
        vec![Buffer::output(want)],
        vec![
            Launch::new("args_ids", 0, 0, vec![buf(0), val(nx), val(ny), val(nz)])
                .grid3(grid, block.map(|b| b as u16)),
        ],
    )
}

fn by_value_struct(_: Build) -> Case {
    let n = 33usize;
    let d = -std::f64::consts::E;
    let h = f16::from_f32(-0.3333);
    let table = Rng::new(0xa6).vec(n, Rng::u32);
    // struct Mixed: c@0, d@8, inner.s@16, inner.b@18, p@24, h@32, tail@34
    let mut bytes = vec![0u8; 40];
    bytes[0] = -77i8 as u8;
    bytes[8..16].copy_from_slice(&d.to_le_bytes());
    bytes[16..18].copy_from_slice(&(-12_345i16).to_le_bytes());
    bytes[18..21].copy_from_slice(&[1, 0x80, 0xff]);
    bytes[32..34].copy_from_slice(&h.to_le_bytes());
    bytes[34] = 0xee;
    let want: Vec<u64> = table
        .iter()
        .flat_map(|&word| {
            [
                -77i64 as u64,
                d.to_bits(),
                -12_345i64 as u64,
                0xff_8001,
                u64::from(word),
                u64::from(h.to_bits()),
                0xee,
                40,
                n as u64,
            ]
        })
        .collect();
    Case::new(
        "args",
        vec![Buffer::output(want), Buffer::input(table)],
        vec![Launch::new(
            "args_struct",
            64,
            64,
            vec![buf(0), Arg::Struct(bytes, vec![(24, 1)]), val(n as u32)],
        )],
    )
}

fn small(_: Build) -> Case {
    let f = f16::from_f32(1234.5);
    let g = -0.1f32;
    let h = -0x0123_4567_89ab_cdefi64;
    let v = [0.5f32, 1.5, -2.5, 3.25e-20];
    let want: Vec<u64> = vec![
        -128i64 as u64,
        0xfe,
        -32_768i64 as u64,
        0xfffd,
        1,
        u64::from(f.to_bits()),
        u64::from(g.to_bits()),
        h as u64,
        u64::from(v[0].to_bits()) | u64::from(v[3].to_bits()) << 32,
        -7i64 as u64,
    ];
    Case::new(
        "args",
        vec![Buffer::output(want)],
        vec![Launch::new(
            "args_small",
            64,
            64,
            vec![
                buf(0),
                val(0x80u8),
                val(0xfeu8),
                val(i16::MIN),
                val(0xfffdu16),
                val(1u8),
                val(f),
                val(g),
                val(h),
                Arg::Value(Data::from(v.to_vec()).into_bytes()),
                val(-7i32),
            ],
        )],
    )
}

fn geometry(object: &'static str, grid: [u32; 3], block: [u16; 3]) -> Case {
    let wide = block.map(u32::from);
    let pack = |v: [u32; 3]| v[0] | v[1] << 10 | v[2] << 20;
    let each = |f: &dyn Fn(usize) -> u32| [f(0), f(1), f(2)];
    let mut want = Vec::new();
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                let global = [x, y, z];
                let local = each(&|d| global[d] % wide[d]);
                let group = each(&|d| global[d] / wide[d]);
                // The last group of a dimension has what is left over.
                let size = each(&|d| wide[d].min(grid[d] - group[d] * wide[d]));
                want.extend([
                    pack(global),
                    pack(local),
                    pack(group),
                    pack(size),
                    pack(wide),
                    pack(each(&|d| grid[d].div_ceil(wide[d]))),
                    pack(grid),
                    3,
                    // The device library takes the whole group's size here,
                    // in the partial group too.
                    (local[2] * wide[1] + local[1]) * wide[0] + local[0],
                    (z * grid[1] + y) * grid[0] + x,
                ]);
            }
        }
    }
    Case::new(
        object,
        vec![Buffer::output(want)],
        vec![Launch::new("geometry", 0, 0, vec![buf(0)]).grid3(grid, block)],
    )
}

fn preload(_: Build) -> Case {
    let n = 1000usize;
    let (add, wide, small, high) = (0x9e37u32, 0xfedc_ba98_7654_3210u64, -321i16, 0xf00du16);
    let x = Rng::new(0x91).vec(n, Rng::u32);
    let want: Vec<u32> = x
        .iter()
        .map(|x| {
            x.wrapping_mul(add)
                .wrapping_add((wide >> 32) as u32)
                .wrapping_add(wide as u32)
                .wrapping_add(i32::from(small) as u32)
                .wrapping_add(u32::from(high))
        })
        .collect();
    Case::new(
        "preload",
        vec![Buffer::output(want), Buffer::input(x)],
        vec![Launch::new(
            "preload",
            1024,
            256,
            vec![
                buf(0),
                buf(1),
                val(n as u32),
                val(add),
                val(wide),
                val(small),
                val(high),
            ],
        )],
    )
}

fn preload_hidden(_: Build) -> Case {
    let (n, add, block) = (1111u32, 0x0101_0101u32, 96u16);
    let want: Vec<u32> = (0..n)
        .map(|i| i.wrapping_mul(add).wrapping_add(u32::from(block)))
        .collect();
    Case::new(
        "preload",
        vec![Buffer::output(want)],
        vec![Launch::new(
            "preload_hidden",
            4 * 96,
            block,
            vec![buf(0), val(n), val(add)],
        )],
    )
}
