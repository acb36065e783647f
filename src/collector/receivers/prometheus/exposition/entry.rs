//! What the lines of a page say.

use std::fmt;

use super::lexer::Dialect;

/// The dialect that a `Content-Type` names.
///
/// Case and parameters do not matter; a missing, blank or unknown type is read as `fallback`, else as text 0.0.4.
///
/// # Errors
/// The protobuf format: it is binary and was not asked for.
pub fn dialect_of(content_type: Option<&str>, fallback: Option<Dialect>) -> Result<Dialect, ParseError> {
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/openmetrics-text") {
        Ok(Dialect::OpenMetrics)
    } else if media_type.eq_ignore_ascii_case("application/vnd.google.protobuf") {
        let message = "the target answered in the protobuf format, which was not asked for".into();
        Err(ParseError { line: None, message })
    } else if media_type.eq_ignore_ascii_case("text/plain") {
        Ok(Dialect::Text)
    } else {
        Ok(fallback.unwrap_or(Dialect::Text))
    }
}

/// The type of a family, as TYPE says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricType {
    /// `counter`.
    Counter,
    /// `gauge`.
    Gauge,
    /// `histogram`.
    Histogram,
    /// `gaugehistogram` (OpenMetrics).
    GaugeHistogram,
    /// `summary`.
    Summary,
    /// `info` (OpenMetrics).
    Info,
    /// `stateset` (OpenMetrics).
    StateSet,
    /// `untyped`, `unknown`, or no TYPE at all.
    #[default]
    Unknown,
}

impl MetricType {
    /// The word that OpenMetrics has for it; also the value of the metadata entry `prometheus.type`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::GaugeHistogram => "gaugehistogram",
            Self::Summary => "summary",
            Self::Info => "info",
            Self::StateSet => "stateset",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn of_word(word: &[u8], dialect: Dialect) -> Option<Self> {
        Some(match (word, dialect) {
            (b"counter", _) => Self::Counter,
            (b"gauge", _) => Self::Gauge,
            (b"histogram", _) => Self::Histogram,
            (b"summary", _) => Self::Summary,
            (b"untyped", Dialect::Text) | (b"unknown", Dialect::OpenMetrics) => Self::Unknown,
            (b"gaugehistogram", Dialect::OpenMetrics) => Self::GaugeHistogram,
            (b"info", Dialect::OpenMetrics) => Self::Info,
            (b"stateset", Dialect::OpenMetrics) => Self::StateSet,
            _ => return None,
        })
    }
}

/// Why a page is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// A lower-case fragment.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ParseError {}

/// What one line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry<'a> {
    /// `# HELP`: family and text, unescaped.
    Help(&'a [u8], String),
    /// `# TYPE`: family and type.
    Type(&'a [u8], MetricType),
    /// `# UNIT` (OpenMetrics): family and unit.
    Unit(&'a [u8], &'a [u8]),
    /// A sample.
    Sample(Sample<'a>),
}

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Everything before the value, as written: what makes two lines the same series.
    pub series: &'a [u8],
    /// The value; any NaN is the ordinary one, never the staleness marker.
    pub value: f64,
    /// Milliseconds since the epoch, where the line has a timestamp.
    pub timestamp_ms: Option<i64>,
    /// The exemplar (OpenMetrics only).
    pub exemplar: Option<Exemplar>,
}

/// An exemplar of OpenMetrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// Its labels by name, as written (escapes are kept, as the reference keeps them).
    pub labels: Vec<(String, String)>,
    /// Its value.
    pub value: f64,
    /// Milliseconds since the epoch, where it has a timestamp.
    pub timestamp_ms: Option<i64>,
}
