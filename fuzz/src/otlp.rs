//! Requests in both encodings.

use bytes::Bytes;
use gymrun::otlp::{Payload, Signal};

/// Arbitrary bytes as a protobuf request of each signal.
///
/// What is accepted keeps its meaning through the wire form and through JSON, and can be divided.
pub fn otlp_wire(input: &[u8]) {
    let input = Bytes::copy_from_slice(input);
    for signal in Signal::ALL {
        if let Ok(payload) = Payload::decode(signal, input.clone()) {
            sound(&payload);
            whole_in_parts(&payload);
        }
    }
}

/// Arbitrary text as a JSON request of each signal.
pub fn otlp_json(input: &[u8]) {
    for signal in Signal::ALL {
        if let Ok(payload) = Payload::from_json(signal, input) {
            sound(&payload);
            whole_in_parts(&payload);
        }
    }
}

/// A payload is valid in the wire form and in JSON, and both say the same.
pub(crate) fn sound(payload: &Payload) {
    let signal = payload.signal;
    let wire = payload.encode();
    let decoded = Payload::decode(signal, wire.clone()).expect("what is written can be read");
    assert_eq!(decoded.encode(), wire, "the wire form is stable");
    assert_eq!(decoded.item_count(), payload.item_count(), "no item is lost on the wire");

    let text = json(payload);
    assert!(text == json(&decoded), "JSON says the same after the wire form");
    // Texts that are no UTF-8 are passed on as they are, as the reference does it.
    if std::str::from_utf8(&text).is_ok() {
        serde_json::from_slice::<serde::de::IgnoredAny>(&text).expect("JSON is valid");
    }
    let read = Payload::from_json(signal, &text).expect("JSON can be read again");
    assert!(json(&read) == text, "JSON is stable");
    assert_eq!(read.item_count(), payload.item_count(), "no item is lost in JSON");
}

fn json(payload: &Payload) -> Vec<u8> {
    let mut text = Vec::new();
    payload.write_json(&mut text);
    text
}

/// Dividing loses nothing.
fn whole_in_parts(payload: &Payload) {
    let count = payload.item_count();
    for most in [1, count.div_ceil(2), count.saturating_sub(1)] {
        let mut items = 0;
        for part in payload.clone().into_chunks(most) {
            let read = Payload::decode(part.signal, part.encode()).expect("a part can be read");
            assert_eq!(read.item_count(), part.item_count());
            items += read.item_count();
        }
        assert_eq!(items, count);
    }
}
