//! What a target is remembered by from scrape to scrape, and what a fetched page becomes.
//!
//! A page is all or nothing: one broken line and none of its samples is recorded, as in the reference. The counts of
//! the report then say how far it was read. A series that was in the former page and is not in this one (or the target
//! is down) gets one point that says so; series with timestamps of their own do not.
//!
//! All of this is pure: [`Memory::record`] takes the page and the times and gives the payload.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::batch::{Added, Batch};
use super::exposition::{Entry, ParseError, Parser, Sample, dialect_of};
use super::group::{Broken, STALE};
use super::labels::{Labels, METRIC_NAME};
use super::metadata::Metadata;
use super::series::{Origin, Series};
use crate::otlp::Payload;

/// A timestamp may be this far ahead of the clock, in milliseconds.
const AHEAD_MS: i64 = 600_000;

/// What of a target's configuration decides how its page is recorded.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Labels of the target: job, instance, those of the configuration, and `__scheme__`.
    pub target: Labels,
    /// Labels that every series gets, whatever it has.
    pub external: Vec<(String, String)>,
    /// Whether exposed labels win over the target's.
    pub honor_labels: bool,
    /// Whether exposed timestamps count.
    pub honor_timestamps: bool,
    /// How a page without a known content type is read (instead of text 0.0.4).
    pub fallback: Option<super::exposition::Dialect>,
}

/// A page as it was fetched.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// The `Content-Type`, where there was one.
    pub content_type: Option<String>,
}

/// What one scrape made.
#[derive(Debug)]
pub struct Record {
    /// The points to hand on.
    pub payload: Payload,
    /// Why the scrape failed, if it did.
    pub error: Option<String>,
    /// What was left out of a scrape that did not fail, for the log.
    pub warnings: Vec<String>,
    /// Points that were left out because they contradict themselves.
    pub broken_points: usize,
}

/// The memory of one target.
#[derive(Debug, Default)]
pub struct Memory {
    series: HashMap<Box<[u8]>, Cached>,
    reports: Vec<Series>,
    origins: Vec<Arc<Origin>>,
    metadata: Metadata,
    scrape: u64,
    size_when_good: usize,
    warned: HashSet<String>,
}

#[derive(Debug)]
struct Cached {
    series: Series,
    /// The last scrape whose page had it.
    seen: u64,
    /// The last scrape after which its absence must be said; 0 for never.
    tracked: u64,
    /// Whether it was ever in a point.
    recorded: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    scraped: usize,
    kept: usize,
    new: usize,
}

/// Times of one scrape.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When it began, in milliseconds since the epoch.
    pub start_ms: i64,
    /// How long it took until the page was there, in seconds.
    pub seconds: f64,
}

impl Memory {
    /// Turns a page, or the reason why there is none, into points.
    pub fn record(&mut self, rules: &Rules, page: Result<&Page, String>, times: Times) -> Record {
        if self.scrape == 0 {
            self.scrape = 1;
        }
        let mut warnings = Vec::new();
        let mut counts = Counts::default();
        let mut batch = Batch::new(&rules.target);
        let error = match page {
            Err(reason) => {
                self.end_without_page(&mut batch, times.start_ms);
                Some(reason)
            }
            Ok(page) if page.body.is_empty() => {
                self.end_without_page(&mut batch, times.start_ms);
                None
            }
            Ok(page) => match self.read(rules, page, times.start_ms, &mut batch, &mut counts, &mut warnings) {
                Ok(()) => {
                    self.mark_stale(&mut batch, times.start_ms);
                    self.end_scrape(true);
                    None
                }
                Err(error) => {
                    batch = Batch::new(&rules.target);
                    warnings.clear();
                    self.end_without_page(&mut batch, times.start_ms);
                    Some(error.to_string())
                }
            },
        };
        self.report(rules, &mut batch, times, counts, error.is_none());
        let mut broken = Broken::default();
        let payload = batch.write(&mut broken);
        for metric in &broken.metrics {
            warnings.push(format!("`{metric}`: counts are no numbers or fall from bucket to bucket, point dropped"));
        }
        warnings.retain(|warning| self.warned.len() < 1000 && self.warned.insert(warning.clone()));
        Record { payload, error, warnings, broken_points: broken.points }
    }

