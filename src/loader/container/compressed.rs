//! Compressed offload bundles: `CCOB`, a header, and one zlib stream or zstd frame.
//!
//! Knows: the headers of clang's `CompressedOffloadBundle`, versions 1 to 3, and the checks that they allow. Must not
//! know: what the decompressed bytes are. Nothing is allocated by a size that only the header claims.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use md5::{Digest, Md5};

use super::error::ContainerError;
use crate::loader::bytes::{range_at, u16_at, u32_at, u64_at};

/// What a compressed bundle begins with.
pub(super) const MAGIC: &[u8; 4] = b"CCOB";

/// What is read at once.
const STEP: usize = 256 << 10;
/// Pieces on their way to being hashed, at most.
const BUFFERS: usize = 4;
/// Windows that any frame may have; larger ones only where the header claims as much content.
const FREE_WINDOW: u64 = 128 << 20;

/// Decompressed bytes for each compressed one that are allocated at once; bundles of code reach 4 to 12.
const USUAL_RATIO: usize = 16;

/// An MD5.
type Digest128 = [u8; 16];

/// MD5 of what arrives; of large contents on a thread of its own, since hashing takes as long as decompressing. Pieces come
/// and go in the same few buffers.
enum Hasher {
    Here(Md5, Vec<u8>),
    Beside {
        full: SyncSender<(Vec<u8>, usize)>,
        empty: Receiver<Vec<u8>>,
        thread: JoinHandle<Md5>,
    },
}

impl Hasher {
    fn new(size: usize) -> Self {
        let here = || Self::Here(Md5::new(), Vec::new());
        if size <= STEP {
            return here();
        }
        let (full, filled) = sync_channel::<(Vec<u8>, usize)>(BUFFERS);
        let (emptied, empty) = sync_channel(BUFFERS);
        for _ in 0..BUFFERS {
            emptied.send(Vec::new()).unwrap_or_default();
        }
        let hash = move || {
            let mut md5 = Md5::new();
            for (piece, len) in filled {
                md5.update(piece.get(..len).unwrap_or_default());
                // at the end nobody wants it back
                emptied.send(piece).unwrap_or_default();
            }
            md5
        };
        match std::thread::Builder::new().spawn(hash) {
            Ok(thread) => Self::Beside {
                full,
                empty,
                thread,
            },
            Err(_) => here(),
        }
    }

    /// A buffer of `len` bytes for the next piece.
    fn buffer(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = match self {
            Self::Here(_, buffer) => std::mem::take(buffer),
            // the thread gives back each that it gets
            Self::Beside { empty, .. } => empty.recv().unwrap_or_default(),
        };
        buffer.resize(len, 0);
        buffer
    }

    /// Takes the first `len` bytes of a buffer that it gave.
    fn update(&mut self, piece: Vec<u8>, len: usize) {
        match self {
            Self::Here(md5, buffer) => {
                md5.update(piece.get(..len).unwrap_or_default());
                *buffer = piece;
            }
            // the thread ends only after this sender, so this cannot fail
            Self::Beside { full, .. } => full.send((piece, len)).unwrap_or_default(),
        }
    }

    fn finish(self) -> Digest128 {
        let md5 = match self {
            Self::Here(md5, _) => md5,
            Self::Beside { full, thread, .. } => {
                drop(full);
                thread.join().unwrap_or_default()
            }
        };
        md5.finalize().into()
    }
}

/// How the content is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// RFC 1950.
    Zlib,
    /// RFC 8878.
    Zstd,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        })
    }
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// 1 to 3.
    pub version: u16,
    /// Compression method.
    pub method: Method,
    /// Bytes of header and content; version 1 does not say.
    pub total_size: Option<u64>,
    /// Bytes of the decompressed content.
    pub decompressed_size: u64,
    /// The first eight bytes of the MD5 of the decompressed content, as a little-endian number.
    pub hash: u64,
    /// Bytes of the header itself.
    pub header_size: u64,
}

