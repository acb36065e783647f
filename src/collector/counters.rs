//! What became of the data: counts by component, signal and reason.
//!
//! Counts are spans, data points and log records. They are added once a batch, so one lock is cheap enough.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::config::secrets::Secrets;
use super::owed::Debts;
use crate::otlp::Signal;

/// What happened to some items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tally {
    /// A receiver or connector put them into the pipelines (once, however many pipelines take them).
    Received,
    /// The pipelines did not take them: a client was told so, or they are in a receiver's dropped ones too.
    Refused,
    /// Written to a file.
    Written,
    /// Accepted by an endpoint.
    Sent,
    /// Rejected by an endpoint that accepted the rest (partial success).
    Rejected,
    /// Kept on disk, to be sent later.
    Stored,
    /// Found on disk at the start: an earlier collector stored them.
    Resumed,
    /// Lost, with one word for the reason.
    Dropped(Cow<'static, str>),
}

type ByComponent = BTreeMap<String, BTreeMap<(u8, Tally), u64>>;

/// All counts of one process: of one collector after the other, where the configuration is read anew.
#[derive(Default)]
pub struct Counters {
    counts: Mutex<ByComponent>,
    pub(super) debts: Debts,
    last_error: Mutex<Option<String>>,
}

impl Counters {
    /// Adds `items` to the count of `component`.
    pub fn add(&self, component: &str, signal: Signal, tally: Tally, items: usize) {
        if items == 0 {
            return;
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if !counts.contains_key(component) {
            counts.insert(component.to_owned(), BTreeMap::new());
        }
        if let Some(of_component) = counts.get_mut(component) {
            let count = of_component.entry((signal as u8, tally)).or_insert(0);
            // What was stored says itself how much it is.
            *count = count.saturating_add(items as u64);
        }
    }

    /// Takes items out of a count: what was stored and has been sent.
    pub fn take_back(&self, component: &str, signal: Signal, tally: &Tally, items: usize) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (signal as u8, tally.clone());
        if let Some(of_component) = counts.get_mut(component)
            && let Some(count) = of_component.get_mut(&key)
        {
            *count = count.saturating_sub(items as u64);
            if *count == 0 {
                of_component.remove(&key);
            }
        }
    }

    /// Counts `items` that are on disk at the start, but for those that this process is known to have stored itself.
    pub fn resume(&self, component: &str, signal: Signal, items: usize) {
        let key = (signal as u8, Tally::Stored);
        let known = {
            let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.get(component).and_then(|of_component| of_component.get(&key)).copied().unwrap_or(0)
        };
        let new = items.saturating_sub(usize::try_from(known).unwrap_or(usize::MAX));
        self.add(component, signal, Tally::Stored, new);
        self.add(component, signal, Tally::Resumed, new);
    }

    /// The count of one component.
    #[must_use]
    pub fn of(&self, component: &str, signal: Signal, tally: &Tally) -> u64 {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(component).and_then(|of_component| of_component.get(&(signal as u8, tally.clone())));
        count.copied().unwrap_or(0)
    }

    /// The sum over all components.
    #[must_use]
    pub fn total(&self, signal: Signal, tally: &Tally) -> u64 {
        let key = (signal as u8, tally.clone());
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_all = counts.values().filter_map(|of_component| of_component.get(&key));
        of_all.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Every count: component, signal, what, how many; in a stable order.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Signal, Tally, u64)> {
        let signals = &Signal::ALL;
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for (component, of_component) in counts.iter() {
            for ((signal, tally), n) in of_component {
                if let Some(signal) = signals.iter().copied().find(|s| *s as u8 == *signal) {
                    rows.push((component.clone(), signal, tally.clone(), *n));
                }
            }
        }
        rows
    }

    /// Keeps the newest error, a component's, for the report: without secrets, whoever's words it has.
    pub fn set_last_error(&self, component: &str, text: &str, secrets: &Secrets) {
        let text = secrets.mask(&format!("{component}: {text}"));
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// The newest error.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_shows_no_secret() {
        let mut secrets = Secrets::default();
        secrets.add("s3cr3t-t0ken");
        let counters = Counters::default();
        counters.set_last_error("exporters/x", "cannot read /job/s3cr3t-t0ken/000000000000.otlp", &secrets);
        assert_eq!(counters.last_error().as_deref(), Some("exporters/x: cannot read /job/***/000000000000.otlp"));
    }
}
