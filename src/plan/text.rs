//! Text with references: what a person wrote, with the parts that only the launch knows.
//!
//! Printed, a reference has YAML's form (`${port:agent}`, `${secret:X}` as `<X>`), and a literal `${` is `$${`.

use std::fmt::{self, Write as _};

use indexmap::IndexMap;
use serde::{Serialize, Serializer};

/// A part of a text that is known at launch only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    /// A port of a process, in decimal digits. `key` names one of its further `ports`.
    Port {
        /// The process.
        process: String,
        /// A key of its `ports`; `None` is its own `port`.
        key: Option<String>,
    },
    /// The host of a process, seen from where the text is used: `127.0.0.1` on the same node.
    Host {
        /// The process.
        process: String,
    },
    /// `http://HOST:PORT` of a process; a path follows as literal text.
    Url {
        /// The process.
        process: String,
    },
    /// A variable of gymrun's own environment that must never be printed or stored.
    Secret {
        /// The variable.
        name: String,
        /// Used when it is unset.
        default: Option<String>,
    },
    /// A variable of the environment where the process starts (`gym.runtime`).
    Inherited {
        /// The variable.
        name: String,
        /// Used when it is unset.
        default: Option<String>,
    },
    /// The absolute path of the job directory.
    JobDir,
    /// The W3C `traceparent` of gymrun's own root span.
    TraceParent,
    /// `${env:X}` of collector.yaml: expanded by the collector when it starts, never by gymrun.
    CollectorEnv {
        /// What stands between `${env:` and `}`: a name, or `NAME:-default`.
        name: String,
    },
}

impl Reference {
    /// The process whose port, host or URL this is, if any.
    #[must_use]
    pub fn process(&self) -> Option<&str> {
        match self {
            Self::Port { process, .. } | Self::Host { process } | Self::Url { process } => Some(process),
            _ => None,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { process, key: None } => write!(f, "${{port:{process}}}"),
            Self::Port { process, key: Some(key) } => write!(f, "${{port:{process}.{key}}}"),
            Self::Host { process } => write!(f, "${{host:{process}}}"),
            Self::Url { process } => write!(f, "${{url:{process}}}"),
            Self::Secret { name, .. } => write!(f, "<{name}>"),
            Self::Inherited { name, default: None } => write!(f, "${{runtime:{name}}}"),
            Self::Inherited { name, default: Some(default) } => write!(f, "${{runtime:{name}:-{default}}}"),
            Self::JobDir => f.write_str("${job:dir}"),
            Self::TraceParent => f.write_str("${traceparent}"),
            Self::CollectorEnv { name } => write!(f, "${{env:{name}}}"),
        }
    }
}

/// A piece of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// As it stands.
    Literal(String),
    /// Filled in at launch.
    Reference(Reference),
}

/// Literal text and references, in order; neighbouring literals are one, empty ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text {
    segments: Vec<Segment>,
}

impl Text {
    /// Text without references.
    pub fn literal(text: impl Into<String>) -> Self {
        let mut all = Self::default();
        all.push_literal(&text.into());
        all
    }

    /// One reference alone.
    #[must_use]
    pub fn reference(reference: Reference) -> Self {
        Self { segments: vec![Segment::Reference(reference)] }
    }

    /// Appends literal text.
    pub fn push_literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(Segment::Literal(last)) = self.segments.last_mut() {
            last.push_str(text);
        } else {
            self.segments.push(Segment::Literal(text.to_owned()));
        }
    }

    /// Appends a reference.
    pub fn push_reference(&mut self, reference: Reference) {
        self.segments.push(Segment::Reference(reference));
    }

    /// Appends another text.
    pub fn push(&mut self, other: &Text) {
        for segment in &other.segments {
            match segment {
                Segment::Literal(text) => self.push_literal(text),
                Segment::Reference(reference) => self.push_reference(reference.clone()),
            }
        }
    }

    /// The pieces, in order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The references in it.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.segments.iter().filter_map(|s| match s {
            Segment::Reference(reference) => Some(reference),
            Segment::Literal(_) => None,
        })
    }

    /// The text itself, if it has no reference.
    #[must_use]
    pub fn as_literal(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [] => Some(""),
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it holds a secret.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.references().any(|r| matches!(r, Reference::Secret { .. }))
    }

    /// The same text with each reference changed by `change`.
    #[must_use]
    pub fn map_references(&self, mut change: impl FnMut(&Reference) -> Reference) -> Text {
        let segments = self
            .segments
            .iter()
            .map(|s| match s {
                Segment::Literal(text) => Segment::Literal(text.clone()),
                Segment::Reference(reference) => Segment::Reference(change(reference)),
            })
            .collect();
        Text { segments }
    }

    /// The text with every reference filled in by `value`; the first error wins.
    pub fn resolve<E>(&self, mut value: impl FnMut(&Reference) -> Result<String, E>) -> Result<String, E> {
        let mut out = String::new();
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => out.push_str(text),
                Segment::Reference(reference) => out.push_str(&value(reference)?),
            }
        }
        Ok(out)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::literal(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::literal(text)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => f.write_str(&text.replace("${", "$${"))?,
                Segment::Reference(reference) => write!(f, "{reference}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

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
        value: Tree,
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
    use super::{Reference, Text, escape_for_collector};

    #[test]
    fn printed_text_shows_references_and_escapes_literals() {
        let mut text = Text::literal("a${b}");
        text.push_reference(Reference::Url { process: "agent".into() });
        text.push_literal("/run");
        text.push_reference(Reference::Secret { name: "TOKEN".into(), default: None });
        assert_eq!(text.to_string(), "a$${b}${url:agent}/run<TOKEN>");
    }

    #[test]
    fn only_dollars_that_would_be_expanded_are_doubled() {
        assert_eq!(escape_for_collector("${1}_${2}", false), "$${1}_$${2}");
        assert_eq!(escape_for_collector("(.+)$", false), "(.+)$");
        assert_eq!(escape_for_collector("a$$b$c", false), "a$$$$b$c");
        assert_eq!(escape_for_collector("cost$", true), "cost$$");
    }
}
