//! The contents of a buffer, as a function of the element's index.
//!
//! Knows: element types and the ways to fill them. Must not know: device memory; callers ask for the bytes
//! of a range, so that a buffer of any size needs no copy in host memory.
use super::error::ValueError;
use super::literal::Literal;
use super::npy;
use super::scalar::{Scalar, ScalarType};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a buffer is filled, as written behind `TYPE[N]:`.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// All bits zero.
    Zeros,
    /// The number one.
    Ones,
    /// One value.
    Fill(Literal),
    /// START, START+STEP, …
    Iota {
        /// First element.
        start: Literal,
        /// Difference of neighbours.
        step: Literal,
    },
    /// Pseudo-random: uniform in [0,1) for floats, the full range for integers.
    Rand {
        /// Seed; the same seed, type and index give the same element on every machine.
        seed: u64,
    },
    /// A pattern that no kernel mistakes for a result.
    Poison,
    /// A file's content: `.npy` by its magic, else raw bytes.
    File(PathBuf),
}

impl Init {
    /// Reads the INIT of the grammar.
    pub fn parse(text: &str) -> Result<Init, ValueError> {
        let malformed = || {
            ValueError::Malformed {
            text: text.to_owned(),
            wanted: "a way to fill a buffer: zeros, ones, fill:V, iota, iota:START:STEP, rand, rand:SEED, poison or @FILE"
                .to_owned(),
        }
        };
        if let Some(path) = text.strip_prefix('@') {
            return file_name(path, text).map(Init::File);
        }
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        match (word, rest) {
            ("zeros", None) => Ok(Init::Zeros),
            ("ones", None) => Ok(Init::Ones),
            ("poison", None) => Ok(Init::Poison),
            ("fill", Some(value)) => Ok(Init::Fill(Literal::parse(value)?)),
            ("iota", None) => Ok(Init::Iota {
                start: Literal::integer(0),
                step: Literal::integer(1),
            }),
            ("iota", Some(rest)) => {
                let (start, step) = rest.split_once(':').unwrap_or((rest, "1"));
                Ok(Init::Iota {
                    start: Literal::parse(start)?,
                    step: Literal::parse(step)?,
                })
            }
            ("rand", None) => Ok(Init::Rand { seed: 0 }),
            ("rand", Some(seed)) => {
                let seed = Literal::parse(seed)?.to_scalar(ScalarType::U64)?;
                Ok(Init::Rand { seed: seed.bits })
            }
            _ => Err(malformed()),
        }
    }
}

/// The file of an `@FILE`, which must have a name.
pub(super) fn file_name(path: &str, text: &str) -> Result<PathBuf, ValueError> {
    if path.is_empty() {
        return Err(ValueError::Malformed {
            text: text.to_owned(),
            wanted: "@ and the name of a file".to_owned(),
        });
    }
    Ok(PathBuf::from(path))
}

#[derive(Clone, Debug)]
enum Source {
    Constant(u64),
    IntegerIota { start: i128, step: i128 },
    FloatIota { start: f64, step: f64 },
    Rand(u64),
    Pattern { seed: u64, limit: u64 },
    Bytes(Arc<[u8]>),
}

/// A typed sequence of elements.
#[derive(Clone, Debug)]
pub struct Buffer {
    ty: ScalarType,
    count: u64,
    source: Source,
    text: String,
}

impl Buffer {
    /// Makes a buffer of `count` elements; files are read here, and give the count where none is said.
    pub fn new(ty: ScalarType, count: Option<u64>, init: &Init) -> Result<Buffer, ValueError> {
        if let Init::File(path) = init {
            return Buffer::from_file(Some(ty), count, path);
        }
        let count = count.ok_or_else(|| ValueError::Malformed {
            text: describe(init),
            wanted: format!(
                "complete: say how many elements, as in {ty}[1024]:{}",
                describe(init)
            ),
        })?;
        let source = match init {
            Init::Zeros => Source::Constant(0),
            Init::Ones => Source::Constant(Literal::integer(1).to_scalar(ty)?.bits),
            Init::Fill(value) => Source::Constant(value.to_scalar(ty)?.bits),
            Init::Iota { start, step } => {
                if ty.is_float() {
                    let wide =
                        |literal: &Literal| literal.to_scalar(ScalarType::F64).map(Scalar::as_f64);
                    Source::FloatIota {
                        start: wide(start)?,
                        step: wide(step)?,
                    }
                } else {
                    let start = start.to_scalar(ty)?.as_integer().unwrap_or(0);
                    // A step may be negative for unsigned types too.
                    let step = step.to_scalar(ScalarType::I64)?.as_integer().unwrap_or(0);
                    Source::IntegerIota { start, step }
                }
            }
            Init::Rand { seed } => Source::Rand(*seed),
            Init::Poison => Source::Constant(poison(ty)),
            Init::File(_) => return Err(ValueError::TooLarge { count, ty }),
        };
        Buffer::checked(ty, count, source, describe(init))
    }