/// A decompressed bundle.
#[derive(Debug)]
pub(super) struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where the compressed bundle ends, in the bytes that it was read from.
    pub end: u64,
    /// The content's own hash, where it is not the header's.
    pub wrong_hash: Option<u64>,
}

impl Header {
    /// Reads the header at `at`.
    ///
    /// # Errors
    /// A version or method that is not known, sizes that do not fit the file.
    pub(super) fn parse(bytes: &[u8], at: u64) -> Result<Self, ContainerError> {
        let wrong = |what, value, limit| ContainerError::Compressed {
            offset: at,
            what,
            value,
            limit,
        };
        let available = (bytes.len() as u64).saturating_sub(at);
        let rest = range_at(bytes, at, available).unwrap_or_default();
        let short = || wrong("the header", 32, available);
        let version = u16_at(rest, 4).ok_or_else(short)?;
        let method = match u16_at(rest, 6).ok_or_else(short)? {
            0 => Method::Zlib,
            1 => Method::Zstd,
            other => return Err(wrong("compression method", other.into(), 1)),
        };
        let u32_at = |offset| u32_at(rest, offset).map(u64::from).ok_or_else(short);
        let u64_at = |offset| u64_at(rest, offset).ok_or_else(short);
        let (total_size, decompressed_size, hash, header_size) = match version {
            1 => (None, u32_at(8)?, u64_at(12)?, 20),
            2 => (Some(u32_at(8)?), u32_at(12)?, u64_at(16)?, 24),
            3 => (Some(u64_at(8)?), u64_at(16)?, u64_at(24)?, 32),
            other => return Err(wrong("version", other.into(), 3)),
        };
        if let Some(total) = total_size
            && !(header_size..=available).contains(&total)
        {
            return Err(wrong("total size", total, available));
        }
        Ok(Self {
            version,
            method,
            total_size,
            decompressed_size,
            hash,
            header_size,
        })
    }

    /// Decompresses the content of the bundle at `at`, to no more than `budget` bytes; what comes is taken from it,
    /// good or not.
    ///
    /// # Errors
    /// A limit that does not suffice, a stream that is malformed, content of another size than the header says.
    pub(super) fn decompress(
        &self,
        bytes: &[u8],
        at: u64,
        budget: &mut u64,
    ) -> Result<Content, ContainerError> {
        let limit = *budget;
        if self.decompressed_size > limit {
            return Err(ContainerError::TooLarge {
                offset: at,
                size: self.decompressed_size,
                limit,
            });
        }
        let len = bytes.len() as u64;
        let start = at.saturating_add(self.header_size);
        let end = self
            .total_size
            .map_or(len, |total| at.saturating_add(total));
        let stream = range_at(bytes, start, end.saturating_sub(start)).unwrap_or_default();
        let malformed = |problem: String| ContainerError::Stream {
            offset: start,
            method: self.method,
            problem,
        };
        let mut rest = stream;
        let mut content = Vec::with_capacity(self.expected_size(stream));
        let (filled, digest) = match self.method {
            Method::Zlib => {
                let mut decoder = flate2::bufread::ZlibDecoder::new(stream);
                let filled = self.fill(&mut decoder, &mut content);
                rest = decoder.into_inner();
                filled
            }
            Method::Zstd => {
                let window = FREE_WINDOW.max(self.decompressed_size.saturating_mul(2));
                let mut decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(
                    &mut rest,
                    window.min(limit.max(FREE_WINDOW)),
                )
                .map_err(|error| malformed(error.to_string()))?;
                self.fill(&mut decoder, &mut content)
            }
        };
        *budget = limit.saturating_sub(content.len() as u64);
        filled.map_err(|error| malformed(error.to_string()))?;
        if content.len() as u64 != self.decompressed_size {
            return Err(ContainerError::WrongSize {
                offset: at,
                want: self.decompressed_size,
                got: content.len() as u64,
            });
        }
        let hash = u64_at(&digest, 0).unwrap_or_default();
        Ok(Content {
            bytes: content,
            end: self
                .total_size
                .map_or(len.saturating_sub(rest.len() as u64), |total| at + total),
            wrong_hash: (hash != self.hash).then_some(hash),
        })
    }

