//! What a fetched page becomes.
//!
//! A page is all or nothing: one broken line and none of its samples is recorded, as in the reference. The counts of
//! the report then say how far it was read. A series that was in the last page and is not in this one (or the target
//! is down) gets one point that says so; series with timestamps of their own do not, unless they are to be tracked.
//!
//! A page that differs from the last one in its values alone takes a shorter way to the same points: see [`Repeat`].
//!
//! All of this is pure: [`Memory::record`] takes the page and the times and gives the payload.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::exposition::{Entry, ParseError, Parser, Sample, dialect_of};
use super::super::points::{Added, Batch, Broken, Metadata, STALE, Series, Slot, TIMES_MS};
use super::super::relabel::{Builder, apply};
use super::cache::Cache;
use super::labels::{Labels, METRIC_NAME, add_target, of_report};
use super::repeat::{Repeat, Trail};
use super::rules::Rules;
use super::warnings::{Said, Warnings};
use crate::otlp::Payload;

/// A timestamp may be this far ahead of the clock, in milliseconds.
const AHEAD_MS: i64 = 600_000;

/// A page as it was fetched.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// The `Content-Type`, where there was one.
    pub content_type: Option<String>,
}

/// There is no page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Why, in short.
    pub reason: String,
    /// Whether it was larger than `body_size_limit` allows.
    pub too_large: bool,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { reason, too_large: false }
    }
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

/// What one target is remembered by from scrape to scrape.
#[derive(Debug, Default)]
pub struct Memory {
    cache: Cache,
    reports: Vec<Series>,
    metadata: Metadata,
    said: Said,
    /// The last scrape, if it may be made again with other values.
    pub(super) repeat: Option<Repeat>,
}

/// What the report says of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub scraped: usize,
    pub kept: usize,
    pub new: usize,
}

/// Times of one scrape.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When it began, in milliseconds since the epoch.
    pub start_ms: i64,
    /// How long it took until the page was there, in seconds.
    pub seconds: f64,
}

/// One page being read.
struct Reading<'r> {
    rules: &'r Rules,
    start_ms: i64,
    batch: Batch,
    counts: Counts,
    /// Samples that were put into the batch or might have been: what `sample_limit` counts.
    taken: usize,
    warnings: Warnings,
    /// The way through the page, while the next one may be read along it.
    trail: Option<Trail>,
}

impl Memory {
    /// Turns a page, or the reason why there is none, into points.
    ///
    /// A page that this breaks on is one that cannot be had, and the memory begins anew: the target is scraped on.
    pub fn record(&mut self, rules: &Rules, page: Result<&Page, &Failure>, times: Times) -> Record {
        self.unless_broken(rules, times, |memory| memory.record_page(rules, page, times))
    }

    /// What `read` records; if it panics, what is recorded of a page that cannot be had.
    pub(super) fn unless_broken(
        &mut self,
        rules: &Rules,
        times: Times,
        read: impl FnOnce(&mut Self) -> Record,
    ) -> Record {
        catch_unwind(AssertUnwindSafe(|| read(self))).unwrap_or_else(|_| {
            *self = Self::default();
            let broken = Failure::from("the collector broke down on the page (please report this)".to_owned());
            self.record_page(rules, Err(&broken), times)
        })
    }

    fn record_page(&mut self, rules: &Rules, page: Result<&Page, &Failure>, times: Times) -> Record {
        let repeat = self.repeat.take();
        let again = repeat.zip(page.ok()).and_then(|(repeat, page)| repeat.again(rules, page, times));
        if let Some(again) = again {
            let record = self.written(&again.batch, rules, None, Warnings::default());
            // For the cache, which was not asked, this scrape and the last one are the same.
            self.repeat = Some(again);
            return record;
        }
        self.record_anew(rules, page, times)
    }

