//! What the collector says about itself: `service.telemetry.resource`.

use std::sync::OnceLock;

/// The collector's own resource attributes, as the configuration has them. One for the whole collector
/// ([`Shared::get`](super::component::Shared::get)).
#[derive(Debug, Default)]
pub struct OwnResource {
    attributes: OnceLock<Vec<(String, String)>>,
}

impl OwnResource {
    /// Sets the attributes; the run does so once, before anything starts.
    pub fn set(&self, attributes: Vec<(String, String)>) {
        let _ = self.attributes.set(attributes);
    }

    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let attributes = self.attributes.get()?;
        attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
