//! The receiver's section of the configuration: Prometheus's own, under `config`.
//!
//! Prometheus reads it strictly, and so does this: an unknown key is an error. What it knows and this receiver cannot
//! do yet (relabelling, limits, service discovery) is an error too.

use std::time::Duration;

use data_encoding::BASE64;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::duration::parse_duration;
use super::exposition::Dialect;
use super::labels::Labels;
use super::receiver::PrometheusReceiver;
use super::target::Rules;
use crate::collector::component::{Factory, Receiver, Signals};
use crate::collector::section::Section;
use crate::diag::Problem;
use crate::otlp::Signal;

/// The kind.
pub const FACTORY: Factory<dyn Receiver> =
    Factory { names: &["prometheus"], signals: Signals::Each(&[Signal::Metrics]), configure };

/// One target with all that its scrapes need.
#[derive(Clone, Debug)]
pub struct TargetSettings {
    /// What is fetched.
    pub url: Url,
    /// What is sent along.
    pub headers: HeaderMap,
    /// Whether redirects are followed.
    pub follow_redirects: bool,
    /// From scrape to scrape.
    pub interval: Duration,
    /// For one scrape.
    pub timeout: Duration,
    /// How pages are recorded.
    pub rules: Rules,
}

/// `config.global`, with its defaults.
struct Global {
    interval: Duration,
    timeout: Duration,
    external: Vec<(String, String)>,
}

impl Default for Global {
    fn default() -> Self {
        Self { interval: Duration::from_mins(1), timeout: Duration::from_secs(10), external: Vec::new() }
    }
}

fn configure(section: &mut Section<'_>) -> Option<Box<dyn Receiver>> {
    section.unsupported(&[
        "api_server",
        "ignore_metadata",
        "initial_scrape_offset",
        "report_extra_scrape_metrics",
        "scrape_on_shutdown",
        "target_allocator",
        "trim_metric_suffixes",
        "use_collector_start_time_fallback",
    ]);
    // Here the first scrape always comes soon.
    section.boolean("discovery_reload_on_startup");
    let targets = section.section("config", |config| {
        config.unsupported(&[
            "alerting",
            "otlp",
            "remote_read",
            "remote_write",
            "rule_files",
            "runtime",
            "scrape_config_files",
            "storage",
            "tracing",
        ]);
        let global = config.section("global", global).unwrap_or_default();
        let mut names = Vec::new();
        let jobs = config.sections("scrape_configs", |job| job_targets(job, &global, &mut names));
        jobs.unwrap_or_default().into_iter().flatten().collect::<Vec<_>>()
    });
    if targets.is_none() {
        section.missing("config");
    }
    Some(Box::new(PrometheusReceiver { targets: targets? }))
}

fn global(section: &mut Section<'_>) -> Global {
    section.unsupported(&[
        "always_scrape_classic_histograms",
        "body_size_limit",
        "convert_classic_histograms_to_nhcb",
        "extra_scrape_metrics",
        "keep_dropped_targets",
        "label_limit",
        "label_name_length_limit",
        "label_value_length_limit",
        "metric_name_escaping_scheme",
        "metric_name_validation_scheme",
        "query_log_file",
        "rule_query_offset",
        "sample_limit",
        "scrape_failure_log_file",
        "scrape_native_histograms",
        "scrape_protocols",
        "target_limit",
    ]);
    // Rules are not evaluated here; otelcol does not do it either.
    duration(section, "evaluation_interval");
    let default = Global::default();
    let interval = duration(section, "scrape_interval").unwrap_or(default.interval);
    let timeout = duration(section, "scrape_timeout");
    check_timeout(section, timeout, interval);
    let external = label_map(section, "external_labels");
    Global { interval, timeout: timeout.unwrap_or(default.timeout.min(interval)), external }
}

