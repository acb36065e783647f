//! Credentials: what the headers of exporters refer to (a variable, a file), and the headers that came of it.
//!
//! A token is often an attribute of the data too (a tenant's name that only its owner knows). Before data is stored, an
//! attribute of a resource whose text is a secret is taken out, and its name and the variable's are stored in its stead;
//! whoever sends the data later puts the attribute back from the environment. Data that has the secret anywhere else is
//! not stored at all.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::otlp::{AnyValue, KeyValue, Payload};

/// A value that is in no file, and how a later start finds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The variable's name, `file:PATH`, or `header:PATH` with the path of the header in the configuration.
    pub variable: String,
    /// Its value as headers have it: expanded, whatever it refers to itself.
    pub value: String,
}

impl std::fmt::Debug for Credential {
    /// The name alone.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.variable)
    }
}

/// One for the whole collector ([`Shared::get`](crate::collector::component::Shared::get)).
#[derive(Debug, Default)]
pub struct Credentials {
    all: OnceLock<Arc<[Credential]>>,
}

/// An attribute that was taken out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Removed {
    /// The place of its resource in the request.
    pub resource: usize,
    /// Its name.
    pub attribute: String,
    /// The variable that has its value.
    pub variable: String,
    /// It was a number: a reference to a variable of digits alone is one.
    #[serde(default)]
    pub integer: bool,
}

/// A shorter value may stand anywhere by chance.
const LEAST_TO_SEARCH: usize = 8;

impl Credentials {
    /// Sets them; the run does so once, before anything starts.
    pub fn set(&self, credentials: Vec<Credential>) {
        let _ = self.all.set(credentials.into());
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Arc<[Credential]> {
        self.all.get().cloned().unwrap_or_default()
    }
}

/// Takes the credentials out of a payload; `None` if one is left in it.
pub(super) fn take_out(mut payload: Payload, credentials: &[Credential]) -> Option<(Payload, Vec<Removed>)> {
    let credentials: Vec<&Credential> = credentials.iter().filter(|secret| !secret.value.is_empty()).collect();
    let mut removed = Vec::new();
    for (place, entry) in payload.resources.iter_mut().enumerate() {
        let secret_of = |attribute: &KeyValue| {
            let text: Cow<'_, [u8]> = match &attribute.value {
                AnyValue::String(text) => text.as_bytes().into(),
                AnyValue::Int(number) => number.to_string().into_bytes().into(),
                _ => return None,
            };
            credentials.iter().find(|secret| secret.value.as_bytes() == &*text)
        };
        if entry.resource.attributes.iter().all(|attribute| secret_of(attribute).is_none()) {
            continue;
        }
        Arc::make_mut(&mut entry.resource).attributes.retain(|attribute| {
            let Some(secret) = secret_of(attribute) else { return true };
            let name = String::from_utf8_lossy(attribute.key.as_bytes()).into_owned();
            let integer = matches!(attribute.value, AnyValue::Int(_));
            removed.push(Removed { resource: place, attribute: name, variable: secret.variable.clone(), integer });
            false
        });
    }
    let searched = credentials.iter().filter(|secret| secret.value.len() >= LEAST_TO_SEARCH);
    let mut searched = searched.map(|secret| secret.value.as_bytes()).peekable();
    if searched.peek().is_some() {
        let wire = payload.encode();
        let has = |bytes: &[u8], value: &[u8]| memmem::find(bytes, value).is_some();
        // The names of what was taken out are stored too.
        let named = |value| removed.iter().any(|removed: &Removed| has(removed.attribute.as_bytes(), value));
        if searched.any(|value| has(&wire, value) || named(value)) {
            return None;
        }
    }
    Some((payload, removed))
}

/// Puts back what was taken out; an error names a variable that is not known.
pub(super) fn put_back(payload: &mut Payload, removed: &[Removed], credentials: &[Credential]) -> Result<(), String> {
    for Removed { resource, attribute, variable, integer } in removed {
        let secret = credentials.iter().find(|secret| secret.variable == *variable && !secret.value.is_empty());
        let text = &secret.ok_or_else(|| format!("it needs `{variable}`, which is not there"))?.value;
        let number = text.parse().ok().filter(|_| *integer);
        let value = number.map_or_else(|| AnyValue::String(text.as_str().into()), AnyValue::Int);
        let entry = payload.resources.get_mut(*resource).ok_or_else(|| format!("it has no resource {resource}"))?;
        Arc::make_mut(&mut entry.resource).upsert(attribute, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::spans;
    use crate::otlp::Signal;

    fn credentials() -> Vec<Credential> {
        vec![Credential { variable: "TOKEN".into(), value: "s3cr3t-token".into() }]
    }

    #[test]
    fn the_attribute_goes_and_comes_back() {
        let mut payload = spans(2);
        Arc::make_mut(&mut payload.resources[0].resource).upsert("tenant", "s3cr3t-token");
        let before = payload.encode();
        let (mut stripped, removed) = take_out(payload, &credentials()).expect("no secret is left");
        assert!(!String::from_utf8_lossy(&stripped.encode()).contains("s3cr3t"));
        assert_eq!(removed.len(), 1);
        assert!(put_back(&mut stripped, &removed, &[]).expect_err("unknown").contains("TOKEN"));
        put_back(&mut stripped, &removed, &credentials()).expect("known");
        assert_eq!(Payload::decode(Signal::Traces, before.clone()).expect("valid").encode(), stripped.encode());
    }

    #[test]
    fn a_secret_of_digits_may_be_a_number() {
        let credentials = [Credential { variable: "TOKEN".into(), value: "20261130".into() }];
        let mut payload = spans(1);
        Arc::make_mut(&mut payload.resources[0].resource).upsert("tenant", AnyValue::Int(20_261_130));
        let before = payload.encode();
        let (mut stripped, removed) = take_out(payload, &credentials).expect("no secret is left");
        assert_ne!(stripped.encode(), before);
        put_back(&mut stripped, &removed, &credentials).expect("known");
        assert_eq!(stripped.encode(), before);
    }

    #[test]
    fn a_secret_elsewhere_is_not_stored() {
        let mut payload = spans(1);
        payload.resources[0].schema_url = "x-s3cr3t-token".into();
        assert!(take_out(payload, &credentials()).is_none());
        // Not even as the name of an attribute that is taken out.
        let mut payload = spans(1);
        Arc::make_mut(&mut payload.resources[0].resource).upsert("of s3cr3t-token", "s3cr3t-token");
        assert!(take_out(payload, &credentials()).is_none());
    }
}
