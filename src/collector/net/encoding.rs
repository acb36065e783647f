//! The compressions that bodies and messages may have, and decompressing them up to a limit.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};

/// Why a body cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// More than the limit, as it came or decompressed.
    TooLarge,
    /// For people.
    Broken(String),
}

/// The compression of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// None.
    Identity,
    /// `gzip`.
    Gzip,
    /// `zlib` and `deflate`, which both mean the zlib format.
    Zlib,
    /// `zstd`.
    Zstd,
    /// `snappy`: one block, or frames where the first bytes say so.
    Snappy,
    /// `x-snappy-framed`: frames alone.
    SnappyFramed,
    /// `lz4` frames.
    Lz4,
}

/// Every name that a Content-Encoding may have, the empty one for none.
pub const ENCODINGS: [(&str, Encoding); 8] = [
    ("", Encoding::Identity),
    ("gzip", Encoding::Gzip),
    ("zstd", Encoding::Zstd),
    ("zlib", Encoding::Zlib),
    ("snappy", Encoding::Snappy),
    ("deflate", Encoding::Zlib),
    ("lz4", Encoding::Lz4),
    ("x-snappy-framed", Encoding::SnappyFramed),
];

/// How a stream of snappy frames begins.
const SNAPPY_FRAMES: &[u8] = b"\xff\x06\x00\x00sNaPpY";

impl Encoding {
    /// The decompressed bytes, `limit` at most.
    pub fn decode(self, bytes: Bytes, limit: usize) -> Result<Bytes, Unreadable> {
        let compressed = bytes.len();
        match self {
            Self::Identity => Ok(bytes),
            Self::Gzip => decompress(MultiGzDecoder::new(&*bytes), compressed, limit),
            Self::Zlib => decompress(ZlibDecoder::new(&*bytes), compressed, limit),
            // The reference takes an empty body here, though it is no frame.
            Self::Zstd if bytes.is_empty() => Ok(bytes),
            Self::Zstd => decompress(zstd::Decoder::with_buffer(&*bytes).map_err(broken)?, compressed, limit),
            Self::Snappy if !bytes.starts_with(SNAPPY_FRAMES) => {
                let size = snap::raw::decompress_len(&bytes).map_err(broken)?;
                if size > limit {
                    return Err(Unreadable::TooLarge);
                }
                snap::raw::Decoder::new().decompress_vec(&bytes).map(Bytes::from).map_err(broken)
            }
            Self::Snappy | Self::SnappyFramed => decompress(snap::read::FrameDecoder::new(&*bytes), compressed, limit),
            Self::Lz4 => lz4(&bytes, limit),
        }
    }
}

fn broken(error: impl std::fmt::Display) -> Unreadable {
    Unreadable::Broken(format!("the body cannot be decompressed: {error}"))
}

fn decompress(reader: impl Read, compressed: usize, limit: usize) -> Result<Bytes, Unreadable> {
    let mut bytes = Vec::with_capacity(compressed.saturating_mul(4).min(limit));
    let allowed = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(allowed).read_to_end(&mut bytes).map_err(|error: io::Error| broken(error))?;
    if bytes.len() > limit { Err(Unreadable::TooLarge) } else { Ok(bytes.into()) }
}

/// All frames of a body. The library takes the end of the input for the end of a frame, and stops after one frame.
fn lz4(bytes: &[u8], limit: usize) -> Result<Bytes, Unreadable> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while !rest.is_empty() {
        // A byte after the input: whoever touches it has not seen the end of a frame.
        let mut reader = lz4_flex::frame::FrameDecoder::new(rest.chain(&[1_u8][..]));
        let allowed = u64::try_from(limit - all.len()).unwrap_or(u64::MAX).saturating_add(1);
        reader.by_ref().take(allowed).read_to_end(&mut all).map_err(|error: io::Error| broken(error))?;
        if all.len() > limit {
            return Err(Unreadable::TooLarge);
        }
        let (left, after) = reader.into_inner().into_inner();
        if after.is_empty() {
            return Err(broken("it ends early"));
        }
        rest = left;
    }
    Ok(all.into())
}