/// A duration of Prometheus; zero counts as absent.
fn duration(section: &mut Section<'_>, key: &'static str) -> Option<Duration> {
    let text = section.text(key)?;
    match parse_duration(&text) {
        Ok(duration) => Some(duration).filter(|duration| !duration.is_zero()),
        Err(why) => {
            let problem = Problem::new(format!("`{key}` is no duration: {why}: `{text}`"));
            section.problem(key, problem.hint("write whole numbers with units, such as `500ms`, `15s` or `1m30s`"));
            None
        }
    }
}

fn check_timeout(section: &Section<'_>, timeout: Option<Duration>, interval: Duration) {
    if let Some(timeout) = timeout.filter(|timeout| *timeout > interval) {
        let message = format!("the scrape timeout {timeout:?} is longer than the scrape interval {interval:?}");
        section.problem("scrape_timeout", Problem::new(message).hint("leave it out: it is never longer by default"));
    }
}

fn job_targets(job: &mut Section<'_>, global: &Global, names: &mut Vec<String>) -> Vec<TargetSettings> {
    job.unsupported(UNSUPPORTED_OF_A_JOB);
    let name = job.required_text("job_name").unwrap_or_default();
    if !name.is_empty() && names.contains(&name) {
        job.problem("job_name", Problem::new(format!("two jobs are named `{name}`")));
    }
    names.push(name.clone());
    let interval = duration(job, "scrape_interval").unwrap_or(global.interval);
    let timeout = duration(job, "scrape_timeout");
    check_timeout(job, timeout, interval);
    let timeout = timeout.unwrap_or(global.timeout.min(interval));
    let scheme = job.word("scheme", &["http", "https"]).unwrap_or("http");
    let path = job.text("metrics_path").filter(|path| !path.is_empty()).unwrap_or_else(|| "/metrics".into());
    let parameters = parameters(job);
    let follow_redirects = job.boolean("follow_redirects").unwrap_or(true);
    // One connection a target: what HTTP/2 adds is not used.
    job.boolean("enable_http2");
    let rules = Rules {
        target: Labels::default(),
        external: global.external.clone(),
        honor_labels: job.boolean("honor_labels").unwrap_or(false),
        honor_timestamps: job.boolean("honor_timestamps").unwrap_or(true),
        fallback: fallback(job),
    };
    let headers = headers(job, timeout);
    let groups = job
        .sections("static_configs", |group| (group.texts("targets").unwrap_or_default(), label_map(group, "labels")));
    let mut targets = Vec::new();
    for (addresses, labels) in groups.unwrap_or_default() {
        for address in addresses {
            let labels = target_labels(&name, &address, scheme, &path, &labels);
            match target_url(&address, &labels, &parameters) {
                Ok(url) => {
                    let (headers, rules) = (headers.clone(), Rules { target: labels, ..rules.clone() });
                    targets.push(TargetSettings { url, headers, follow_redirects, interval, timeout, rules });
                }
                Err(problem) => job.problem("static_configs", problem),
            }
        }
    }
    targets
}

const UNSUPPORTED_OF_A_JOB: &[&str] = &[
    "always_scrape_classic_histograms",
    "azure_sd_configs",
    "bearer_token",
    "bearer_token_file",
    "body_size_limit",
    "consul_sd_configs",
    "convert_classic_histograms_to_nhcb",
    "dns_sd_configs",
    "docker_sd_configs",
    "ec2_sd_configs",
    "extra_scrape_metrics",
    "file_sd_configs",
    "gce_sd_configs",
    "http_sd_configs",
    "keep_dropped_targets",
    "kubernetes_sd_configs",
    "label_limit",
    "label_name_length_limit",
    "label_value_length_limit",
    "metric_name_escaping_scheme",
    "metric_name_validation_scheme",
    "metric_relabel_configs",
    "native_histogram_bucket_limit",
    "native_histogram_min_bucket_factor",
    "no_proxy",
    "oauth2",
    "proxy_connect_header",
    "proxy_from_environment",
    "proxy_url",
    "relabel_configs",
    "sample_limit",
    "scrape_failure_log_file",
    "scrape_native_histograms",
    "target_limit",
    "tls_config",
    "track_timestamps_staleness",
];

