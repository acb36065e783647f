//! What a try comes to, and the part of an answer that both protocols share.

use std::time::Duration;

use crate::collector::component::Refusal;
use crate::collector::secrets::Secrets;
use crate::otlp::wire::{Reader, Value};

/// The outcome of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::collector::exporters) enum Outcome {
    /// Accepted, but for what the endpoint says it rejected.
    Accepted(PartialSuccess),
    /// Not now; not before the pause, if one was asked for.
    Later { refusal: Refusal, pause: Option<Duration> },
    /// Never.
    Never(Refusal),
}

/// What an endpoint says about a request that it accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::collector::exporters) struct PartialSuccess {
    /// Items that it left out.
    pub rejected: u64,
    /// Its words, if it had any.
    pub message: String,
}

impl PartialSuccess {
    /// Reads an answer in wire form; `None` if it is broken.
    pub fn from_wire(answer: &[u8]) -> Option<Self> {
        let mut partial_success = Self::default();
        for_each_field(answer, |number, value| {
            let (1, Value::Bytes(partial)) = (number, value) else { return Some(()) };
            for_each_field(partial, |number, value| {
                match (number, value) {
                    (1, Value::Varint(count)) => partial_success.rejected = count,
                    (2, Value::Bytes(text)) => partial_success.message = String::from_utf8_lossy(text).into_owned(),
                    _ => {}
                }
                Some(())
            })
        })?;
        Some(partial_success)
    }
}

/// Calls `take` for each field; `None` if the bytes are broken.
pub(in crate::collector::exporters) fn for_each_field<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(u32, Value<'a>) -> Option<()>,
) -> Option<()> {
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.read().ok()? {
        take(number, value)?;
    }
    Some(())
}

/// How much of a peer's words is shown.
const SHOWN: usize = 200;

/// What is shown of a peer's words: no secret, then no more than so much, in one line.
pub(in crate::collector::exporters) fn shown(text: &str, secrets: &Secrets) -> String {
    let text = secrets.mask_cut(text);
    let shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    shown.trim().to_owned()
}
