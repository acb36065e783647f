//! Documents whose leaves are texts with references, and values that may be documents.

use std::fmt::Write as _;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Serialize, Serializer};

use super::text::Text;

/// A document whose leaves may hold references: the contents of a JSON or YAML file before launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Tree {
    /// Nothing.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Text; a lone `Port` reference becomes a number when written.
    Text(Text),
    /// A list.
    List(Vec<Tree>),
    /// A mapping in the order in which it is written.
    Map(IndexMap<String, Tree>),
}

impl Tree {
    /// Every text in it, depth first.
    pub fn visit_texts<'a>(&'a self, visit: &mut impl FnMut(&'a Text)) {
        match self {
            Self::Text(text) => visit(text),
            Self::List(list) => list.iter().for_each(|t| t.visit_texts(visit)),
            Self::Map(map) => map.values().for_each(|t| t.visit_texts(visit)),
            _ => {}
        }
    }

    /// The value below a key, if this is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Tree> {
        match self {
            Self::Map(map) => map.get(key),
            _ => None,
        }
    }
}

/// How a [`Tree`] becomes the text of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// collector.yaml: YAML in which a literal `$` that the collector would expand is doubled.
    Collector,
}

fn shared<S: Serializer>(tree: &Arc<Tree>, serializer: S) -> Result<S::Ok, S::Error> {
    tree.serialize(serializer)
}

/// A value that may hold references.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Text.
    Text(Text),
    /// A document, encoded once its references are known, so that they are escaped rightly.
    Encoded {
        /// As what.
        encoding: Encoding,
        /// The document.
        #[serde(serialize_with = "shared")]
        value: Arc<Tree>,
    },
}

impl Value {
    /// Every text in it.
    pub fn visit_texts<'a>(&'a self, visit: &mut impl FnMut(&'a Text)) {
        match self {
            Self::Text(text) => visit(text),
            Self::Encoded { value, .. } => value.visit_texts(visit),
        }
    }
}

/// `text` with each `$` doubled that the collector's expansion would not leave alone: one before `{`, one of a run,
/// and one right before a `${env:...}` of ours (`followed`).
#[must_use]
pub fn escape_for_collector(text: &str, followed: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        out.push_str(&rest[..start]);
        let run = rest[start..].chars().take_while(|c| *c == '$').count();
        let after = &rest[start + run..];
        let bare = run == 1 && !after.starts_with('{') && !(after.is_empty() && followed);
        for _ in 0..if bare { 1 } else { 2 * run } {
            out.push('$');
        }
        rest = after;
    }
    let _ = out.write_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::escape_for_collector;

    #[test]
    fn only_dollars_that_would_be_expanded_are_doubled() {
        assert_eq!(escape_for_collector("${1}_${2}", false), "$${1}_$${2}");
        assert_eq!(escape_for_collector("(.+)$", false), "(.+)$");
        assert_eq!(escape_for_collector("a$$b$c", false), "a$$$$b$c");
        assert_eq!(escape_for_collector("cost$", true), "cost$$");
    }
}
