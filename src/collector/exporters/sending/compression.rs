//! `compression` of an exporter.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::collector::config::section::Section;
use crate::diag::Problem;

/// How a request is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collector::exporters) struct Compression {
    /// The name as the header has it; empty: none.
    pub name: &'static str,
    pub level: i64,
}

/// zlib's words for its own default, and for Huffman codes alone.
const DEFAULT: i64 = -1;
const HUFFMAN_ONLY: i64 = -2;

impl Compression {
    /// Reads `compression` (one of `names` or none, by default gzip) and `compression_params`.
    pub fn read(section: &mut Section<'_>, names: &[&'static str]) -> Self {
        let words: Vec<&'static str> = names.iter().copied().chain(["none", ""]).collect();
        let name = section.word("compression", &words).unwrap_or("gzip");
        let name = if name == "none" { "" } else { name };
        let level = section.section("compression_params", |parameters| parameters.integer("level", i64::MIN)).flatten();
        let level = level.unwrap_or(0);
        let fits = match name {
            "gzip" | "zlib" | "deflate" => (HUFFMAN_ONLY..=9).contains(&level),
            "zstd" => true,
            _ => level == 0,
        };
        if !fits {
            let message = format!("level {level} does not fit compression `{name}`");
            section.problem("compression_params", Problem::new(message));
        }
        Self { name, level }
    }

    /// The packed bytes of a request that comes in parts, which are let go of one by one.
    pub fn pack(self, parts: Vec<Bytes>) -> io::Result<Vec<u8>> {
        let size: usize = parts.iter().map(Bytes::len).sum();
        let sized = || Vec::with_capacity(size / 4);
        match self.name {
            "gzip" => write_all(GzEncoder::new(sized(), self.deflate()), parts, GzEncoder::finish),
            "zlib" | "deflate" => write_all(ZlibEncoder::new(sized(), self.deflate()), parts, ZlibEncoder::finish),
            "zstd" => zstd::bulk::compress(&parts.concat(), i32::try_from(self.level.clamp(0, 22)).unwrap_or(0)),
            "snappy" => snap::raw::Encoder::new().compress_vec(&parts.concat()).map_err(io::Error::other),
            "x-snappy-framed" => write_all(snap::write::FrameEncoder::new(sized()), parts, |encoder| {
                encoder.into_inner().map_err(|error| io::Error::other(error.to_string()))
            }),
            "lz4" => write_all(lz4_flex::frame::FrameEncoder::new(sized()), parts, |encoder| {
                encoder.finish().map_err(io::Error::other)
            }),
            _ => Ok(parts.concat()),
        }
    }

    fn deflate(self) -> flate2::Compression {
        match self.level {
            // Level 0 is what stands there if nothing was said; nobody wants to send bytes that are longer than before. The
            // fastest level: the others take several times as long for a few per cent.
            DEFAULT | 0 | HUFFMAN_ONLY => flate2::Compression::fast(),
            level => flate2::Compression::new(u32::try_from(level).unwrap_or(1)),
        }
    }
}

fn write_all<W: Write>(
    mut encoder: W,
    parts: Vec<Bytes>,
    finish: impl FnOnce(W) -> io::Result<Vec<u8>>,
) -> io::Result<Vec<u8>> {
    for part in parts {
        encoder.write_all(&part)?;
    }
    finish(encoder)
}
