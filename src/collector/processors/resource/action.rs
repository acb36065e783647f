//! One action on the attributes of a resource.

use regex::Regex;

use super::convert::{Target, convert};
use crate::otlp::{AnyValue, Resource};

/// What is done, to which key.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Sets `key` under the condition of `when`.
    Set { key: String, value: Source, when: When },
    /// Removes `key`.
    Delete { key: String },
    /// Removes all keys that match.
    DeleteMatching { pattern: Regex },
    /// Changes the type of `key`'s value, where that is possible.
    Convert { key: String, target: Target },
}

/// When a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Only if the key is not there (insert).
    Absent,
    /// Only if it is there (update).
    Present,
    /// Always (upsert).
    Always,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The configuration.
    Value(AnyValue),
    /// Another attribute; nothing happens if it is not there.
    Attribute(String),
}

impl Action {
    /// Carries it out.
    pub fn apply(&self, resource: &mut Resource) {
        match self {
            Self::Set { key, value, when } => {
                let value = match value {
                    Source::Value(value) => value.clone(),
                    Source::Attribute(other) => match resource.get(other) {
                        Some(value) => value.clone(),
                        None => return,
                    },
                };
                match when {
                    When::Absent => drop(resource.insert(key, value)),
                    When::Present => drop(resource.update(key, value)),
                    When::Always => resource.upsert(key, value),
                }
            }
            Self::Delete { key } => drop(resource.delete(key)),
            Self::DeleteMatching { pattern } => {
                resource.attributes.retain(|attribute| !pattern.is_match(&attribute.key.to_str()));
            }
            Self::Convert { key, target } => {
                if let Some(converted) = resource.get(key).and_then(|value| convert(value, *target)) {
                    resource.update(key, converted);
                }
            }
        }
    }
}