    /// Takes a file's elements. Without a type the file must be a `.npy`, which says its own.
    pub fn from_file(
        ty: Option<ScalarType>,
        count: Option<u64>,
        path: &Path,
    ) -> Result<Buffer, ValueError> {
        let content = std::fs::read(path).map_err(|source| ValueError::File {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        let misfit = |what: String| ValueError::FileContent {
            path: path.to_owned(),
            what,
        };
        let (ty, bytes) = if npy::is_npy(&content) {
            let array = npy::read(&content).map_err(|error| misfit(error.to_string()))?;
            let ty = ty.unwrap_or(array.ty);
            if !npy::holds(array.ty, ty) {
                return Err(misfit(format!("its elements are {}, not {ty}", array.ty)));
            }
            (ty, array.bytes)
        } else {
            let ty = ty.ok_or_else(|| {
                misfit("it is no .npy file, so its type must be said, as in f32:@FILE".to_owned())
            })?;
            (ty, content)
        };
        let size = ty.size_bytes();
        if !bytes.len().is_multiple_of(size) {
            return Err(misfit(format!(
                "{} bytes are no multiple of {ty}'s {size}",
                bytes.len()
            )));
        }
        let held = (bytes.len() / size) as u64;
        if let Some(count) = count.filter(|count| *count != held) {
            return Err(misfit(format!(
                "it holds {held} elements of {ty}, not {count}"
            )));
        }
        Buffer::checked(
            ty,
            held,
            Source::Bytes(bytes.into()),
            format!("@{}", path.display()),
        )
    }

    /// A seeded pattern that kernels survive: floats in [0,1), integers below `limit`, so that a kernel which uses
    /// them as indices stays inside its buffers.
    pub fn pattern(ty: ScalarType, count: u64, seed: u64, limit: u64) -> Buffer {
        let source = Source::Pattern {
            seed,
            limit: limit.max(1),
        };
        Buffer {
            ty,
            count,
            source,
            text: "pattern".to_owned(),
        }
    }

    /// Takes bytes as they are.
    pub fn from_bytes(ty: ScalarType, bytes: Vec<u8>, text: &str) -> Buffer {
        let count = (bytes.len() / ty.size_bytes()) as u64;
        Buffer {
            ty,
            count,
            source: Source::Bytes(bytes.into()),
            text: text.to_owned(),
        }
    }

    fn checked(
        ty: ScalarType,
        count: u64,
        source: Source,
        text: String,
    ) -> Result<Buffer, ValueError> {
        count
            .checked_mul(ty.size_bytes() as u64)
            .ok_or(ValueError::TooLarge { count, ty })?;
        Ok(Buffer {
            ty,
            count,
            source,
            text,
        })
    }

    /// Element type.
    pub fn ty(&self) -> ScalarType {
        self.ty
    }

    /// Number of elements.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Size; does not overflow by construction.
    pub fn size_bytes(&self) -> u64 {
        self.count * self.ty.size_bytes() as u64
    }

    /// How it is filled, in the command line's words.
    pub fn init_text(&self) -> &str {
        &self.text
    }

    /// The bits of an element; zero beyond the end.
    pub fn element(&self, index: u64) -> Scalar {
        let ty = self.ty;
        match &self.source {
            Source::Constant(bits) => Scalar { ty, bits: *bits },
            Source::IntegerIota { start, step } => Scalar::from_integer_wrapping(
                ty,
                start.wrapping_add(step.wrapping_mul(i128::from(index))),
            ),
            Source::FloatIota { start, step } => Scalar::from_f64(ty, start + step * index as f64),
            Source::Rand(seed) => random(ty, *seed, index),
            Source::Pattern { seed, limit } => pattern(ty, *seed, *limit, index),
            Source::Bytes(bytes) => {
                let at = (index as usize).saturating_mul(ty.size_bytes());
                let found = bytes
                    .get(at..)
                    .and_then(|rest| Scalar::from_le_bytes(ty, rest));
                found.unwrap_or(Scalar { ty, bits: 0 })
            }
        }
    }

    /// Writes whole elements from index `first` on; a partial element at the end of `out` is left alone.
    pub fn write(&self, first: u64, out: &mut [u8]) {
        let (ty, size) = (self.ty, self.ty.size_bytes());
        match &self.source {
            Source::Bytes(bytes) => {
                let start = (first as usize).saturating_mul(size).min(bytes.len());
                let len = out.len().min(bytes.len() - start);
                out[..len].copy_from_slice(&bytes[start..start + len]);
            }
            Source::Constant(bits) => write_each(size, first, out, |_| *bits),
            // the most used ones by themselves, for a loop that knows its type
            Source::Rand(seed) if ty == ScalarType::F32 => write_each(4, first, out, |index| {
                random(ScalarType::F32, *seed, index).bits
            }),
            _ => write_each(size, first, out, |index| self.element(index).bits),
        }
    }
}

/// Writes the bits of elements of `size` bytes from index `first` on.
fn write_each(size: usize, first: u64, out: &mut [u8], bits: impl Fn(u64) -> u64) {
    if size == 4 {
        for (index, slot) in (first..).zip(out.as_chunks_mut().0) {
            *slot = (bits(index) as u32).to_le_bytes();
        }
        return;
    }
    for (index, slot) in (first..).zip(out.chunks_exact_mut(size)) {
        slot.copy_from_slice(&bits(index).to_le_bytes()[..size]);
    }
}

/// A pattern that is neither a plausible result nor close to one: a NaN with a payload of its own, so that no
/// tolerance accepts it, and for integers a large number of no pattern that kernels compute.
fn poison(ty: ScalarType) -> u64 {
    match ty {
        ScalarType::F16 => 0x7fa5,
        ScalarType::Bf16 => 0x7fe5,
        ScalarType::F32 => 0x7fe5_a5a5,
        ScalarType::F64 => 0x7ffd_a5a5_a5a5_a5a5,
        integer => 0xa5a5_a5a5_a5a5_a5a5 >> (64 - 8 * integer.size_bytes()),
    }
}

/// SplitMix64's output function (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014)
/// at a position, so that elements can be made in any order.
fn split_mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[inline]
fn random(ty: ScalarType, seed: u64, index: u64) -> Scalar {
    let bits = split_mix(seed, index);
    // As many random bits as the significand holds, so that every value is exact and none rounds up to 1.
    let digits = match ty {
        ScalarType::F16 => 11,
        ScalarType::Bf16 => 8,
        ScalarType::F32 => 24,
        ScalarType::F64 => 53,
        integer => {
            return Scalar {
                ty,
                bits: bits >> (64 - 8 * integer.size_bytes()),
            };
        }
    };
    Scalar::from_f64(
        ty,
        (bits >> (64 - digits)) as f64 / (1_u64 << digits) as f64,
    )
}

fn pattern(ty: ScalarType, seed: u64, limit: u64, index: u64) -> Scalar {
    let bits = split_mix(seed, index);
    match ty.integer_range() {
        Some((_, most)) => {
            let below = i128::from(limit).min(most + 1);
            Scalar::from_integer_wrapping(ty, i128::from(bits) % below)
        }
        // 8 bits are exact in every type.
        None => Scalar::from_f64(ty, (bits >> 56) as f64 / 256.0),
    }
}

fn describe(init: &Init) -> String {
    match init {
        Init::Zeros => "zeros".to_owned(),
        Init::Ones => "ones".to_owned(),
        Init::Fill(value) => format!("fill:{value}"),
        Init::Iota { start, step } => format!("iota:{start}:{step}"),
        Init::Rand { seed } => format!("rand:{seed}"),
        Init::Poison => "poison".to_owned(),
        Init::File(path) => format!("@{}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(ty: ScalarType, count: u64, init: &str) -> Buffer {
        Buffer::new(ty, Some(count), &Init::parse(init).unwrap()).unwrap()
    }

    fn texts(buffer: &Buffer) -> Vec<String> {
        (0..buffer.count())
            .map(|index| buffer.element(index).to_string())
            .collect()
    }

    #[test]
    fn every_way_to_fill() {
        assert_eq!(texts(&buffer(ScalarType::F32, 2, "zeros")), ["0.0", "0.0"]);
        assert_eq!(texts(&buffer(ScalarType::F16, 2, "ones")), ["1.0", "1.0"]);
        assert_eq!(texts(&buffer(ScalarType::I8, 2, "fill:-3")), ["-3", "-3"]);
        assert_eq!(texts(&buffer(ScalarType::U32, 3, "iota")), ["0", "1", "2"]);
        assert_eq!(
            texts(&buffer(ScalarType::F32, 3, "iota:0.5:0.25")),
            ["0.5", "0.75", "1.0"]
        );
        assert_eq!(
            texts(&buffer(ScalarType::I16, 3, "iota:5:-10")),
            ["5", "-5", "-15"]
        );
        assert_eq!(texts(&buffer(ScalarType::U32, 2, "iota:7")), ["7", "8"]);
        assert_eq!(buffer(ScalarType::U8, 300, "iota").element(256).bits, 0);
    }

    #[test]
    fn poison_is_accepted_by_no_tolerance() {
        for ty in ScalarType::ALL {
            let value = buffer(ty, 1, "poison").element(0);
            assert!(
                if ty.is_float() {
                    value.as_f64().is_nan()
                } else {
                    value.as_f64().abs() > 80.0
                },
                "{ty}"
            );
        }
    }

    #[test]
    fn rand_is_seeded_and_in_range() {
        let a = buffer(ScalarType::F32, 4096, "rand:7");
        let mean = (0..4096).map(|i| a.element(i).as_f64()).sum::<f64>() / 4096.0;
        assert!((0..4096).all(|i| (0.0..1.0).contains(&a.element(i).as_f64())));
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_eq!(texts(&a)[..8], texts(&buffer(ScalarType::F32, 8, "rand:7")));
        assert_ne!(texts(&a)[..8], texts(&buffer(ScalarType::F32, 8, "rand:8")));
        let bytes = buffer(ScalarType::I8, 4096, "rand");
        let values: std::collections::BTreeSet<_> =
            (0..4096).map(|i| bytes.element(i).bits).collect();
        assert_eq!(values.len(), 256);
    }

    #[test]
    fn split_mix_matches_the_published_sequence() {
        // First outputs of the reference SplitMix64 for seed 1234567.
        let want = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
        ];
        assert_eq!([0, 1, 2].map(|index| split_mix(1_234_567, index)), want);
    }

    #[test]
    fn chunks_are_pieces_of_the_whole() {
        for init in ["iota", "rand:3", "poison"] {
            let buffer = buffer(ScalarType::U16, 100, init);
            let mut whole = vec![0; 200];
            buffer.write(0, &mut whole);
            let mut piece = vec![0; 20];
            buffer.write(37, &mut piece);
            assert_eq!(piece, whole[74..94], "{init}");
        }
    }

    #[test]
    fn literals_must_fit_the_type() {
        let fails = |ty, init: &str| Buffer::new(ty, Some(4), &Init::parse(init).unwrap()).is_err();
        assert!(fails(ScalarType::U8, "fill:256"));
        assert!(fails(ScalarType::I32, "fill:1.5"));
        assert!(fails(ScalarType::U8, "iota:-1:1"));
        assert!(fails(ScalarType::I32, "iota:0:0.5"));
    }

    #[test]
    fn malformed_ways_to_fill() {
        for text in [
            "",
            "zero",
            "fill",
            "fill:",
            "zeros:1",
            "iota:",
            "iota:1:2:3",
            "rand:-1",
            "rand:x",
            "@",
            "poison:1",
        ] {
            assert!(Init::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let result = Buffer::new(ScalarType::F64, Some(u64::MAX / 4), &Init::Zeros);
        assert!(matches!(result, Err(ValueError::TooLarge { .. })));
    }

    #[test]
    fn files_give_type_and_count() {
        let dir = tempfile::tempdir().unwrap();
        let raw = dir.path().join("data.bin");
        std::fs::write(&raw, [1_u8, 0, 2, 0, 3, 0]).unwrap();
        let init = Init::File(raw.clone());
        assert_eq!(
            texts(&Buffer::new(ScalarType::U16, None, &init).unwrap()),
            ["1", "2", "3"]
        );
        assert!(matches!(
            Buffer::new(ScalarType::U16, Some(4), &init),
            Err(ValueError::FileContent { .. })
        ));
        assert!(matches!(
            Buffer::new(ScalarType::U32, None, &init),
            Err(ValueError::FileContent { .. })
        ));
        assert!(matches!(
            Buffer::from_file(None, None, &raw),
            Err(ValueError::FileContent { .. })
        ));
        let npy = dir.path().join("data.npy");
        std::fs::write(&npy, npy::write(ScalarType::F32, &1.5_f32.to_le_bytes())).unwrap();
        assert_eq!(
            texts(&Buffer::from_file(None, None, &npy).unwrap()),
            ["1.5"]
        );
        assert!(matches!(
            Buffer::from_file(Some(ScalarType::F64), None, &npy),
            Err(ValueError::FileContent { .. })
        ));
        assert!(matches!(
            Buffer::from_file(None, None, &dir.path().join("absent")),
            Err(ValueError::File { action: "read", .. })
        ));
    }
}
