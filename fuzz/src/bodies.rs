//! Compressed bodies and gRPC frames.

use bytes::Bytes;
use gymrun::collector::fuzzing::{decompress, encodings, grpc_message};

/// Arbitrary bytes as a body of every encoding, and as the frame of a gRPC message.
///
/// Nothing longer than the limit comes out, whatever the input promises.
pub fn bodies(input: &[u8]) {
    let input = Bytes::copy_from_slice(input);
    for encoding in encodings() {
        for limit in [0, 1000, 1 << 20] {
            if encoding.is_empty() {
                continue;
            }
            let body = decompress(encoding, input.clone(), limit).expect("a known encoding");
            if let Ok(body) = &body {
                assert!(body.len() <= limit, "{encoding}: {} bytes of {limit}", body.len());
            }
            let message = grpc_message(encoding, input.clone(), limit);
            if let Ok(message) = &message {
                assert!(message.len() <= limit.max(input.len()));
            }
        }
    }
    let _ = grpc_message("", input, 1000);
}