    fn record_anew(&mut self, rules: &Rules, page: Result<&Page, &Failure>, times: Times) -> Record {
        let mut reading = Reading {
            rules,
            start_ms: times.start_ms,
            batch: Batch::new(&rules.scheme),
            counts: Counts::default(),
            taken: 0,
            warnings: Warnings::default(),
            trail: None,
        };
        let known = self.metadata.revision();
        let (error, size) = match page {
            Err(failure) => (Some(failure.reason.clone()), if failure.too_large { -1.0 } else { 0.0 }),
            Ok(page) => {
                let empty = page.body.is_empty();
                let read = if empty { Ok(()) } else { self.read(&mut reading, page) };
                (read.err().map(|error| error.to_string()), page.body.len() as f64)
            }
        };
        if error.is_some() {
            reading.batch = Batch::new(&rules.scheme);
            reading.warnings.clear();
        } else if reading.counts.scraped == 0 {
            // A wrong path often answers so, and `up` 1 hides it.
            reading.warnings.add(&self.said, "the page has no samples".into());
        }
        let gone = self.cache.gone();
        for series in &gone {
            reading.batch.add(series, &self.metadata, times.start_ms, STALE, None);
        }
        // What was learned or said in this scrape may make another of the next one.
        let settled = error.is_none() && gone.is_empty() && reading.warnings.is_empty();
        let settled = settled && self.metadata.revision() == known && self.metadata.is_of(self.cache.scrape);
        let good = error.is_none() && page.is_ok_and(|page| !page.body.is_empty());
        self.cache.end_scrape(good, &mut self.metadata);
        let values = reading.counts.report(rules, times, error.is_none(), size);
        let reports = self.report(&mut reading, values);

        let Reading { batch, warnings, trail, counts, .. } = reading;
        let record = self.written(&batch, rules, error, warnings);
        let trail = trail.filter(|_| settled);
        self.repeat = trail.map(|trail| Repeat { trail, batch, reports, counts });
        record
    }

    fn written(&mut self, batch: &Batch, rules: &Rules, error: Option<String>, mut warnings: Warnings) -> Record {
        let mut broken = Broken::default();
        let payload = batch.write(rules.trim_suffixes, &mut broken);
        for metric in &broken.metrics {
            let what = "counts are no numbers or fall from bucket to bucket, point dropped";
            warnings.add(&self.said, format!("`{metric}`: {what}"));
        }
        let warnings = warnings.into_said(&mut self.said);
        Record { payload, error, warnings, broken_points: broken.points }
    }

    fn read(&mut self, reading: &mut Reading<'_>, page: &Page) -> Result<(), ParseError> {
        let dialect = dialect_of(page.content_type.as_deref(), reading.rules.fallback)?;
        let mut parser = Parser::new(&page.body, dialect);
        reading.trail = Some(Trail::new(dialect));
        let scrape = self.cache.scrape;
        while let Some(entry) = parser.next_entry()? {
            let changed = match entry {
                Entry::Help(family, text) => self.metadata.set_help(family, text, scrape),
                Entry::Type(family, kind) => self.metadata.set_type(family, kind, scrape),
                Entry::Unit(family, unit) => self.metadata.set_unit(family, unit, scrape),
                Entry::Sample(sample) => {
                    reading.counts.scraped += 1;
                    let dropped = self.cache.is_dropped(sample.series);
                    let slot = if dropped { None } else { self.take(reading, &parser, &sample)? };
                    if sample.timestamp_ms.is_some() || sample.exemplar.is_some() {
                        reading.trail = None;
                    }
                    if let Some(trail) = &mut reading.trail {
                        trail.add(&page.body, parser.value_range(), slot);
                    }
                    false
                }
            };
            if changed {
                reading.batch.resolve_anew();
            }
        }
        // The whole page is read before this is said, so that the report has its number of samples.
        let limit = reading.rules.limits.samples;
        if limit > 0 && reading.taken > limit {
            let message = format!("the page has more samples than `sample_limit` allows ({limit})");
            return Err(ParseError { line: None, message });
        }
        if let Some(trail) = &mut reading.trail {
            trail.end(&page.body);
        }
        Ok(())
    }

    /// Takes up a sample, and gives where its value is if it is in a point.
    fn take(
        &mut self,
        reading: &mut Reading<'_>,
        parser: &Parser<'_>,
        sample: &Sample<'_>,
    ) -> Result<Option<Slot>, ParseError> {
        let rules = reading.rules;
        let own_time = sample.timestamp_ms.filter(|_| rules.honor_timestamps);
        let timestamp_ms = own_time.unwrap_or(reading.start_ms);
        let shown = || sample.series.escape_ascii().to_string();
        let scrape = self.cache.scrape;
        let known = self.cache.find(sample.series);
        let new = if let Some(cached) = known.and_then(|place| self.cache.at(place)) {
            let again = cached.seen == scrape;
            cached.seen = scrape;
            if again && own_time.is_none() {
                reading
                    .warnings
                    .add(&self.said, format!("`{}` stands twice in the page, the first value is kept", shown()));
                reading.counts.kept += 1;
                return Ok(None);
            }
            None
        } else {
            let Some(series) = self.new_series(rules, parser)? else {
                self.cache.remember_dropped(sample.series);
                return Ok(None);
            };
            Some(series)
        };
        reading.counts.kept += 1;
        reading.taken += 1;
        if rules.limits.samples > 0 && reading.taken > rules.limits.samples {
            return Ok(None);
        }
        if timestamp_ms > reading.start_ms + AHEAD_MS {
            reading
                .warnings
                .add(&self.said, format!("`{}` has a timestamp more than ten minutes ahead, dropped", shown()));
            return Ok(None);
        }
        if !TIMES_MS.contains(&timestamp_ms) {
            reading.warnings.add(&self.said, format!("`{}` has a timestamp before 1970, dropped", shown()));
            return Ok(None);
        }
        let new = new.map(|series| {
            reading.counts.new += 1;
            self.cache.insert(sample.series, series)
        });
        let mut slot = None;
        if let Some(cached) = known.or(new).and_then(|place| self.cache.at(place)) {
            let exemplar = sample.exemplar.as_ref();
            let added = reading.batch.add(&cached.series, &self.metadata, timestamp_ms, sample.value, exemplar);
            match added {
                Added::Recorded(place) => slot = Some(place),
                Added::Described => {}
                Added::LeftOut(misfit) => {
                    reading.warnings.add(&self.said, format!("`{}` was dropped: {}", shown(), misfit.describe()));
                }
            }
            cached.recorded |= slot.is_some();
            if cached.recorded && (own_time.is_none() || rules.track_timestamps) {
                cached.tracked = scrape;
            }
        }
        Ok(slot)
    }

