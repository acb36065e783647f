//! One action on a list of attributes.

use aws_lc_rs::digest;
use data_encoding::HEXLOWER;

use crate::collector::text::go_number::{parse_double, parse_integer, truncate};
use crate::collector::text::pattern::Pattern;
use crate::collector::text::value_text::as_text;
use crate::otlp::{AnyValue, KeyValue, Text};

/// What is done, to which key.
#[derive(Clone, Debug)]
pub(in crate::collector::processors) enum Action {
    /// Sets `key` under the condition of `when`.
    Set { key: Text, source: Source, when: When },
    /// Removes the key, and all that match.
    Delete(Keys),
    /// Replaces the values of the key, and of all that match, by their SHA-256.
    Hash(Keys),
    /// Sets an attribute for each named group of a pattern that the text of `key` matches.
    Extract { key: Text, pattern: Pattern },
    /// Changes the type of `key`'s value, where that is possible.
    Convert { key: Text, target: Target },
}

/// One key, and perhaps all that match.
#[derive(Clone, Debug)]
pub(in crate::collector::processors) struct Keys {
    /// The first attribute of this key.
    pub key: Text,
    /// All keys that match.
    pub pattern: Option<Pattern>,
}

/// When a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collector::processors) enum When {
    /// Only if the key is not there (insert).
    Absent,
    /// Only if it is there (update).
    Present,
    /// Always (upsert).
    Always,
}

/// Where a value comes from: the first of these that has one; nothing happens without.
#[derive(Clone, Debug, Default)]
pub(in crate::collector::processors) struct Source {
    /// The configuration.
    pub value: Option<AnyValue>,
    /// Another attribute.
    pub attribute: Option<Text>,
    /// The configuration again.
    pub default: Option<AnyValue>,
}

/// The type to change to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collector::processors) enum Target {
    /// A signed integer.
    Integer,
    /// A floating point number.
    Double,
    /// Text.
    Text,
}

fn find<'a>(attributes: &'a mut [KeyValue], key: &Text) -> Option<&'a mut AnyValue> {
    attributes.iter_mut().find(|attribute| attribute.key == *key).map(|attribute| &mut attribute.value)
}

/// Sets the first attribute of this key, or adds one.
fn put(attributes: &mut Vec<KeyValue>, key: &Text, value: AnyValue) {
    match find(attributes, key) {
        Some(found) => *found = value,
        None => attributes.push(KeyValue { key: key.clone(), value }),
    }
}

impl Keys {
    fn matches(&self, key: &Text) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(&key.to_str()))
    }
}

impl Source {
    fn of(&self, attributes: &[KeyValue]) -> Option<AnyValue> {
        let other = || {
            let key = self.attribute.as_ref()?;
            attributes.iter().find(|attribute| attribute.key == *key).map(|attribute| attribute.value.clone())
        };
        self.value.clone().or_else(other).or_else(|| self.default.clone())
    }
}

impl Action {
    /// Whether it can change a list of attributes that has a key, or none, of which `has` tells.
    pub fn concerns(&self, has: impl Fn(&[u8]) -> bool) -> bool {
        match self {
            Self::Set { key, when: When::Absent, .. } => !has(key.as_bytes()),
            Self::Set { when: When::Always, .. }
            | Self::Delete(Keys { pattern: Some(_), .. })
            | Self::Hash(Keys { pattern: Some(_), .. }) => true,
            Self::Set { key, .. } | Self::Extract { key, .. } | Self::Convert { key, .. } => has(key.as_bytes()),
            Self::Delete(keys) | Self::Hash(keys) => has(keys.key.as_bytes()),
        }
    }

