//! `config.global`: what jobs have unless they say otherwise.

use std::sync::Arc;
use std::time::Duration;

use super::limits::AllLimits;
use super::protocols::{self, Naming, Protocol};
use super::scalars;
use crate::collector::config::section::Section;
use crate::diag::Problem;

/// All of it, with its defaults.
pub struct Global {
    pub interval: Duration,
    pub timeout: Duration,
    /// Labels that every series gets.
    pub external: Arc<[(String, String)]>,
    pub limits: AllLimits,
    pub naming: Naming,
    pub protocols: Option<Vec<Protocol>>,
    /// Whether each scrape reports its timeout, its limit of samples and its size.
    pub extra_report: bool,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            interval: Duration::from_mins(1),
            timeout: Duration::from_secs(10),
            external: Arc::default(),
            limits: AllLimits::default(),
            naming: Naming::default(),
            protocols: None,
            extra_report: false,
        }
    }
}

impl Global {
    /// Reads the section.
    pub fn read(section: &mut Section<'_>) -> Self {
        // What is about rules and queries has no effect in otelcol either, nor has the log of failures.
        for key in ["evaluation_interval", "rule_query_offset"] {
            scalars::duration(section, key);
        }
        for key in ["query_log_file", "scrape_failure_log_file"] {
            scalars::text(section, key);
        }
        protocols::native_histograms(section);
        let default = Self::default();
        let interval = scalars::duration(section, "scrape_interval").unwrap_or(default.interval);
        Self {
            interval,
            timeout: timeout(section, interval).unwrap_or(default.timeout.min(interval)),
            external: external(section),
            limits: AllLimits::read(section, &default.limits),
            naming: Naming::read(section, &default.naming),
            protocols: protocols::protocols(section),
            extra_report: section.boolean("extra_scrape_metrics").unwrap_or(false),
        }
    }
}

/// `scrape_timeout`, which must not be longer than the interval.
pub fn timeout(section: &mut Section<'_>, interval: Duration) -> Option<Duration> {
    let timeout = scalars::duration(section, "scrape_timeout")?;
    if timeout > interval {
        let message = format!("the scrape timeout {timeout:?} is longer than the scrape interval {interval:?}");
        section.problem("scrape_timeout", Problem::new(message).hint("leave it out: it is never longer by default"));
    }
    Some(timeout)
}

/// `external_labels`. A `$NAME` or `${NAME}` in a value is a variable of the environment, as in the reference, which
/// replaces them twice.
fn external(section: &mut Section<'_>) -> Arc<[(String, String)]> {
    let labels = scalars::labels(section, "external_labels");
    let expand_both = |value: &str| expand(&expand(value));
    labels.into_iter().map(|(name, value)| (name, expand_both(&value))).collect()
}

/// Replaces `$NAME` and `${NAME}` by variables, those that are not there by nothing; `$$` is a `$`.
fn expand(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let (name, after) = variable(after);
        match name {
            // Nothing that could be a name: the sign stays, an opening brace goes.
            None if after.len() == rest.len() - before.len() - 1 => expanded.push('$'),
            None => {}
            Some("$") => expanded.push('$'),
            Some(name) => expanded.push_str(&std::env::var(name).unwrap_or_default()),
        }
        rest = after;
    }
    expanded.push_str(rest);
    expanded
}

/// The name at the start of a text that follows a `$`, and what stands behind it.
fn variable(text: &str) -> (Option<&str>, &str) {
    let is_special = |c: char| matches!(c, '*' | '#' | '$' | '@' | '!' | '?' | '-' | '0'..='9');
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.find('}') {
            Some(0) => (None, &inner[1..]),
            Some(end) => (Some(&inner[..end]), &inner[end + 1..]),
            None => (None, inner),
        };
    }
    if text.starts_with(is_special) {
        return (Some(&text[..1]), &text[1..]);
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if end == 0 { (None, text) } else { (Some(&text[..end]), &text[end..]) }
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn variables_are_replaced_as_the_shell_does_it() {
        let path = std::env::var("PATH").unwrap_or_default();
        for (text, expanded) in [
            ("plain", "plain"),
            ("$$", "$"),
            ("a$", "a$"),
            ("$.b", "$.b"),
            ("${}x", "x"),
            ("${NO_SUCH_VARIABLE_HERE}x", "x"),
            ("$PATH:", &format!("{path}:")),
            ("${PATH}x", &format!("{path}x")),
        ] {
            assert_eq!(expand(text), expanded, "{text}");
        }
    }
}
