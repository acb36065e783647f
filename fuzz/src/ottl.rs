//! Statements and conditions.

use std::sync::LazyLock;

use gymrun::collector::fuzzing::run_statement;
use gymrun::otlp::{Payload, Signal};

use super::otlp::sound;

/// One item of each kind, with every type of attribute.
static PAYLOADS: LazyLock<[Payload; 3]> = LazyLock::new(|| {
    [
        (Signal::Traces, include_str!("../data/traces.json")),
        (Signal::Metrics, include_str!("../data/metrics.json")),
        (Signal::Logs, include_str!("../data/logs.json")),
    ]
    .map(|(signal, text)| Payload::from_json(signal, text.as_bytes()).expect("valid"))
});

/// Arbitrary text as a statement and as a condition of every context.
///
/// Whatever it does to the items, or fails to do, leaves a valid payload.
pub fn ottl(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for payload in &*PAYLOADS {
        for edited in run_statement(text, payload) {
            sound(&edited);
        }
    }
}