/// Texts by name; numbers and booleans count as they are written, since every label value is text.
fn label_map(section: &mut Section<'_>, key: &'static str) -> Vec<(String, String)> {
    let Some(entries) = section.node(key).map(|node| node.entries()) else { return Vec::new() };
    let Some(entries) = entries else {
        section.problem(key, Problem::new(format!("`{key}` is no map of labels")).hint("write `{name: value}`"));
        return Vec::new();
    };
    let mut labels = Vec::new();
    for entry in entries {
        match entry.node.as_written() {
            Some(value) => labels.push((entry.key.clone(), value.to_owned())),
            None => section.problem(key, Problem::new(format!("the value of the label `{}` is no text", entry.key))),
        }
    }
    labels
}

fn parameters(job: &mut Section<'_>) -> Vec<(String, Vec<String>)> {
    let Some(node) = job.node("params") else { return Vec::new() };
    let values = |node: &crate::collector::node::Node| -> Option<Vec<String>> {
        let crate::collector::node::Value::List(items) = &node.value else { return None };
        items.iter().map(|item| item.as_written().map(str::to_owned)).collect()
    };
    let read: Option<Vec<_>> = node
        .entries()
        .and_then(|entries| entries.iter().map(|entry| Some((entry.key.clone(), values(&entry.node)?))).collect());
    let Some(mut parameters) = read else {
        job.problem("params", Problem::new("`params` is no map of lists of texts").hint("write `{name: [value]}`"));
        return Vec::new();
    };
    parameters.sort();
    parameters
}

/// Labels of a target: those of the configuration win over what is derived from the job.
fn target_labels(job: &str, address: &str, scheme: &str, path: &str, own: &[(String, String)]) -> Labels {
    let mut labels = Labels::default();
    for (name, value) in [("job", job), ("instance", address), ("__scheme__", scheme), ("__metrics_path__", path)] {
        labels.set(name, value);
    }
    for (name, value) in own.iter().filter(|(_, value)| !value.is_empty()) {
        labels.set(name, value);
    }
    labels
}

fn target_url(address: &str, labels: &Labels, parameters: &[(String, Vec<String>)]) -> Result<Url, Problem> {
    let scheme = labels.get("__scheme__");
    let no_address = |why: &str| {
        Problem::new(format!("`{address}` is no address of a target: {why}"))
            .hint("write `host:port`; scheme and path are keys of the job")
    };
    if address.is_empty() || address.contains(['/', '@', '?', '#']) {
        return Err(no_address("it is more than host and port"));
    }
    let mut url = Url::parse(&format!("{scheme}://{address}")).map_err(|error| no_address(&error.to_string()))?;
    url.set_path(labels.get("__metrics_path__"));
    if !parameters.is_empty() {
        let mut query = url.query_pairs_mut();
        for (name, values) in parameters {
            for value in values {
                query.append_pair(name, value);
            }
        }
    }
    Ok(url)
}

/// The formats that a target may answer with, in the words of `scrape_protocols`.
const PROTOCOLS: [(&str, &str, Dialect); 4] = [
    ("OpenMetricsText1.0.0", "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8", Dialect::OpenMetrics),
    ("OpenMetricsText0.0.1", "application/openmetrics-text;version=0.0.1", Dialect::OpenMetrics),
    ("PrometheusText1.0.0", "text/plain;version=1.0.0;escaping=allow-utf-8", Dialect::Text),
    ("PrometheusText0.0.4", "text/plain;version=0.0.4", Dialect::Text),
];

