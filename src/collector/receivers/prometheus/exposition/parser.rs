//! The walk over one page: tokens become entries.

use std::ops::Range;

use super::super::record::{Labels, METRIC_NAME};
use super::entry::{Entry, Exemplar, MetricType, ParseError, Sample};
use super::lexer::{Dialect, Lexer, Token};
use super::number::{canonical, parse_boundary, parse_float};

/// Walks one page.
#[derive(Debug)]
pub struct Parser<'a> {
    lexer: Lexer<'a>,
    dialect: Dialect,
    line_start: usize,
    /// The last TYPE of the page, whatever family it names: it decides how `le` and `quantile` are written.
    last_type: Option<MetricType>,
    name: Option<(usize, usize)>,
    value_range: Range<usize>,
    labels: Vec<[usize; 4]>,
    exemplar_labels: Vec<[usize; 4]>,
    /// A sample with something unreadable after its value counts, but ends the page.
    broken: bool,
}

type Result<T, E = ParseError> = std::result::Result<T, E>;

impl<'a> Parser<'a> {
    /// A parser at the start of a page.
    #[must_use]
    pub fn new(page: &'a [u8], dialect: Dialect) -> Self {
        Self {
            lexer: Lexer::new(page, dialect),
            dialect,
            line_start: 0,
            last_type: None,
            name: None,
            value_range: 0..0,
            labels: Vec::new(),
            exemplar_labels: Vec::new(),
            broken: false,
        }
    }