    /// Carries it out.
    pub fn apply(&self, attributes: &mut Vec<KeyValue>) {
        match self {
            Self::Set { key, source, when } => {
                let there = attributes.iter().any(|attribute| attribute.key == *key);
                let acts = match when {
                    When::Absent => !there,
                    When::Present => there,
                    When::Always => true,
                };
                if acts && let Some(value) = source.of(attributes) {
                    put(attributes, key, value);
                }
            }
            Self::Delete(keys) => {
                // The last one comes to stand in its place, as in the reference.
                if let Some(place) = attributes.iter().position(|found| found.key == keys.key) {
                    attributes.swap_remove(place);
                }
                if keys.pattern.is_some() {
                    attributes.retain(|attribute| !keys.matches(&attribute.key));
                }
            }
            Self::Hash(keys) => {
                if let Some(value) = find(attributes, &keys.key) {
                    *value = hash(value);
                }
                for attribute in attributes.iter_mut().filter(|attribute| keys.matches(&attribute.key)) {
                    attribute.value = hash(&attribute.value);
                }
            }
            Self::Extract { key, pattern } => {
                let Some(AnyValue::String(text)) = find(attributes, key) else { return };
                let text = text.to_str().into_owned();
                let Some(found) = pattern.captures(&text) else { return };
                for (name, value) in pattern.found(&found) {
                    put(attributes, &name.into(), value.into());
                }
            }
            Self::Convert { key, target } => {
                if let Some(value) = find(attributes, key)
                    && let Some(converted) = convert(value, *target)
                {
                    *value = converted;
                }
            }
        }
    }
}

/// SHA-256 as hexadecimal text: of text its bytes, of a boolean one byte, of numbers eight bytes, the least first.
/// Other values have none: they become an empty text.
fn hash(value: &AnyValue) -> AnyValue {
    let of = |bytes: &[u8]| HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref());
    AnyValue::from(match value {
        AnyValue::String(text) => of(text.as_bytes()),
        AnyValue::Bool(value) => of(&[u8::from(*value)]),
        AnyValue::Int(value) => of(&value.to_le_bytes()),
        AnyValue::Double(value) => of(&value.to_bits().to_le_bytes()),
        _ => String::new(),
    })
}

/// The converted value; `None` if it stays as it is.
fn convert(value: &AnyValue, target: Target) -> Option<AnyValue> {
    match (target, value) {
        (Target::Integer, AnyValue::Double(value)) => Some(AnyValue::Int(truncate(*value))),
        (Target::Integer, AnyValue::Bool(value)) => Some(AnyValue::Int((*value).into())),
        (Target::Integer, AnyValue::String(text)) => parse_integer(&text.to_str()).map(AnyValue::Int),
        (Target::Double, AnyValue::Int(value)) => Some(AnyValue::Double(*value as f64)),
        (Target::Double, AnyValue::Bool(value)) => Some(AnyValue::Double(f64::from(u8::from(*value)))),
        (Target::Double, AnyValue::String(text)) => parse_double(&text.to_str()).map(AnyValue::Double),
        (Target::Text, AnyValue::String(_)) | (Target::Integer | Target::Double, _) => None,
        (Target::Text, other) => Some(AnyValue::from(as_text(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions() {
        assert_eq!(convert(&"123".into(), Target::Integer), Some(AnyValue::Int(123)));
        assert_eq!(convert(&" 5".into(), Target::Integer), None);
        assert_eq!(convert(&3.99.into(), Target::Integer), Some(AnyValue::Int(3)));
        assert_eq!(convert(&true.into(), Target::Integer), Some(AnyValue::Int(1)));
        assert_eq!(convert(&"2.5e1".into(), Target::Double), Some(AnyValue::Double(25.0)));
        assert_eq!(convert(&"1e999".into(), Target::Double), None);
        assert_eq!(convert(&42.into(), Target::Double), Some(AnyValue::Double(42.0)));
        assert_eq!(convert(&AnyValue::Empty, Target::Text), Some("".into()));
        assert_eq!(convert(&"x".into(), Target::Text), None);
        assert_eq!(convert(&f64::INFINITY.into(), Target::Text), Some("Infinity".into()));
    }

    #[test]
    fn hashes() {
        assert_eq!(hash(&"abc".into()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into());
        assert_eq!(hash(&true.into()), "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a".into());
        assert_eq!(hash(&AnyValue::Array(vec![])), "".into());
    }
}
