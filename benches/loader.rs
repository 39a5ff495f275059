//! How fast files are listed: a fat binary of 150 MB beside reading it, a compressed bundle beside decompressing it, and
//! one code object of 100 KiB or more.
//!
//! `cargo bench --bench loader [-- FILE…]` lists those files too. Prints medians of alternating runs and their
//! ratios; asserts no time.
#![allow(
    clippy::print_stdout,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark prints, and panics without its data"
)]

use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use md5::{Digest, Md5};
use rocr::loader::{CodeObject, OpenOptions, open_with};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Alternating runs of the two things compared.
const RUNS: usize = 15;
/// Bytes of the fat binary.
const FAT: usize = 150 << 20;
/// Bytes of the bundle that is compressed.
const COMPRESSED: usize = 16 << 20;

fn time(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Medians of `one` and `other`, each run in turn with the other.
fn paired(mut one: impl FnMut(), mut other: impl FnMut()) -> (Duration, Duration) {
    let (ones, others) = (0..RUNS)
        .map(|_| (time(&mut one), time(&mut other)))
        .unzip();
    (median(ones), median(others))
}

/// The objects at -O0 of every target, the largest first.
fn objects() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/objects");
    let mut objects = Vec::new();
    for target in fs::read_dir(root).unwrap() {
        let Ok(folder) = fs::read_dir(target.unwrap().path().join("O0")) else {
            continue;
        };
        for file in folder {
            objects.push(fs::read(file.unwrap().path()).unwrap());
        }
    }
    objects.sort_by_key(|object| std::cmp::Reverse(object.len()));
    objects
}

/// A bundle of about `size` bytes: the objects over and over, each at a page of its own.
fn bundle(objects: &[Vec<u8>], size: usize) -> Vec<u8> {
    let mut chosen = Vec::new();
    let mut total = 0;
    for object in objects.iter().cycle() {
        if total >= size {
            break;
        }
        total += object.len().next_multiple_of(4096);
        chosen.push(object);
    }
    let id = b"hipv4-amdgcn-amd-amdhsa--gfx90a";
    let table = 32 + chosen.len() * (24 + id.len());
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((chosen.len() as u64).to_le_bytes());
    let mut at = table.next_multiple_of(4096);
    for object in &chosen {
        bytes.extend((at as u64).to_le_bytes());
        bytes.extend((object.len() as u64).to_le_bytes());
        bytes.extend((id.len() as u64).to_le_bytes());
        bytes.extend(id);
        at += object.len().next_multiple_of(4096);
    }
    for object in chosen {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(object);
    }
    bytes
}

/// CCOB version 2 around a stream.
fn compressed(method: u16, stream: &[u8], content: &[u8]) -> Vec<u8> {
    let hash = Md5::digest(content);
    let mut bytes = b"CCOB\x02\x00".to_vec();
    bytes.extend(method.to_le_bytes());
    bytes.extend((24 + stream.len() as u32).to_le_bytes());
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(&hash[..8]);
    bytes.extend(stream);
    bytes
}

fn print(what: &str, (one, other): (Duration, Duration), beside: &str) {
    println!(
        "{what}: {:.3} ms; {beside}: {:.3} ms; ratio {:.2}",
        one.as_secs_f64() * 1e3,
        other.as_secs_f64() * 1e3,
        one.as_secs_f64() / other.as_secs_f64()
    );
}

fn list(path: &Path) {
    let status = Command::new(env!("CARGO_BIN_EXE_rocr"))
        .args(["load", "--inspect", "--list"])
        .arg(path)
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

/// The process of `rocr load --list` beside reading the file in this one.
fn listing(path: &Path) {
    let size = fs::metadata(path).unwrap().len();
    let times = paired(
        || list(path),
        || {
            black_box(fs::read(path).unwrap());
        },
    );
    let what = format!("load --list of {size} bytes, {}", path.display());
    print(&what, times, "reading");
}

fn main() {
    let objects = objects();
    let folder = tempfile::tempdir().unwrap();
    let fat = folder.path().join("fat.bundle");
    fs::File::create(&fat)
        .unwrap()
        .write_all(&bundle(&objects, FAT))
        .unwrap();
    listing(&fat);
    for file in std::env::args_os()
        .skip(1)
        .filter(|word| word.as_encoded_bytes() != b"--bench")
    {
        listing(&PathBuf::from(file));
    }

    let content = bundle(&objects, COMPRESSED);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&content).unwrap();
    let zlib = zlib.finish().unwrap();
    let zstd = compress_to_vec(&content[..], CompressionLevel::Fastest);
    let open = |file: &[u8]| {
        black_box(open_with(file.to_vec(), OpenOptions::default()).unwrap());
    };
    let file = compressed(0, &zlib, &content);
    let times = paired(
        || open(&file),
        || {
            let mut out = Vec::with_capacity(content.len());
            flate2::read::ZlibDecoder::new(&zlib[..])
                .read_to_end(&mut out)
                .unwrap();
            black_box(out);
        },
    );
    print("CCOB, zlib, opened", times, "decompressing");
    let file = compressed(1, &zstd, &content);
    let times = paired(
        || open(&file),
        || {
            let mut out = Vec::with_capacity(content.len());
            StreamingDecoder::new(&zstd[..])
                .unwrap()
                .read_to_end(&mut out)
                .unwrap();
            black_box(out);
        },
    );
    print("CCOB, zstd, opened", times, "decompressing");

    let object = &objects[0];
    let times: Vec<Duration> = (0..201)
        .map(|_| {
            time(|| {
                black_box(CodeObject::parse(object.clone()).unwrap());
            })
        })
        .collect();
    println!(
        "one object of {} bytes parsed: {:.1} us",
        object.len(),
        median(times).as_secs_f64() * 1e6
    );
}
