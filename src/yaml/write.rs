//! YAML as text: `serde_yaml` lays the document out, this file decides how text is quoted.
//!
//! `serde_yaml` leaves `no`, `2001-01-01`, `1_0`, `1:30` and `<<` plain, which the Go reader of a collector would take
//! for a boolean, a date, numbers and a merge key. So text that some reader might not take for text goes through it as a
//! token, and stands double-quoted in the end.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

/// What a token begins and ends with. Text that holds one itself becomes a token as well, so that none is mistaken.
const TOKEN: (char, char) = ('\u{e000}', '\u{e001}');

/// One document in block style, ended by a line end; the order is that of the value, so equal values give equal bytes.
///
/// A value that JSON cannot hold (a mapping whose keys are lists) gives a comment with the reason; values made of
/// JSON's kinds never do.
#[must_use]
pub fn write(value: &impl Serialize) -> String {
    let mut quoted = Vec::new();
    let document = serde_json::to_value(value)
        .map_err(|error| error.to_string())
        .map(|value| with_tokens(value, &mut quoted))
        .and_then(|value| serde_yaml::to_string(&value).map_err(|error| error.to_string()));
    match document {
        Ok(document) => without_tokens(&document, &quoted),
        Err(error) => format!("# not written: {error}\n"),
    }
}

/// The same value with a token for each text that needs quotes.
fn with_tokens(value: Value, quoted: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => Value::String(token(text, quoted)),
        Value::Array(list) => list.into_iter().map(|value| with_tokens(value, quoted)).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(key, value)| (token(key, quoted), with_tokens(value, quoted))).collect()
        }
        other => other,
    }
}

fn token(text: String, quoted: &mut Vec<String>) -> String {
    if is_plain(&text) {
        return text;
    }
    quoted.push(quote(&text));
    format!("{}{}{}", TOKEN.0, quoted.len() - 1, TOKEN.1)
}

fn without_tokens(document: &str, quoted: &[String]) -> String {
    let mut parts = document.split(TOKEN.0);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once(TOKEN.1).unwrap_or((part, ""));
        out.push_str(number.parse().ok().and_then(|index: usize| quoted.get(index)).map_or("", String::as_str));
        out.push_str(rest);
    }
    out
}

/// `text` in double quotes.
fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether every reader of YAML takes `text`, unquoted, for that text: it begins with a letter, `_`, `/` or `$`, has
/// nothing that means something in a flow or a mapping, and is no word that some schema knows.
fn is_plain(text: &str) -> bool {
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/' | '$'));
    let harmless = |c: char| c.is_ascii_alphanumeric() || "_/$.-+=@%()^*;<>~\\".contains(c);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let fine = match c {
            // The braces of a reference, which stay readable: `${env:X}`.
            '{' | '}' | ' ' | ':' | '|' => !chars.peek().is_none_or(|next| matches!(next, ' ' | '#')) || c == '}',
            c => harmless(c),
        };
        if !fine {
            return false;
        }
    }
    let word = text.to_ascii_lowercase();
    begins_well
        && !text.contains(" #")
        && !matches!(word.as_str(), "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null" | "nan" | "inf")
}
