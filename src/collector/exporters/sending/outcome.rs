//! What a try comes to, and the part of an answer that both protocols share.

use std::time::Duration;

use crate::collector::component::Refusal;
use crate::collector::config::secrets::Secrets;
use crate::diag::excerpt;
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

impl Outcome {
    /// There was no answer; `words` are those of libraries, and may quote the peer.
    pub fn not_answered(reason: &'static str, words: &str, secrets: &Secrets) -> Self {
        Self::Later { refusal: Refusal::retryable(reason, in_one_line(words, LONGEST_WORDS, secrets)), pause: None }
    }
}

/// How much of a peer's words is shown.
const SHOWN: usize = 200;

/// How much is said of a connection that failed: a certificate may have many names.
const LONGEST_WORDS: usize = 600;

/// What is shown of a peer's words: no secret, then no more than so much, in one line.
pub(in crate::collector::exporters) fn shown(text: &str, secrets: &Secrets) -> String {
    in_one_line(text, SHOWN, secrets)
}

fn in_one_line(text: &str, most: usize, secrets: &Secrets) -> String {
    let line = secrets.mask_cut(text).replace(char::is_control, " ");
    excerpt(line.trim(), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a peer says, before it answers or as its answer.
    #[test]
    fn words_of_a_peer_are_one_short_line_without_secrets() {
        let mut secrets = Secrets::default();
        secrets.add("s3cr3t-t0ken");
        let long = format!("a\r\n\tb s3cr3t-t0ken {}", "\u{f6}".repeat(1 << 20));
        let Outcome::Later { refusal, pause: None } = Outcome::not_answered("connection", &long, &secrets) else {
            panic!("it may be answered later")
        };
        for (said, most) in [(refusal.message, LONGEST_WORDS), (shown(&long, &secrets), SHOWN)] {
            assert!(said.starts_with("a   b *** \u{f6}") && said.ends_with("\u{f6}\u{2026}"), "{said}");
            assert_eq!(said.chars().count(), most + 1);
        }
        assert_eq!(shown(" short\n", &secrets), "short");
    }
}
