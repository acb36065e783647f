//! What a target has said about its families: type, help, unit. It is remembered from scrape to scrape.

use std::collections::HashMap;

use super::super::exposition::MetricType;

/// Metadata is kept for this many scrapes after the family was last described.
const KEPT_FOR: u64 = 10;

/// Endings by which one family has several series names, in the order in which they are tried.
const SUFFIXES: [&str; 6] = ["_bucket", "_count", "_sum", "_total", "_info", "_created"];

#[derive(Clone, Debug, Default)]
struct Known {
    kind: MetricType,
    help: String,
    unit: String,
    last_seen: u64,
}

/// A family as a series name resolves to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// The name that the metadata was given under.
    pub described_as: String,
    /// The name of the metric.
    pub name: String,
    /// Its type.
    pub kind: MetricType,
    /// Its HELP text.
    pub help: String,
    /// Its unit, as a word (`seconds`).
    pub unit: String,
}

/// The metadata of one target.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    known: HashMap<String, Known>,
    revision: u64,
}

impl Metadata {
    /// Takes up a TYPE; true if it changes what names of series lead to.
    pub fn set_type(&mut self, family: &[u8], kind: MetricType, scrape: u64) -> bool {
        let (known, new) = self.entry(family, scrape);
        let changed = std::mem::replace(&mut known.kind, kind) != kind;
        self.revised(new || changed);
        new || changed
    }

    /// Takes up a HELP; true if it changes what names of series lead to.
    pub fn set_help(&mut self, family: &[u8], help: String, scrape: u64) -> bool {
        let (known, new) = self.entry(family, scrape);
        let changed = std::mem::replace(&mut known.help, help) != known.help;
        self.revised(new || changed);
        new
    }

    /// Takes up a UNIT; true if it changes what names of series lead to.
    pub fn set_unit(&mut self, family: &[u8], unit: &[u8], scrape: u64) -> bool {
        let (known, new) = self.entry(family, scrape);
        let unit = String::from_utf8_lossy(unit).into_owned();
        let changed = std::mem::replace(&mut known.unit, unit) != known.unit;
        self.revised(new || changed);
        new
    }

    fn revised(&mut self, changed: bool) {
        self.revision += u64::from(changed);
    }

    /// Another number whenever something that is known has changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What is known of a family, and whether that is new.
    fn entry(&mut self, family: &[u8], scrape: u64) -> (&mut Known, bool) {
        let name = String::from_utf8_lossy(family);
        let new = !self.known.contains_key(name.as_ref());
        let known = self.known.entry(name.into_owned()).or_default();
        known.last_seen = scrape;
        (known, new)
    }

    /// Forgets what was not described for ten scrapes.
    pub fn forget_old(&mut self, scrape: u64) {
        self.known.retain(|_, known| scrape - known.last_seen <= KEPT_FOR);
    }

    /// Whether all that is known was described in this scrape.
    #[must_use]
    pub fn is_of(&self, scrape: u64) -> bool {
        self.known.values().all(|known| known.last_seen == scrape)
    }

    /// How many families are known.
    #[must_use]
    pub fn size(&self) -> usize {
        self.known.len()
    }

    /// Whether there is metadata under exactly this name.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// The family that a series name belongs to: by its own name, else by its name without the suffix.
    #[must_use]
    pub fn family_of(&self, series: &str) -> Family {
        if let Some((help, unit)) = report_metadata(series) {
            let (kind, help, unit) = (MetricType::Gauge, help.to_owned(), unit.to_owned());
            return Family { described_as: series.into(), name: series.into(), kind, help, unit };
        }
        if let Some(known) = self.known.get(series) {
            return family(series, series, known);
        }
        let base = without_suffix(series);
        match self.known.get(base) {
            Some(known) if known.kind == MetricType::Counter => {
                let total = if is_created(series) { format!("{base}_total") } else { series.to_owned() };
                family(base, &total, known)
            }
            Some(known) => family(base, base, known),
            None => family(series, series, &Known::default()),
        }
    }

    /// The name under which a family may have been opened already by another of its series.
    #[must_use]
    pub fn opened_as(&self, series: &str) -> String {
        if self.knows(series) {
            return series.to_owned();
        }
        let base = without_suffix(series);
        let counter = self.known.get(base).is_some_and(|known| known.kind == MetricType::Counter);
        if is_created(series) && counter { format!("{base}_total") } else { base.to_owned() }
    }
}

fn family(described_as: &str, name: &str, known: &Known) -> Family {
    let (help, unit) = (known.help.clone(), known.unit.clone());
    Family { described_as: described_as.to_owned(), name: name.to_owned(), kind: known.kind, help, unit }
}

fn is_created(series: &str) -> bool {
    series.ends_with("_created")
}

/// A series name without the suffix that makes it part of a family; a name that is nothing but a suffix stays.
#[must_use]
pub fn without_suffix(series: &str) -> &str {
    for suffix in SUFFIXES {
        if let Some(base) = series.strip_suffix(suffix) {
            return if base.is_empty() { series } else { base };
        }
    }
    series
}