    /// The series that the parser stands at; `None` if relabelling drops it.
    fn new_series(&mut self, rules: &Rules, parser: &Parser<'_>) -> Result<Option<Series>, ParseError> {
        let exposed = parser.labels()?;
        let mut labels = Builder::new(exposed.clone());
        add_target(&mut labels, &exposed, &rules.target, rules.honor_labels);
        if !apply(&rules.relabel, &mut labels) {
            return Ok(None);
        }
        let labels = labels.finish();
        if labels.iter().next().is_none() {
            return Ok(None);
        }
        if labels.get(METRIC_NAME).is_empty() {
            return Err(parser.error("a sample without a metric name"));
        }
        let names = rules.names;
        if let Some((name, _)) = labels.iter().find(|(name, _)| !names.allow_label(name)) {
            return Err(parser.error(format!("`{name}` is no name of a label")));
        }
        if !names.allow_metric(labels.get(METRIC_NAME)) {
            return Err(parser.error(format!("`{}` is no name of a metric", labels.get(METRIC_NAME))));
        }
        rules.limits.check(&labels).map_err(|message| parser.error(message))?;
        let labels = with_external(labels, rules);
        match labels.duplicate() {
            Some(name) => Err(parser.error(format!("the label `{name}` stands twice"))),
            None => Ok(Some(self.cache.with_origin(rules, labels))),
        }
    }

    /// Adds the series that tell of the scrape; gives where they are, each at its place.
    fn report(&mut self, reading: &mut Reading<'_>, values: [f64; REPORTS.len()]) -> Vec<Option<Slot>> {
        let rules = reading.rules;
        if self.reports.is_empty() {
            let names = REPORTS.iter().take(if rules.extra_report.is_some() { 8 } else { 5 });
            let labels = |name: &&str| with_external(of_report(name, &rules.target), rules);
            self.reports = names.map(|name| self.cache.with_origin(rules, labels(name))).collect();
        }
        let series_and_values = self.reports.iter().zip(values);
        let add = |(series, value)| reading.batch.add(series, &self.metadata, reading.start_ms, value, None);
        let slot = |added| if let Added::Recorded(slot) = added { Some(slot) } else { None };
        series_and_values.map(add).map(slot).collect()
    }
}

/// What each scrape reports; the last three only where they are asked for.
const REPORTS: [&str; 8] = [
    "up",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
    "scrape_samples_post_metric_relabeling",
    "scrape_series_added",
    "scrape_timeout_seconds",
    "scrape_sample_limit",
    "scrape_body_size_bytes",
];

impl Counts {
    /// The values of the report, in the order of [`REPORTS`].
    pub fn report(self, rules: &Rules, times: Times, up: bool, size: f64) -> [f64; REPORTS.len()] {
        let Self { scraped, kept, new } = self;
        let timeout = rules.extra_report.unwrap_or_default().as_secs_f64();
        [
            f64::from(u8::from(up)),
            times.seconds,
            scraped as f64,
            kept as f64,
            new as f64,
            timeout,
            rules.limits.samples as f64,
            size,
        ]
    }
}

fn with_external(labels: Labels, rules: &Rules) -> Labels {
    if rules.external.is_empty() {
        return labels;
    }
    let mut labels = Builder::new(labels);
    for (name, value) in rules.external.iter() {
        labels.set(name, value);
    }
    labels.finish()
}
