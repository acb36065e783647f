//! A page that differs from the last one in its values alone, as most do.
//!
//! What stands between the values is kept and compared as it is. If all of it is the same, then so are the series, their
//! order and their metadata, and the last batch becomes the new one by other values and another time. If not, the
//! page is read in full. Pages with timestamps or exemplars, or with anything that was to be said of them, are not kept.

use std::ops::Range;

use super::super::exposition::{Dialect, dialect_of, parse_float};
use super::super::points::{Batch, Slot};
use super::rules::Rules;
use super::target::{Counts, Page, Times};

/// The way through a page: what stands between its values, and where each value goes.
#[derive(Debug)]
pub(super) struct Trail {
    dialect: Dialect,
    /// The page without its values.
    text: Vec<u8>,
    steps: Vec<Step>,
    /// How far the page has been taken up.
    position: usize,
}

#[derive(Debug)]
struct Step {
    /// Where the text before the value ends.
    text_end: usize,
    /// Where the value goes; nowhere if relabelling drops it, or if it describes the target.
    slot: Option<Slot>,
}

impl Trail {
    /// At the start of a page.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, text: Vec::new(), steps: Vec::new(), position: 0 }
    }

    /// Takes up the next sample of a page: where its value stands, and where it went.
    pub fn add(&mut self, page: &[u8], value: Range<usize>, slot: Option<Slot>) {
        self.text.extend_from_slice(page.get(self.position..value.start).unwrap_or_default());
        self.steps.push(Step { text_end: self.text.len(), slot });
        self.position = value.end;
    }

    /// Takes up what stands behind the last value.
    pub fn end(&mut self, page: &[u8]) {
        self.text.extend_from_slice(page.get(self.position..).unwrap_or_default());
    }

    /// Puts the values of a page into the batch; false if it differs in more than these, and the batch is spoiled.
    fn follow(&self, page: &[u8], batch: &mut Batch) -> bool {
        let (mut rest, mut text_start) = (page, 0);
        for Step { text_end, slot } in &self.steps {
            let Some(behind) = rest.strip_prefix(&self.text[text_start..*text_end]) else { return false };
            // As the lexer ends a value; the text that follows has to be what it was.
            let end = behind.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'{' | 0));
            let (value, behind) = behind.split_at(end.unwrap_or(behind.len()));
            let Some(value) = parse_float(value) else { return false };
            if let Some(slot) = slot {
                batch.put(*slot, if value.is_nan() { f64::NAN } else { value });
            }
            (rest, text_start) = (behind, *text_end);
        }
        rest == &self.text[text_start..]
    }
}

/// What the last scrape made.
#[derive(Debug)]
pub(super) struct Repeat {
    pub trail: Trail,
    pub batch: Batch,
    /// Where the values of the report go; nowhere if the page describes one of them so that it does not fit.
    pub reports: Vec<Option<Slot>>,
    pub counts: Counts,
}

impl Repeat {
    /// The same for a page that differs from the last one in values alone; None for any other.
    pub fn again(mut self, rules: &Rules, page: &Page, times: Times) -> Option<Self> {
        let dialect = dialect_of(page.content_type.as_deref(), rules.fallback).ok();
        if dialect != Some(self.trail.dialect) || !self.trail.follow(&page.body, &mut self.batch) {
            return None;
        }
        self.counts.new = 0;
        self.batch.set_time(times.start_ms);
        let report = self.counts.report(rules, times, true, page.body.len() as f64);
        for (slot, value) in self.reports.iter().zip(report) {
            if let Some(slot) = slot {
                self.batch.put(*slot, value);
            }
        }
        Some(self)
    }
}