    fn read(
        &mut self,
        rules: &Rules,
        page: &Page,
        start_ms: i64,
        batch: &mut Batch<'_>,
        counts: &mut Counts,
        warnings: &mut Vec<String>,
    ) -> Result<(), ParseError> {
        let dialect = dialect_of(page.content_type.as_deref(), rules.fallback)?;
        let mut parser = Parser::new(&page.body, dialect);
        while let Some(entry) = parser.next_entry()? {
            match entry {
                Entry::Help(family, text) => self.metadata.set_help(family, text, self.scrape),
                Entry::Type(family, kind) => self.metadata.set_type(family, kind, self.scrape),
                Entry::Unit(family, unit) => self.metadata.set_unit(family, unit, self.scrape),
                Entry::Sample(sample) => {
                    counts.scraped += 1;
                    self.take(rules, &parser, &sample, start_ms, batch, counts, warnings)?;
                }
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `read`")]
    fn take(
        &mut self,
        rules: &Rules,
        parser: &Parser<'_>,
        sample: &Sample<'_>,
        start_ms: i64,
        batch: &mut Batch<'_>,
        counts: &mut Counts,
        warnings: &mut Vec<String>,
    ) -> Result<(), ParseError> {
        let own_time = sample.timestamp_ms.filter(|_| rules.honor_timestamps);
        let timestamp_ms = own_time.unwrap_or(start_ms);
        let shown = || sample.series.escape_ascii().to_string();
        let new = match self.series.get_mut(sample.series) {
            Some(cached) => {
                let again = cached.seen == self.scrape;
                cached.seen = self.scrape;
                if again && own_time.is_none() {
                    warnings.push(format!("`{}` stands twice in the page, the first value is kept", shown()));
                    counts.kept += 1;
                    return Ok(());
                }
                None
            }
            None => Some(self.new_series(rules, parser)?),
        };
        if timestamp_ms > start_ms + AHEAD_MS {
            warnings.push(format!("`{}` has a timestamp more than ten minutes ahead, dropped", shown()));
            counts.kept += 1;
            return Ok(());
        }
        let is_new = new.is_some();
        if let Some(series) = new {
            let cached = Cached { series, seen: self.scrape, tracked: 0, recorded: false };
            self.series.insert(sample.series.into(), cached);
        }
        if let Some(cached) = self.series.get_mut(sample.series) {
            let added = batch.add(&cached.series, &self.metadata, timestamp_ms, sample.value, sample.exemplar.as_ref());
            if let Added::LeftOut(misfit) = added {
                warnings.push(format!("`{}` was dropped: {}", shown(), misfit.describe()));
            }
            cached.recorded |= added == Added::Recorded;
            if cached.recorded && own_time.is_none() {
                cached.tracked = self.scrape;
            }
        }
        counts.new += usize::from(is_new);
        counts.kept += 1;
        Ok(())
    }

    fn new_series(&mut self, rules: &Rules, parser: &Parser<'_>) -> Result<Series, ParseError> {
        let labels = parser.labels()?;
        let labels = final_labels(labels.with_target(&rules.target, rules.honor_labels), rules);
        match labels.duplicate() {
            Some(name) => Err(parser.error(format!("the label `{name}` stands twice"))),
            None if labels.get(METRIC_NAME).is_empty() => Err(parser.error("a sample without a metric name")),
            None => Ok(self.with_origin(rules, labels)),
        }
    }

    /// A series of these labels, with its origin shared.
    fn with_origin(&mut self, rules: &Rules, labels: Labels) -> Series {
        let origin = Origin::of(&labels, &rules.target);
        let known = self.origins.iter().find(|known| ***known == origin).cloned();
        let origin = known.unwrap_or_else(|| {
            let origin = Arc::new(origin);
            self.origins.push(Arc::clone(&origin));
            origin
        });
        Series::new(labels, origin)
    }

    fn end_without_page(&mut self, batch: &mut Batch<'_>, start_ms: i64) {
        self.mark_stale(batch, start_ms);
        self.end_scrape(false);
    }

    /// Says of every series that the former scrape had and this one lacks that it is gone.
    fn mark_stale(&self, batch: &mut Batch<'_>, start_ms: i64) {
        let former = self.scrape - 1;
        let gone: Vec<&Cached> =
            self.series.values().filter(|cached| cached.tracked != 0 && cached.tracked == former).collect();
        if gone.is_empty() {
            return;
        }
        let here = |cached: &&Cached| cached.tracked == self.scrape;
        let present: HashSet<u64> = self.series.values().filter(here).map(|cached| cached.series.identity()).collect();
        let mut said = HashSet::new();
        for cached in gone {
            let identity = cached.series.identity();
            if !present.contains(&identity) && said.insert(identity) {
                batch.add(&cached.series, &self.metadata, start_ms, STALE, None);
            }
        }
    }

    /// Forgets what was not in a good page, and what pages that failed have piled up.
    fn end_scrape(&mut self, good: bool) {
        let size = self.series.len() + self.metadata.size();
        if good {
            self.size_when_good = size;
        }
        if good || size > self.size_when_good * 2 + 1000 {
            let scrape = self.scrape;
            self.series.retain(|_, cached| cached.seen == scrape);
            // An origin that no series has is held by the list alone.
            self.origins.retain(|origin| Arc::strong_count(origin) > 1);
            self.metadata.forget_old(scrape);
        }
        self.scrape += 1;
    }

    fn report(&mut self, rules: &Rules, batch: &mut Batch<'_>, times: Times, counts: Counts, up: bool) {
        if self.reports.is_empty() {
            let names = [
                "up",
                "scrape_duration_seconds",
                "scrape_samples_scraped",
                "scrape_samples_post_metric_relabeling",
                "scrape_series_added",
            ];
            self.reports = names
                .map(|name| {
                    let labels = Labels::new(vec![(METRIC_NAME.to_owned(), name.to_owned())]);
                    self.with_origin(rules, final_labels(labels.with_target(&rules.target, false), rules))
                })
                .into();
        }
        let values =
            [f64::from(u8::from(up)), times.seconds, counts.scraped as f64, counts.kept as f64, counts.new as f64];
        for (series, value) in self.reports.iter().zip(values) {
            batch.add(series, &self.metadata, times.start_ms, value, None);
        }
    }
}

fn final_labels(mut labels: Labels, rules: &Rules) -> Labels {
    for (name, value) in &rules.external {
        labels.set(name, value);
    }
    labels
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
