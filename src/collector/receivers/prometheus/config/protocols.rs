//! Which formats a target is asked for, and which names they may have.

use super::super::exposition::Dialect;
use super::super::relabel::Names;
use super::scalars;
use crate::collector::config::section::Section;
use crate::diag::Problem;

/// A format that a target may answer with.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    name: &'static str,
    media_type: &'static str,
    /// Whether the name of an escaping scheme goes along.
    escapes: bool,
    dialect: Dialect,
}

/// In the words of `scrape_protocols`, in the order of preference.
const PROTOCOLS: [Protocol; 4] = [
    Protocol {
        name: "OpenMetricsText1.0.0",
        media_type: "application/openmetrics-text;version=1.0.0",
        escapes: true,
        dialect: Dialect::OpenMetrics,
    },
    Protocol {
        name: "OpenMetricsText0.0.1",
        media_type: "application/openmetrics-text;version=0.0.1",
        escapes: false,
        dialect: Dialect::OpenMetrics,
    },
    Protocol {
        name: "PrometheusText1.0.0",
        media_type: "text/plain;version=1.0.0",
        escapes: true,
        dialect: Dialect::Text,
    },
    Protocol {
        name: "PrometheusText0.0.4",
        media_type: "text/plain;version=0.0.4",
        escapes: false,
        dialect: Dialect::Text,
    },
];

/// Naming of metrics and labels: what is taken, and what targets are asked to send.
#[derive(Clone, Copy, Debug)]
pub struct Naming {
    /// What is taken.
    pub names: Names,
    /// `None` where nobody has said it.
    escaping: Option<&'static str>,
}

impl Default for Naming {
    fn default() -> Self {
        Self { names: Names::Utf8, escaping: None }
    }
}

const UTF8: &str = "allow-utf-8";

impl Naming {
    /// Reads it; what is absent is as in `others`.
    pub fn read(section: &mut Section<'_>, others: &Self) -> Self {
        let validation = scalars::word(section, "metric_name_validation_scheme", &["utf8", "legacy"]);
        let schemes = [UTF8, "underscores", "dots", "values"];
        let escaping = scalars::word(section, "metric_name_escaping_scheme", &schemes);
        let naming = match validation {
            None => Self { names: others.names, escaping: escaping.or(others.escaping) },
            Some("legacy") => Self { names: Names::Legacy, escaping },
            Some(_) => Self { names: Names::Utf8, escaping },
        };
        if naming.names == Names::Legacy && naming.escaping == Some(UTF8) {
            let message = "names are asked for in UTF-8, but `metric_name_validation_scheme` allows legacy names only";
            section.problem("metric_name_escaping_scheme", Problem::new(message));
        }
        naming
    }

    fn escaping(&self) -> &'static str {
        self.escaping.unwrap_or(if self.names == Names::Legacy { "underscores" } else { UTF8 })
    }
}

/// `scrape_protocols`, if they are there.
pub fn protocols(section: &mut Section<'_>) -> Option<Vec<Protocol>> {
    const KEY: &str = "scrape_protocols";
    let names = scalars::texts(section, KEY)?;
    if names.is_empty() {
        section.problem(KEY, Problem::new(format!("`{KEY}` is empty")));
    }
    if names.iter().enumerate().any(|(place, name)| names[..place].contains(name)) {
        section.problem(KEY, Problem::new("a scrape protocol stands twice"));
    }
    Some(names.iter().filter_map(|name| protocol(section, KEY, name)).collect())
}

fn protocol(section: &Section<'_>, key: &str, name: &str) -> Option<Protocol> {
    let found = PROTOCOLS.into_iter().find(|protocol| protocol.name == name);
    if found.is_none() {
        let problem = Problem::new(format!("`{name}` is no scrape protocol of this collector"));
        section.problem(key, problem.suggest(name, PROTOCOLS.map(|protocol| protocol.name)));
    }
    found
}

/// `fallback_scrape_protocol`.
pub fn fallback(section: &mut Section<'_>) -> Option<Dialect> {
    const KEY: &str = "fallback_scrape_protocol";
    let name = scalars::filled(section, KEY)?;
    protocol(section, KEY, &name).map(|protocol| protocol.dialect)
}

/// The `Accept` header: formats with falling preference; the first one has the weight that it would have with every
/// format allowed.
pub fn accept(protocols: Option<&[Protocol]>, naming: &Naming) -> String {
    let media_type = |protocol: &Protocol| {
        let escaping = if protocol.escapes { format!(";escaping={}", naming.escaping()) } else { String::new() };
        format!("{}{escaping}", protocol.media_type)
    };
    let all = protocols.unwrap_or(&PROTOCOLS).iter().map(media_type).chain(["*/*".to_owned()]);
    let weighted: Vec<String> = all.zip((1..=6).rev()).map(|(media_type, q)| format!("{media_type};q=0.{q}")).collect();
    weighted.join(",")
}

/// Native histograms come in the protobuf format alone, which is not read here: what would turn them on is an error,
/// what limits them has no effect.
pub fn native_histograms(section: &mut Section<'_>) {
    section.boolean("always_scrape_classic_histograms");
    for key in ["scrape_native_histograms", "convert_classic_histograms_to_nhcb"] {
        if section.boolean(key) == Some(true) {
            let problem = Problem::new(format!("`{key}` is not supported by this collector"));
            section.problem(key, problem.hint("leave it out: histograms are scraped with their buckets"));
        }
    }
}