    /// The next line that says something; `None` at the end of the page.
    ///
    /// # Errors
    /// A broken line, or (OpenMetrics) a page that does not end with `# EOF`.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'a>>> {
        loop {
            self.line_start = self.lexer.end;
            self.name = None;
            self.labels.clear();
            if self.broken {
                return Err(self.error("unexpected text after the value"));
            }
            let text = self.dialect == Dialect::Text;
            match self.lexer.next_token() {
                Token::End if text => return Ok(None),
                Token::End => return Err(self.no_end_word()),
                Token::EndWord => {
                    return match self.lexer.next_token() {
                        Token::End => Ok(None),
                        _ => Err(self.error("unexpected text after `# EOF`")),
                    };
                }
                Token::LineBreak if text => {}
                Token::Comment => self.expect(Token::LineBreak, "after a comment")?,
                token @ (Token::Help | Token::Type | Token::Unit) => {
                    return self.metadata(token).map(Some);
                }
                Token::BraceOpen => {
                    self.label_values(false)?;
                    let series_end = self.lexer.end;
                    let token = self.lexer.next_token();
                    return self.sample(series_end, token).map(Some);
                }
                Token::MetricName => {
                    self.name = Some((self.line_start, self.lexer.end));
                    let mut series_end = self.lexer.end;
                    let mut token = self.lexer.next_token();
                    if token == Token::BraceOpen {
                        self.label_values(false)?;
                        series_end = self.lexer.end;
                        token = self.lexer.next_token();
                    }
                    return self.sample(series_end, token).map(Some);
                }
                token => return Err(self.unexpected("the start of a line", token)),
            }
        }
    }

    /// Where the value of the sample that [`next_entry`](Self::next_entry) returned last stands in the page.
    #[must_use]
    pub fn value_range(&self) -> Range<usize> {
        self.value_range.clone()
    }

    pub(in super::super) fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError { line: Some(self.lexer.line_of(self.lexer.start)), message: message.into() }
    }

    fn no_end_word(&self) -> ParseError {
        self.error("the page does not end with `# EOF`")
    }

    fn unexpected(&self, wanted: &str, got: Token) -> ParseError {
        self.error(format!("expected {wanted}, found {}", got.describe()))
    }

    fn expect(&mut self, token: Token, place: &str) -> Result<()> {
        match self.lexer.next_token() {
            got if got == token => Ok(()),
            got => Err(self.unexpected(&format!("{} {place}", token.describe()), got)),
        }
    }

    fn metadata(&mut self, kind: Token) -> Result<Entry<'a>> {
        self.expect(Token::MetricName, &format!("after {}", kind.describe()))?;
        let mut name = self.lexer.token_text();
        if let Some(inner) = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")) {
            name = inner;
        }
        self.expect(Token::Text, &format!("after the name in {}", kind.describe()))?;
        // The first byte is the blank that separates the text from the name.
        let mut text = self.lexer.token_text().get(1..).unwrap_or_default();
        if self.dialect == Dialect::OpenMetrics {
            text = text.strip_suffix(b"\n").unwrap_or(text);
        }
        let entry = match kind {
            Token::Type => {
                let Some(metric_type) = MetricType::of_word(text, self.dialect) else {
                    return Err(self.error(format!("invalid metric type `{}`", text.escape_ascii())));
                };
                self.last_type = Some(metric_type);
                Entry::Type(name, metric_type)
            }
            Token::Unit => {
                let separator = name.len().checked_sub(text.len() + 1);
                let fits = name.ends_with(text) && separator.and_then(|at| name.get(at)) == Some(&b'_');
                if !text.is_empty() && !fits {
                    let (unit, name) = (text.escape_ascii(), name.escape_ascii());
                    return Err(self.error(format!("unit `{unit}` is no suffix of the metric name `{name}`")));
                }
                Entry::Unit(name, text)
            }
            _ => match std::str::from_utf8(text) {
                Ok(help) => Entry::Help(name, unescape(help, self.dialect == Dialect::OpenMetrics)),
                Err(_) => return Err(self.error("the HELP text is not UTF-8")),
            },
        };
        if self.dialect == Dialect::Text {
            self.expect(Token::LineBreak, "after metadata")?;
        }
        Ok(entry)
    }

    /// The rest of a sample, from the token behind its name and braces.
    fn sample(&mut self, series_end: usize, token: Token) -> Result<Entry<'a>> {
        let series = self.lexer.slice(self.line_start, series_end);
        if self.name.is_none() {
            return Err(self.error("a sample without a metric name"));
        }
        let value = self.value(token, "a value after the series")?;
        let blank = usize::from(self.dialect == Dialect::OpenMetrics);
        self.value_range = self.lexer.start + blank..self.lexer.end;
        let (timestamp_ms, exemplar) = match self.dialect {
            Dialect::Text => (self.text_timestamp()?, None),
            Dialect::OpenMetrics => self.openmetrics_tail()?,
        };
        Ok(Entry::Sample(Sample { series, value, timestamp_ms, exemplar }))
    }

    fn value(&mut self, token: Token, wanted: &str) -> Result<f64> {
        if token != Token::Value {
            return Err(self.unexpected(wanted, token));
        }
        let text = self.lexer.token_text();
        let digits = if self.dialect == Dialect::OpenMetrics { text.get(1..).unwrap_or_default() } else { text };
        match parse_float(digits) {
            // One NaN for all: the staleness marker is a NaN too, and only this program may make it.
            Some(value) if value.is_nan() => Ok(f64::NAN),
            Some(value) => Ok(value),
            None => Err(self.error(format!("`{}` is no number", digits.escape_ascii()))),
        }
    }

    fn text_timestamp(&mut self) -> Result<Option<i64>> {
        match self.lexer.next_token() {
            Token::LineBreak => Ok(None),
            Token::Timestamp => {
                let text = self.lexer.token_text();
                let timestamp = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                let Some(timestamp) = timestamp else {
                    return Err(self.error(format!("`{}` is no timestamp", text.escape_ascii())));
                };
                self.expect(Token::LineBreak, "after the timestamp")?;
                Ok(Some(timestamp))
            }
            token => Err(self.unexpected("a timestamp or the end of the line", token)),
        }
    }

    fn openmetrics_tail(&mut self) -> Result<(Option<i64>, Option<Exemplar>)> {
        match self.lexer.next_token() {
            Token::End => Err(self.no_end_word()),
            Token::LineBreak => Ok((None, None)),
            Token::Comment => Ok((None, Some(self.exemplar()?))),
            Token::Timestamp => {
                let timestamp = self.seconds()?;
                match self.lexer.next_token() {
                    Token::LineBreak => Ok((Some(timestamp), None)),
                    Token::Comment => Ok((Some(timestamp), Some(self.exemplar()?))),
                    token => Err(self.unexpected("the end of the line after the timestamp", token)),
                }
            }
            _ => {
                self.broken = true;
                Ok((None, None))
            }
        }
    }

    /// A timestamp of OpenMetrics, in milliseconds.
    fn seconds(&mut self) -> Result<i64> {
        let text = self.lexer.token_text().get(1..).unwrap_or_default();
        match parse_float(text) {
            #[expect(clippy::cast_possible_truncation, reason = "milliseconds are cut to an integer, as specified")]
            Some(seconds) if seconds.is_finite() => Ok((seconds * 1000.0) as i64),
            _ => Err(self.error(format!("`{}` is no timestamp", text.escape_ascii()))),
        }
    }

    fn exemplar(&mut self) -> Result<Exemplar> {
        self.exemplar_labels.clear();
        self.label_values(true)?;
        let mut labels = Vec::with_capacity(self.exemplar_labels.len());
        for [name_start, name_end, value_start, value_end] in std::mem::take(&mut self.exemplar_labels) {
            let name = std::str::from_utf8(self.lexer.slice(name_start, name_end));
            let value = std::str::from_utf8(self.lexer.slice(value_start, value_end));
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(self.error("an exemplar label is not UTF-8"));
            };
            labels.push((name.to_owned(), value.to_owned()));
        }
        labels.sort_by(|a, b| a.0.cmp(&b.0));
        let token = self.lexer.next_token();
        let value = self.value(token, "a value after the labels of the exemplar")?;
        let timestamp_ms = match self.lexer.next_token() {
            Token::End => return Err(self.no_end_word()),
            Token::LineBreak => None,
            Token::Timestamp => {
                let timestamp = self.seconds()?;
                self.expect(Token::LineBreak, "after the timestamp of the exemplar")?;
                Some(timestamp)
            }
            token => return Err(self.unexpected("a timestamp or the end of the line", token)),
        };
        Ok(Exemplar { labels, value, timestamp_ms })
    }

    /// What stands in braces, up to the closing one.
    fn label_values(&mut self, exemplar: bool) -> Result<()> {
        let mut token = self.lexer.next_token();
        loop {
            let (mut start, mut end) = (self.lexer.start, self.lexer.end);
            let quoted = match token {
                Token::BraceClose => return Ok(()),
                Token::LabelName => false,
                Token::Quoted => true,
                token => return Err(self.unexpected("a label name", token)),
            };
            token = self.lexer.next_token();
            if quoted {
                (start, end) = (start + 1, end - 1);
                // A quoted string without a value is the name of the metric.
                if matches!(token, Token::Comma | Token::BraceClose) {
                    if exemplar {
                        return Err(self.unexpected("`=` after a label name", token));
                    }
                    if self.name.is_some() {
                        return Err(self.error("a second metric name in one line"));
                    }
                    self.name = Some((start, end));
                    if token == Token::BraceClose {
                        return Ok(());
                    }
                    token = self.lexer.next_token();
                    continue;
                }
            }
            if token != Token::Equal {
                return Err(self.unexpected("`=` after a label name", token));
            }
            self.expect(Token::LabelValue, "after `=`")?;
            if std::str::from_utf8(self.lexer.token_text()).is_err() {
                return Err(self.error("a label value is not UTF-8"));
            }
            let label = [start, end, self.lexer.start + 1, self.lexer.end - 1];
            if exemplar { &mut self.exemplar_labels } else { &mut self.labels }.push(label);
            token = self.lexer.next_token();
            if token == Token::Comma {
                token = self.lexer.next_token();
            } else if self.dialect == Dialect::OpenMetrics && token != Token::BraceClose {
                return Err(self.unexpected("`,` or `}` after a label value", token));
            }
        }
    }

    /// The name and the labels of the sample that [`next_entry`](Self::next_entry) returned last, decoded.
    ///
    /// # Errors
    /// A name that is empty or not UTF-8.
    pub fn labels(&self) -> Result<Labels> {
        let (start, end) = self.name.unwrap_or_default();
        let mut list = Vec::with_capacity(self.labels.len() + 4);
        list.push((METRIC_NAME.to_owned(), self.name_text(start, end)?));
        for [name_start, name_end, value_start, value_end] in &self.labels {
            let name = self.name_text(*name_start, *name_end)?;
            let value = unescape(&String::from_utf8_lossy(self.lexer.slice(*value_start, *value_end)), true);
            list.push((name.clone(), self.normalise(&name, value)));
        }
        Ok(Labels::new(list))
    }

    fn name_text(&self, start: usize, end: usize) -> Result<String> {
        match std::str::from_utf8(self.lexer.slice(start, end)) {
            Ok("") => Err(self.error("an empty metric or label name")),
            Ok(name) => Ok(unescape(name, true)),
            Err(_) => Err(self.error("a metric or label name is not UTF-8")),
        }
    }

    /// `le` of histograms and `quantile` of summaries are numbers: equal ones are written alike.
    fn normalise(&self, name: &str, value: String) -> String {
        match (self.last_type, name) {
            (Some(MetricType::Histogram), "le") | (Some(MetricType::Summary), "quantile") => {
                parse_boundary(value.as_bytes()).map_or(value, canonical)
            }
            _ => value,
        }
    }
}

/// Resolves `\\`, `\n` and, where they count, `\"`; any other escape stays as it is.
fn unescape(text: &str, quotes: bool) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let (character, length) = match rest.as_bytes().get(at + 1) {
            Some(b'\\') => ('\\', 2),
            Some(b'n') => ('\n', 2),
            Some(b'"') if quotes => ('"', 2),
            _ => ('\\', 1),
        };
        plain.push(character);
        rest = &rest[at + length..];
    }
    plain.push_str(rest);
    plain
}
