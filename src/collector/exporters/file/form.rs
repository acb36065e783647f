//! What one payload looks like in a file.
//!
//! JSON is one line. Protobuf, and whatever is compressed, is a message with four bytes of length in front (big endian);
//! each compressed message is a zstd frame of its own.

use crate::otlp::Payload;

/// The form of the messages of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Protobuf instead of JSON.
    pub protobuf: bool,
    /// The zstd level, if it is compressed.
    pub zstd: Option<i32>,
}

impl Form {
    /// Whether each message is a line.
    pub fn is_lines(self) -> bool {
        self == Self { protobuf: false, zstd: None }
    }

    /// Appends one message; `between` may take away what there is of a long one, and is told how many bytes of the payload
    /// were let go of since the last time.
    pub fn write(
        self,
        payload: Payload,
        out: &mut Vec<u8>,
        between: &mut dyn FnMut(&mut Vec<u8>, usize),
    ) -> std::io::Result<()> {
        if self.is_lines() {
            payload.write_json_in_parts(out, between);
            out.push(b'\n');
            return Ok(());
        }
        let mut message = if self.protobuf {
            payload.encode_as_reference()
        } else {
            let mut text = Vec::new();
            payload.write_json(&mut text);
            text
        };
        if let Some(level) = self.zstd {
            message = zstd::bulk::compress(&message, level)?;
        }
        let length = u32::try_from(message.len()).map_err(|_| std::io::Error::other("a message of more than 4 GiB"))?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&message);
        Ok(())
    }
}
