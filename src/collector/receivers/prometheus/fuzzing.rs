//! Doors for the fuzz targets in `fuzz/`: pages and patterns of rules.

use super::record::{Labels, Memory, Page, Rules, Times};
use super::relabel::Pattern;
use crate::otlp::Payload;

/// What a page became.
#[derive(Debug)]
pub struct Scraped {
    /// The points, with those of the report.
    pub payload: Payload,
    /// Why the page was refused, if it was.
    pub error: Option<String>,
}

/// Scrapes pages of one target one after the other.
#[must_use]
pub fn scrape(pages: &[&[u8]], content_type: &str) -> Vec<Scraped> {
    let target = [("instance", "127.0.0.1:9"), ("job", "j")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let target = Labels::new(target.into());
    let rules = Rules { target, scheme: "http".into(), honor_timestamps: true, ..Rules::default() };
    let mut memory = Memory::default();
    let one = |(place, body): (i64, &&[u8])| {
        let page = Page { body: body.to_vec(), content_type: Some(content_type.to_owned()) };
        let times = Times { start_ms: 1_800_000_000_000 + place * 1000, seconds: 0.25 };
        let record = memory.record(&rules, Ok(&page), times);
        Scraped { payload: record.payload, error: record.error }
    };
    (0..).zip(pages).map(one).collect()
}

/// What the template of a rule becomes for a text; None if the pattern is none or does not match.
#[must_use]
pub fn relabel_pattern(pattern: &str, text: &str, template: &str) -> Option<String> {
    Pattern::new(pattern).ok()?.expand(text, [template]).map(|[filled]| filled)
}
