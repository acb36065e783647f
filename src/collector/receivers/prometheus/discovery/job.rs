//! From an address to a target: its labels, relabelled, and what they say about fetching it.

use std::time::Duration;

use reqwest::Url;

use super::super::config::duration::{format_duration, parse_duration};
use super::super::record::Labels;
use super::super::relabel::{Builder, Rule, apply};
use crate::collector::text::percent;

/// What a job says about its targets.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The name.
    pub name: String,
    /// `http` or `https`.
    pub scheme: String,
    /// The path of the page.
    pub path: String,
    /// Query parameters, sorted by name.
    pub parameters: Vec<(String, Vec<String>)>,
    /// From scrape to scrape.
    pub interval: Duration,
    /// For one scrape.
    pub timeout: Duration,
    /// Rules for the labels of targets.
    pub relabel: Vec<Rule>,
}

/// A target.
#[derive(Clone, Debug)]
pub struct Found {
    /// The labels that its series get.
    pub labels: Labels,
    /// All labels, those for the scrape itself included: what tells targets apart.
    every: Labels,
    /// The scheme before relabelling.
    pub scheme: String,
    /// What is fetched, or why that is impossible.
    pub url: Result<Url, String>,
    /// From scrape to scrape.
    pub interval: Duration,
    /// For one scrape.
    pub timeout: Duration,
}

impl Found {
    /// Whether two are one target.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.every == other.every && self.url == other.url
    }
}

const ADDRESS: &str = "__address__";
const SCHEME: &str = "__scheme__";
const PATH: &str = "__metrics_path__";
const INTERVAL: &str = "__scrape_interval__";
const TIMEOUT: &str = "__scrape_timeout__";
const PARAMETER: &str = "__param_";

impl Job {
    /// The target at an address with labels of its own; `None` if a rule drops it.
    ///
    /// # Errors
    /// Relabelling has made it impossible.
    pub fn target(&self, address: &str, own: &[(String, String)]) -> Result<Option<Found>, String> {
        let mut labels = self.discovered(address, own);
        let scheme = labels.get(SCHEME).to_owned();
        if !apply(&self.relabel, &mut labels) {
            return Ok(None);
        }
        let address = labels.get(ADDRESS).to_owned();
        if address.is_empty() {
            return Err("it has no address".into());
        }
        if address.contains('/') {
            return Err(format!("`{address}` is no address"));
        }
        let interval = duration(&labels, INTERVAL)?;
        let timeout = duration(&labels, TIMEOUT)?;
        if timeout > interval {
            return Err(format!("its timeout {timeout:?} is longer than its interval {interval:?}"));
        }
        if labels.get("instance").is_empty() {
            labels.set("instance", &address);
        }
        let mut every = labels.list();
        every.retain(|(name, _)| !name.starts_with("__meta_"));
        let own = every.iter().filter(|(name, _)| !name.starts_with("__")).cloned().collect();
        let every = Labels::new(every);
        Ok(Some(Found { url: self.url(&every), labels: Labels::new(own), every, scheme, interval, timeout }))
    }

    /// Labels before relabelling: those of the configuration win over what is derived from the job.
    fn discovered(&self, address: &str, own: &[(String, String)]) -> Builder {
        let mut labels = Builder::default();
        labels.set(ADDRESS, address);
        for (name, value) in own.iter().filter(|(name, _)| name != ADDRESS) {
            labels.set(name, value);
        }
        let (interval, timeout) = (format_duration(self.interval), format_duration(self.timeout));
        let derived = [
            ("job", self.name.as_str()),
            (INTERVAL, &interval),
            (TIMEOUT, &timeout),
            (PATH, &self.path),
            (SCHEME, &self.scheme),
            ("__convert_classic_histograms_to_nhcb__", "false"),
            ("__always_scrape_classic_histograms__", "false"),
            ("__scrape_native_histograms__", "false"),
        ];
        let first =
            |(name, values): &(String, Vec<String>)| Some((format!("{PARAMETER}{name}"), values.first()?.clone()));
        let parameters: Vec<(String, String)> = self.parameters.iter().filter_map(first).collect();
        let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in derived.into_iter().chain(parameters) {
            if labels.get(name).is_empty() {
                labels.set(name, value);
            }
        }
        labels
    }

    fn url(&self, labels: &Labels) -> Result<Url, String> {
        let (scheme, address, path) = (labels.get(SCHEME), labels.get(ADDRESS), labels.get(PATH));
        if address.contains(['@', '?', '#', '\\']) || address.contains(char::is_whitespace) {
            return Err(format!("`{address}` is no address"));
        }
        let mut parameters = self.parameters.clone();
        for (name, value) in labels.iter().filter_map(|(name, value)| Some((name.strip_prefix(PARAMETER)?, value))) {
            let known = parameters.iter_mut().find(|(known, values)| known == name && !values.is_empty());
            match known {
                Some((_, values)) => value.clone_into(&mut values[0]),
                None => parameters.push((name.to_owned(), vec![value.to_owned()])),
            }
        }
        parameters.sort_by(|a, b| a.0.cmp(&b.0));
        let pairs = parameters.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        let pairs: Vec<String> = pairs.map(|(name, value)| format!("{}={}", in_query(name), in_query(value))).collect();
        let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        let text = format!("{scheme}://{address}{slash}{}{query}", in_path(path));
        Url::parse(&text).map_err(|error| format!("`{address}` is no address: {error}"))
    }
}

fn duration(labels: &Builder, name: &str) -> Result<Duration, String> {
    let text = labels.get(name);
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err(format!("`{name}` is zero")),
        Ok(duration) => Ok(duration),
        Err(why) => Err(format!("`{name}` is no duration: {why}: `{text}`")),
    }
}

/// What stands as it is in a path, the rest in hexadecimal: as Go writes it.
fn in_path(text: &str) -> String {
    percent::encode(text, b"-_.~$&+,/:;=@")
}

/// The same for names and values of a query, where a blank is a `+`.
fn in_query(text: &str) -> String {
    percent::encode(text, b"-_.~ ").replace(' ', "+")
}
