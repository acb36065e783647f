//! YAML as text.
//!
//! Written by hand and not by `serde_yaml`, which leaves `no`, `2001-01-01`, `1_0`, `1:30` and `<<` plain: the Go reader
//! of a collector would take those for a boolean, a date, numbers and a merge key. Here text is plain only where every
//! reader agrees that it is text; everything else is double-quoted.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

/// One document in block style, ended by a line end; the order is that of the value, so equal values give equal bytes.
///
/// A value that JSON cannot hold (a mapping whose keys are lists) gives a comment with the reason; values made of
/// JSON's kinds never do.
#[must_use]
pub fn write(value: &impl Serialize) -> String {
    let mut out = String::new();
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) if !map.is_empty() => map.iter().for_each(|(key, value)| entry(&mut out, 0, key, value)),
        Ok(Value::Array(list)) if !list.is_empty() => list.iter().for_each(|value| item(&mut out, 0, value)),
        Ok(value) => {
            scalar(&mut out, &value);
            out.push('\n');
        }
        Err(error) => {
            let _ = writeln!(out, "# not written: {error}");
        }
    }
    out
}

/// `key: value` at a level of two blanks each; the caller has written no blank yet.
fn entry(out: &mut String, level: usize, key: &str, value: &Value) {
    indent(out, level);
    entry_here(out, level, key, value);
}

/// The same where the blanks or the `- ` of a list item are there already.
fn entry_here(out: &mut String, level: usize, key: &str, value: &Value) {
    text(out, key);
    out.push(':');
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            map.iter().for_each(|(key, value)| entry(out, level + 1, key, value));
        }
        Value::Array(list) if !list.is_empty() => {
            out.push('\n');
            for value in list {
                item(out, level + 1, value);
            }
        }
        other => {
            out.push(' ');
            scalar(out, other);
            out.push('\n');
        }
    }
}

fn item(out: &mut String, level: usize, value: &Value) {
    indent(out, level);
    out.push_str("- ");
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (index, (key, value)) in map.iter().enumerate() {
                if index == 0 { entry_here(out, level + 1, key, value) } else { entry(out, level + 1, key, value) }
            }
        }
        Value::Array(list) if !list.is_empty() => {
            // The first item of the inner list takes its `- ` from here.
            let mut inner = String::new();
            for value in list {
                item(&mut inner, level + 1, value);
            }
            out.push_str(inner.trim_start_matches(' '));
        }
        other => {
            scalar(out, other);
            out.push('\n');
        }
    }
}

fn indent(out: &mut String, level: usize) {
    out.extend(std::iter::repeat_n("  ", level));
}

fn scalar(out: &mut String, value: &Value) {
    match value {
        Value::String(string) => text(out, string),
        // Empty collections, numbers, booleans, null: YAML takes JSON's spelling.
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn text(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
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