/// HELP and unit of the five metrics that every scrape reports.
fn report_metadata(series: &str) -> Option<(&'static str, &'static str)> {
    Some(match series {
        "up" => ("The scraping was successful", ""),
        "scrape_duration_seconds" => ("Duration of the scrape", "seconds"),
        "scrape_samples_scraped" => ("The number of samples the target exposed", ""),
        "scrape_samples_post_metric_relabeling" => {
            ("The number of samples remaining after metric relabeling was applied", "")
        }
        "scrape_series_added" => ("The approximate number of new series in this scrape", ""),
        _ => return None,
    })
}

/// The name of a metric without what says its type (`_total` of a sum) and its unit (`_seconds`, if that is the unit).
#[must_use]
pub fn trimmed<'n>(name: &'n str, sum: bool, unit: &str) -> &'n str {
    if !name.contains('_') {
        return name;
    }
    let name = if sum { name.strip_suffix("_total").unwrap_or(name) } else { name };
    // Without a unit, this cuts a `_` off the end of the name.
    let rest = name.strip_suffix(unit).and_then(|rest| rest.strip_suffix('_'));
    rest.unwrap_or(name)
}

/// A unit word of OpenMetrics (`seconds`, `bytes_per_second`) as UCUM has it; other words stay as they are.
#[must_use]
pub fn ucum(unit: &str) -> String {
    match unit.split_once("_per_") {
        Some((word, per)) if !per.is_empty() => format!("{}/{}", ucum_word(word), ucum_per(per)),
        Some((word, _)) => ucum_word(word).to_owned(),
        None => ucum_word(unit).to_owned(),
    }
}

fn ucum_word(word: &str) -> &str {
    match word {
        "days" => "d",
        "hours" => "h",
        "minutes" => "min",
        "seconds" => "s",
        "milliseconds" => "ms",
        "microseconds" => "us",
        "nanoseconds" => "ns",
        "bytes" => "By",
        "kibibytes" => "KiBy",
        "mebibytes" => "MiBy",
        "gibibytes" => "GiBy",
        "tibibytes" => "TiBy",
        "kilobytes" => "KBy",
        "megabytes" => "MBy",
        "gigabytes" => "GBy",
        "terabytes" => "TBy",
        "meters" => "m",
        "volts" => "V",
        "amperes" => "A",
        "joules" => "J",
        "watts" => "W",
        "grams" => "g",
        "celsius" => "Cel",
        "hertz" => "Hz",
        "ratio" => "1",
        "percent" => "%",
        other => other,
    }
}

fn ucum_per(word: &str) -> &str {
    match word {
        "second" => "s",
        "minute" => "m",
        "hour" => "h",
        "day" => "d",
        "week" => "w",
        "month" => "mo",
        "year" => "y",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{Metadata, MetricType, trimmed, ucum, without_suffix};

    #[test]
    fn a_series_finds_its_family() {
        let mut metadata = Metadata::default();
        metadata.set_type(b"h", MetricType::Histogram, 1);
        metadata.set_type(b"req", MetricType::Counter, 1);
        metadata.set_help(b"req", "Requests.".into(), 1);
        let found = |series: &str| {
            let family = metadata.family_of(series);
            (family.name, family.kind)
        };
        assert_eq!(found("h_bucket"), ("h".into(), MetricType::Histogram));
        assert_eq!(found("h_created"), ("h".into(), MetricType::Histogram));
        assert_eq!(found("req_total"), ("req_total".into(), MetricType::Counter));
        assert_eq!(found("req_created"), ("req_total".into(), MetricType::Counter));
        assert_eq!(metadata.opened_as("req_created"), "req_total");
        assert_eq!(found("other_total"), ("other_total".into(), MetricType::Unknown));
        assert_eq!(found("up"), ("up".into(), MetricType::Gauge));
        assert_eq!(metadata.family_of("req_total").help, "Requests.");
        assert_eq!(without_suffix("_sum"), "_sum");
        assert_eq!(without_suffix("a_sum_total"), "a_sum");
    }

    #[test]
    fn metadata_outlives_its_family_by_ten_scrapes() {
        let mut metadata = Metadata::default();
        metadata.set_type(b"a", MetricType::Counter, 5);
        metadata.forget_old(15);
        assert!(metadata.knows("a"));
        metadata.forget_old(16);
        assert_eq!(metadata.size(), 0);
    }

    #[test]
    fn types_and_units_are_cut_off_names() {
        for (name, sum, unit, short) in [
            ("requests_total", true, "", "requests"),
            ("requests_total", false, "", "requests_total"),
            ("cpu_seconds_total", true, "seconds", "cpu"),
            ("size_bytes_per_second", false, "bytes_per_second", "size"),
            ("seconds", false, "seconds", "seconds"),
            ("a_seconds", false, "", "a_seconds"),
            ("a_", false, "", "a"),
            ("_total", true, "", ""),
            ("x_kiloseconds", false, "seconds", "x_kiloseconds"),
        ] {
            assert_eq!(trimmed(name, sum, unit), short, "{name}");
        }
    }

    #[test]
    fn units_become_ucum() {
        for (word, unit) in
            [("seconds", "s"), ("bytes_per_second", "By/s"), ("requests", "requests"), ("ratio", "1"), ("", "")]
        {
            assert_eq!(ucum(word), unit);
        }
    }
}
