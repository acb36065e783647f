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
}
