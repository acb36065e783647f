//! What the headers of exporters refer to, noted while a configuration is expanded: so it is found wherever it stands, in the
//! value of a variable and in a file too.

use std::collections::{BTreeMap, BTreeSet};

use super::expand::{Sources, expand_text, name_and_default, scheme_and_rest};
use super::load::Environment;
use super::node::{Node, Value};
use crate::collector::storage::Credential;

/// A part of the configuration, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The configuration.
    Root,
    /// `exporters`.
    Exporters,
    /// One of them.
    Exporter,
    /// Its `headers`, or the value of one.
    Headers,
    /// A map of `name` and `value` in `headers`.
    Pair,
    /// Anything else.
    Elsewhere,
}

impl Part {
    /// What stands at a key of a map.
    #[must_use]
    pub fn entry(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root, "exporters") => Self::Exporters,
            (Self::Exporters, _) => Self::Exporter,
            (Self::Exporter | Self::Headers, _) if self == Self::Headers || key == "headers" => Self::Headers,
            (Self::Pair, "value") => Self::Headers,
            _ => Self::Elsewhere,
        }
    }

    /// What stands in a list.
    #[must_use]
    pub fn item(self) -> Self {
        if self == Self::Headers { Self::Pair } else { Self::Elsewhere }
    }
}

/// The notes of one configuration.
#[derive(Default)]
pub struct HeaderNotes {
    /// With `${` and `}`.
    references: BTreeSet<String>,
    /// By the paths of the headers.
    values: BTreeMap<String, String>,
}

impl HeaderNotes {
    /// Notes a reference that is resolved in `part`.
    pub fn reference(&mut self, part: Part, reference: &str) {
        if part == Part::Headers && !self.references.contains(reference) {
            self.references.insert(reference.to_owned());
        }
    }

    /// Notes a value that came of references.
    pub fn value(&mut self, part: Part, path: &str, node: &Node) {
        let is_scalar = !matches!(node.value, Value::List(_) | Value::Map(_));
        if let Some(value) = node.as_written().filter(|_| part == Part::Headers && is_scalar) {
            self.values.insert(path.to_owned(), value.trim().to_owned());
        }
    }

    /// What can be had again by the name of a variable or file, then the headers as a whole and without a scheme's word.
    #[must_use]
    pub fn credentials(&self, sources: &Sources<'_>) -> Vec<Credential> {
        let referred = self.references.iter().filter_map(|reference| {
            let variable = match read(reference)? {
                Reference::Variable { name, .. } => name.to_owned(),
                Reference::File(path) => format!("file:{path}"),
            };
            Some(Credential { variable, value: expand_text(reference, sources)? })
        });
        let mut credentials: Vec<Credential> = referred.filter(|credential| !credential.value.is_empty()).collect();
        credentials.sort_by(|one, other| one.variable.cmp(&other.variable));
        for (path, value) in &self.values {
            let variable = format!("header:{path}");
            if let Some((_, bare)) = value.split_once(char::is_whitespace) {
                let (variable, value) = (format!("{variable} without its first word"), bare.trim_start().to_owned());
                credentials.push(Credential { variable, value });
            }
            credentials.push(Credential { variable, value: value.clone() });
        }
        credentials
    }

    /// The names of the variables that are not set and have no default.
    #[must_use]
    pub fn unset(&self, environment: Environment<'_>) -> Vec<String> {
        let unset = self.references.iter().filter_map(|reference| match read(reference)? {
            Reference::Variable { name, has_default: false } if environment(name).is_none() => Some(name.to_owned()),
            _ => None,
        });
        // `${X}` and `${env:X}` are the same.
        unset.collect::<BTreeSet<String>>().into_iter().collect()
    }
}

/// What can be had by its name.
enum Reference<'a> {
    Variable { name: &'a str, has_default: bool },
    File(&'a str),
}

/// A text in place (`yaml:`) is none.
fn read(reference: &str) -> Option<Reference<'_>> {
    let inner = reference.strip_prefix("${")?.strip_suffix('}')?;
    let rest = match scheme_and_rest(inner) {
        ("file", path) => return Some(Reference::File(path)),
        ("env", rest) => rest,
        _ => return None,
    };
    let (name, default) = name_and_default(rest);
    Some(Reference::Variable { name, has_default: default.is_some() })
}
