//! Texts in quotes.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

/// What Go prints as it is.
static PRINTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\pL\pM\pN\pP\pS ]$").ok());

/// Whether Go prints a character as it is.
pub(super) fn is_print(c: char) -> bool {
    PRINTED.as_ref().is_some_and(|printed| printed.is_match(c.encode_utf8(&mut [0; 4])))
}

/// In quotes, with Go's escapes; `ascii`: with escapes for all else.
pub(super) fn quoted(text: &str, mark: char, ascii: bool) -> String {
    let mut out = String::from(mark);
    for c in text.chars() {
        // Writing into memory cannot fail.
        let _ = match c {
            c if c == mark || c == '\\' => write!(out, "\\{c}"),
            ' '..='~' => write!(out, "{c}"),
            '\u{7}' => write!(out, "\\a"),
            '\u{8}' => write!(out, "\\b"),
            '\t' => write!(out, "\\t"),
            '\n' => write!(out, "\\n"),
            '\u{b}' => write!(out, "\\v"),
            '\u{c}' => write!(out, "\\f"),
            '\r' => write!(out, "\\r"),
            c if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
            c if !ascii && is_print(c) => write!(out, "{c}"),
            c if u32::from(c) < 0x10000 => write!(out, "\\u{:04x}", u32::from(c)),
            c => write!(out, "\\U{:08x}", u32::from(c)),
        };
    }
    out.push(mark);
    out
}

/// Whether a text may stand between back quotes.
pub(super) fn fits_back_quotes(text: &str) -> bool {
    !text.chars().any(|c| (c.is_ascii_control() && c != '\t') || matches!(c, '`' | '\u{feff}'))
}