fn protocol(job: &Section<'_>, key: &str, name: &str) -> Option<(&'static str, Dialect)> {
    let found = PROTOCOLS.into_iter().find(|(known, _, _)| *known == name);
    if found.is_none() {
        let problem = Problem::new(format!("`{name}` is no scrape protocol of this collector"));
        job.problem(key, problem.suggest(name, PROTOCOLS.map(|(known, _, _)| known)));
    }
    found.map(|(_, media_type, dialect)| (media_type, dialect))
}

fn fallback(job: &mut Section<'_>) -> Option<Dialect> {
    let name = job.text("fallback_scrape_protocol")?;
    protocol(job, "fallback_scrape_protocol", &name).map(|(_, dialect)| dialect)
}

/// The formats with falling preference; the first one has the weight that it would have with every format allowed.
fn accept(job: &mut Section<'_>) -> String {
    let names = job.texts("scrape_protocols");
    let media_types: Vec<&str> = match names {
        Some(names) => names
            .iter()
            .filter_map(|name| protocol(job, "scrape_protocols", name).map(|(media_type, _)| media_type))
            .collect(),
        None => PROTOCOLS.map(|(_, media_type, _)| media_type).into(),
    };
    let all = media_types.into_iter().chain(["*/*"]);
    let weighted: Vec<String> = all.zip((1..=6).rev()).map(|(media_type, q)| format!("{media_type};q=0.{q}")).collect();
    weighted.join(",")
}

fn headers(job: &mut Section<'_>, timeout: Duration) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let encoding = if job.boolean("enable_compression").unwrap_or(true) { "gzip" } else { "identity" };
    let own = [
        ("accept", accept(job)),
        ("accept-encoding", encoding.to_owned()),
        ("user-agent", concat!("gymrun/", env!("CARGO_PKG_VERSION")).to_owned()),
        ("x-prometheus-scrape-timeout-seconds", format!("{}", timeout.as_secs_f64())),
    ];
    for (name, value) in own {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    let basic = job.section("basic_auth", |basic| {
        basic.unsupported(&["password_file", "password_ref", "username_file", "username_ref"]);
        let username = basic.text("username").unwrap_or_default();
        let password = basic.text("password").unwrap_or_default();
        format!("Basic {}", BASE64.encode(format!("{username}:{password}").as_bytes()))
    });
    let token = job.section("authorization", |authorization| {
        authorization.unsupported(&["credentials_file", "credentials_ref"]);
        let kind = authorization.text("type").filter(|kind| !kind.is_empty()).unwrap_or_else(|| "Bearer".into());
        let credentials = authorization.text("credentials").unwrap_or_default();
        format!("{kind} {credentials}")
    });
    if basic.is_some() && token.is_some() {
        job.problem("authorization", Problem::new("`basic_auth` and `authorization` exclude each other"));
    }
    if let Some(value) = basic.or(token) {
        match HeaderValue::try_from(value) {
            Ok(mut value) => {
                value.set_sensitive(true);
                headers.insert(reqwest::header::AUTHORIZATION, value);
            }
            // The value is a secret, so it is not shown.
            Err(_) => job.problem("authorization", Problem::new("the credentials hold a character that no header may")),
        }
    }
    own_headers(job, &mut headers);
    headers
}

/// `http_headers`: `{NAME: {values: [...]}}`.
fn own_headers(job: &mut Section<'_>, headers: &mut HeaderMap) {
    let Some(entries) = job.node("http_headers").and_then(|node| node.entries()) else { return };
    for entry in entries {
        let values = job.inner(entry, "http_headers", |header| {
            header.unsupported(&["files", "secrets"]);
            header.texts("values").unwrap_or_default()
        });
        let name = HeaderName::try_from(entry.key.as_str());
        for value in values.unwrap_or_default() {
            match (&name, HeaderValue::try_from(value)) {
                (Ok(name), Ok(value)) => drop(headers.append(name.clone(), value)),
                _ => job.problem("http_headers", Problem::new(format!("`{}` is no valid header", entry.key))),
            }
        }
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
