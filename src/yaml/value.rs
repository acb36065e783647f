//! The tree that a document is read into.

use indexmap::IndexMap;

use crate::diag::Location;

/// A value of a YAML document and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Yaml {
    /// The value.
    pub value: YamlValue,
    /// The line of the value; for an entry of a mapping the line of its key.
    pub location: Location,
    /// `!unset` or `!off` if the value carries one of them, without the exclamation mark.
    pub tag: Option<String>,
}

/// What a value can be. Nothing is typed: what a plain scalar means is the reader's question.
#[derive(Clone, Debug, PartialEq)]
pub enum YamlValue {
    /// One word or text.
    Scalar {
        /// The text as written, quotes and escapes resolved; empty or `~` where nothing stood.
        text: String,
        /// Neither quoted, nor a block scalar, nor tagged `!!str`: the only scalars that can be null, a boolean or a
        /// number.
        plain: bool,
    },
    /// A sequence.
    List(Vec<Yaml>),
    /// A mapping in the author's order, merge keys applied (what they bring stands after the mapping's own keys).
    Map(IndexMap<String, Yaml>),
}

impl Yaml {
    /// The text of a plain scalar.
    fn plain(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Scalar { text, plain: true } => Some(text),
            _ => None,
        }
    }

    /// The text of any scalar.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The value below a key, if this is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Yaml> {
        match &self.value {
            YamlValue::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// Whether this is null by the core schema of YAML 1.2: empty, `~`, `null`.
    #[must_use]
    pub fn as_null(&self) -> bool {
        self.plain().is_some_and(|text| matches!(text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The boolean of the core schema of YAML 1.2, if this is one: `true`, `false`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.plain()? {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        }
    }

    /// The integer of the core schema of YAML 1.2, if this is one that fits: decimal, `0o17`, `0x1F`.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        let text = self.plain()?;
        if let Some(digits) = text.strip_prefix("0o") {
            return digits_only(digits, 8).then(|| i64::from_str_radix(digits, 8).ok())?;
        }
        if let Some(digits) = text.strip_prefix("0x") {
            return digits_only(digits, 16).then(|| i64::from_str_radix(digits, 16).ok())?;
        }
        digits_only(text.strip_prefix(['-', '+']).unwrap_or(text), 10).then(|| text.parse().ok())?
    }

    /// The floating-point number of the core schema of YAML 1.2, if this is one; an integer counts too.
    #[must_use]
    pub fn as_float(&self) -> Option<f64> {
        let text = self.plain()?;
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
            return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        if matches!(text, ".nan" | ".NaN" | ".NAN") {
            return Some(f64::NAN);
        }
        // What Rust takes beyond the core schema: `inf`, `nan`, `infinity`.
        if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') { text.parse().ok() } else { None }
    }
}

/// Whether `text` is digits of that base and nothing else (Rust also takes a second sign).
fn digits_only(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_digit(radix))
}
