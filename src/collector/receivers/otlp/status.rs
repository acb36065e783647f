//! google.rpc.Status, which tells a client why its request was not taken.

use crate::collector::component::Refusal;
use crate::otlp::wire::Writer;

/// The request is malformed.
pub(super) const INVALID_ARGUMENT: u32 = 3;
/// The collector failed.
pub(super) const INTERNAL: u32 = 13;
/// The request may be sent again.
pub(super) const UNAVAILABLE: u32 = 14;

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    /// The google.rpc code.
    pub code: u32,
    /// The HTTP status that goes with it.
    pub http: u16,
    /// For people.
    pub message: String,
}

impl Status {
    /// The client's fault.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: INVALID_ARGUMENT, http: 400, message: message.into() }
    }

    /// Worth another try.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { code: UNAVAILABLE, http: 503, message: message.into() }
    }

    /// There is no more time.
    pub fn stopping() -> Self {
        Self::unavailable("the collector is shutting down")
    }

    /// The message in wire form.
    pub fn to_protobuf(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.varint_field(1, self.code.into());
        writer.bytes_field(2, self.message.as_bytes());
        writer.into_vec()
    }

    /// The message as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::json!({"code": self.code, "message": self.message}).to_string().into_bytes()
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self { code: refusal.code(), http: refusal.http_status(), message: refusal.message }
    }
}