    /// Bytes that are allocated before any has arrived: what is claimed, but no more than code compresses to.
    fn expected_size(&self, stream: &[u8]) -> usize {
        usize::try_from(self.decompressed_size.saturating_add(1))
            .unwrap_or(usize::MAX)
            .min(stream.len().saturating_mul(USUAL_RATIO))
    }

    /// Reads up to one byte more than the header claims, and the MD5 of it; memory grows with what really arrives.
    fn fill(
        &self,
        decoder: &mut impl Read,
        content: &mut Vec<u8>,
    ) -> (std::io::Result<()>, Digest128) {
        let claimed = usize::try_from(self.decompressed_size).unwrap_or(usize::MAX);
        let mut hasher = Hasher::new(claimed);
        let filled = loop {
            let want = claimed.saturating_add(1).saturating_sub(content.len());
            if want == 0 {
                break Ok(());
            }
            let mut piece = hasher.buffer(want.min(STEP));
            match decoder.read(&mut piece) {
                Ok(0) => break Ok(()),
                Ok(got) => {
                    content.extend_from_slice(piece.get(..got).unwrap_or_default());
                    hasher.update(piece, got);
                }
                Err(error) => break Err(error),
            }
        };
        (filled, hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn zlib(content: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn bundle(version: u16, content: &[u8], claimed: u64) -> Vec<u8> {
        let stream = zlib(content);
        let hash = u64_at(&Md5::digest(content), 0).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(0_u16.to_le_bytes());
        match version {
            1 => bytes.extend((claimed as u32).to_le_bytes()),
            2 => {
                bytes.extend((24 + stream.len() as u32).to_le_bytes());
                bytes.extend((claimed as u32).to_le_bytes());
            }
            _ => {
                bytes.extend((32 + stream.len() as u64).to_le_bytes());
                bytes.extend(claimed.to_le_bytes());
            }
        }
        bytes.extend(hash.to_le_bytes());
        bytes.extend(stream);
        bytes
    }

    #[test]
    fn reads_every_version_and_where_it_ends() {
        for version in 1..=3 {
            let mut bytes = vec![0; 5];
            bytes.extend(bundle(version, b"content", 7));
            let end = bytes.len() as u64;
            bytes.extend([0; 9]);
            let header = Header::parse(&bytes, 5).unwrap();
            let content = header.decompress(&bytes, 5, &mut 100).unwrap();
            assert_eq!(
                (content.bytes.as_slice(), content.end, content.wrong_hash),
                (&b"content"[..], end, None),
                "{version}"
            );
        }
    }

    #[test]
    fn checks_size_hash_and_limit() {
        let read = |bytes: &[u8], limit| {
            let header = Header::parse(bytes, 0)?;
            header.decompress(bytes, 0, &mut { limit })
        };
        for claimed in [6, 8, 1 << 30] {
            assert!(
                matches!(
                    read(&bundle(3, b"content", claimed), 1 << 40),
                    Err(ContainerError::WrongSize { .. })
                ),
                "{claimed}"
            );
        }
        assert!(matches!(
            read(&bundle(3, b"content", 7), 6),
            Err(ContainerError::TooLarge {
                size: 7,
                limit: 6,
                ..
            })
        ));
        // a bomb that claims little gives no more than it claims
        let bomb = bundle(3, &vec![0; 1 << 24], 1000);
        assert!(matches!(
            read(&bomb, 1 << 20),
            Err(ContainerError::WrongSize { got: 1001, .. })
        ));
        let mut bytes = bundle(2, b"content", 7);
        bytes[16] ^= 1;
        assert!(read(&bytes, 100).unwrap().wrong_hash.is_some());
        let whole = bundle(3, b"content", 7);
        for len in 0..whole.len() {
            assert!(read(&whole[..len], 100).is_err(), "{len}");
        }
    }
}
