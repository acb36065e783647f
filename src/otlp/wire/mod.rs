//! The protobuf wire form, by hand: a [`Reader`] that yields numbered values of one message, and a
//! [`Writer`] that appends them. Both know wire types only; what a number means stands in `schema`.
//!
//! Payloads are validated once when they enter (`validate`); whoever reads them afterwards uses
//! [`fields`], which cannot fail on validated bytes and simply ends at the first broken one otherwise.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{MAX_DEPTH, Reader, Value, WireError, bytes_fields, fields};
pub use writer::{MessageStart, Writer, varint_size};
