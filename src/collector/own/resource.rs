//! Who the collector says that it is: `service.telemetry.resource`.

use std::sync::OnceLock;

use crate::collector::text::value_text::as_text;
use crate::otlp::AnyValue;

/// Attributes in the order of their names.
pub type Attributes = Vec<(String, AnyValue)>;

/// The collector's own resource attributes, as the configuration has them. One for the whole collector
/// ([`Shared::get`](crate::collector::component::Shared::get)).
#[derive(Debug, Default)]
pub struct OwnResource {
    attributes: OnceLock<Attributes>,
}

impl OwnResource {
    /// Sets the attributes; the run does so once, before anything starts.
    pub fn set(&self, attributes: Attributes) {
        let _ = self.attributes.set(attributes);
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[(String, AnyValue)] {
        self.attributes.get().map_or(&[], Vec::as_slice)
    }

    /// The text of an attribute.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        self.all().iter().find(|(known, _)| known == name).map(|(_, value)| as_text(value))
    }
}

/// What is said if the configuration says nothing else; `None` as a given value takes a default away.
#[must_use]
pub fn with_defaults(given: &[(String, Option<AnyValue>)]) -> Attributes {
    let defaults = [
        ("service.name", "gymrun".to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", random_id()),
    ];
    let is_given = |name: &str| given.iter().any(|(known, _)| known == name);
    let defaults = defaults.into_iter().filter(|(name, _)| !is_given(name));
    let defaults = defaults.map(|(name, value)| (name.to_owned(), AnyValue::from(value)));
    let given = given.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    let mut all: Attributes = defaults.chain(given).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// A random UUID (version 4).
#[must_use]
pub fn random_id() -> String {
    let bits = fastrand::u128(..) & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_stand_unless_something_else_is_said() {
        let given = [("service.name".to_owned(), None), ("service.version".to_owned(), Some(AnyValue::from("9")))];
        let all = with_defaults(&given);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["service.instance.id", "service.version"]);
        let id = as_text(&all[0].1);
        assert_eq!((id.len(), id.as_bytes()[14], id.matches('-').count()), (36, b'4', 4));
        assert_eq!(all[1].1, AnyValue::from("9"));
    }
}
