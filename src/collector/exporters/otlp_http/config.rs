//! What the exporter is told.

use std::path::PathBuf;
use std::time::Duration;

use data_encoding::BASE64;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::backoff::Retry;
use crate::collector::component::{EVERY_SIGNAL, Exporter, Factory, Signals};
use crate::collector::section::Section;
use crate::diag::Problem;

/// The kind.
pub const FACTORY: Factory<dyn Exporter> =
    Factory { names: &["otlp_http", "otlphttp"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

/// All of it.
pub(super) struct Settings {
    /// Where each signal goes, in the order of [`crate::otlp::Signal::ALL`]; `None` if nowhere.
    pub urls: [Option<Url>; 3],
    pub headers: HeaderMap,
    pub gzip: bool,
    pub json: bool,
    /// Of one try; zero is none.
    pub timeout: Duration,
    pub tls: Tls,
    /// `None`: each payload is sent while its source waits.
    pub queue: Option<Queue>,
    /// `None`: one try.
    pub retry: Option<Retry>,
}

/// How the endpoint's certificate is checked, and our own.
#[derive(Clone, Debug, Default)]
pub(super) struct Tls {
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub server_name: Option<String>,
    pub skip_verify: bool,
    pub with_system_pool: bool,
}

/// How many requests may wait and be under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// Requests that wait or are being sent.
    pub size: usize,
    /// Requests sent at once.
    pub consumers: usize,
    /// Whether a full queue makes its source wait, instead of refusing.
    pub block: bool,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Exporter>> {
    section.unsupported(&["auth", "proxy_url", "compression_params", "middlewares", "cookies", "profiles_endpoint"]);
    // Upstream does not check the keys of this section; a misspelt one is an error here.
    for key in
        ["read_buffer_size", "write_buffer_size", "max_idle_conns", "max_idle_conns_per_host", "max_conns_per_host"]
    {
        section.has(key);
    }
    for key in ["idle_conn_timeout", "disable_keep_alives", "http2_read_idle_timeout", "http2_ping_timeout"] {
        section.has(key);
    }
    let base = url(section, "endpoint");
    let urls = [
        signal_url(section, base.as_ref(), "traces_endpoint", "v1/traces"),
        signal_url(section, base.as_ref(), "metrics_endpoint", "v1/metrics"),
        signal_url(section, base.as_ref(), "logs_endpoint", "v1/logs"),
    ];
    let any_key = ["endpoint", "traces_endpoint", "metrics_endpoint", "logs_endpoint"].map(|key| section.has(key));
    let gzip = section.word("compression", &["gzip", "none", ""]).is_none_or(|word| word == "gzip");
    let json = section.word("encoding", &["proto", "json"]) == Some("json");
    let timeout = section.duration("timeout").unwrap_or(Duration::from_secs(30));
    let headers = headers(section);
    let tls = section.section("tls", tls).unwrap_or_default();
    let queue = if section.has("sending_queue") {
        section.section("sending_queue", queue).flatten()
    } else {
        Some(DEFAULT_QUEUE)
    };
    let retry = if section.has("retry_on_failure") {
        section.section("retry_on_failure", retry).flatten()
    } else {
        Some(Retry::default())
    };
    if !any_key.contains(&true) {
        section.problem_here(Problem::new("at least one endpoint is needed").hint("set `endpoint: https://...`"));
        return None;
    }
    Some(Box::new(Settings { urls, headers, gzip, json, timeout, tls, queue, retry }))
}

const DEFAULT_QUEUE: Queue = Queue { size: 1000, consumers: 10, block: false };

fn url(section: &mut Section<'_>, key: &'static str) -> Option<Url> {
    let text = section.text(key)?;
    let problem = match Url::parse(&text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            keep_secret(section, &url);
            return Some(url);
        }
        Ok(_) => Problem::new(format!("`{key}` begins neither with `http://` nor with `https://`")),
        Err(error) => Problem::new(format!("`{key}` is no URL: {error}")),
    };
    section.problem(key, problem.hint("write `https://host:port`"));
    None
}

/// What of a URL is secret: user and password, as they are written and as the header that is made of them, and the values
/// of its query.
fn keep_secret(section: &Section<'_>, url: &Url) {
    let (user, password) = (url.username(), url.password().unwrap_or_default());
    for part in [user, password] {
        section.secret(part);
        section.secret(&decoded(part));
    }
    if !user.is_empty() || !password.is_empty() {
        let pair = format!("{}:{}", decoded(user), decoded(password));
        section.secret(&pair);
        section.secret(&format!("Basic {}", BASE64.encode(pair.as_bytes())));
    }
    for (_, value) in url.query_pairs() {
        section.secret(&value);
    }
    for pair in url.query().unwrap_or_default().split('&') {
        section.secret(pair.split_once('=').map_or("", |(_, value)| value));
    }
}

/// The text of a part of a URL without its `%XX`.
fn decoded(part: &str) -> String {
    let mut pieces = part.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        if let Some(byte) = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            bytes.extend_from_slice(&piece.as_bytes()[2..]);
        } else {
            bytes.push(b'%');
            bytes.extend_from_slice(piece.as_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The signal's own endpoint as it stands, or its path below the base.
fn signal_url(section: &mut Section<'_>, base: Option<&Url>, key: &'static str, path: &str) -> Option<Url> {
    if section.text(key).is_some_and(|text| !text.is_empty()) {
        return url(section, key);
    }
    let mut url = base?.clone();
    let joined = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&joined);
    Some(url)
}

fn headers(section: &mut Section<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in section.text_map("headers").unwrap_or_default() {
        section.secret(&value);
        let key = HeaderName::try_from(name.as_str());
        match (key, HeaderValue::try_from(value)) {
            (Ok(key), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.insert(key, value);
            }
            (Err(_), _) => section.problem("headers", Problem::new(format!("`{name}` is no name of a header"))),
            // The value stays out of the message: it may be a secret.
            (_, Err(_)) => {
                let problem =
                    Problem::new(format!("the value of the header `{name}` has a character that no header may have"));
                section.problem("headers", problem.hint("look for a line end at the end of the variable or file"));
            }
        }
    }
    headers
}

fn tls(section: &mut Section<'_>) -> Tls {
    section.unsupported(&[
        "ca_pem",
        "cert_pem",
        "key_pem",
        "min_version",
        "max_version",
        "cipher_suites",
        "reload_interval",
        "curve_preferences",
        "tpm",
        "include_insecure_cipher_suites",
    ]);
    // For gRPC alone: over HTTP the scheme of the endpoint decides.
    section.boolean("insecure");
    let tls = Tls {
        ca_file: section.text("ca_file").map(PathBuf::from),
        cert_file: section.text("cert_file").map(PathBuf::from),
        key_file: section.text("key_file").map(PathBuf::from),
        server_name: section.text("server_name_override").filter(|name| !name.is_empty()),
        skip_verify: section.boolean("insecure_skip_verify").unwrap_or(false),
        with_system_pool: section.boolean("include_system_ca_certs_pool").unwrap_or(false),
    };
    if tls.cert_file.is_some() != tls.key_file.is_some() {
        section.problem_here(Problem::new("`cert_file` and `key_file` must be given together"));
    }
    tls
}

fn queue(section: &mut Section<'_>) -> Option<Queue> {
    section.unsupported(&["batch", "storage", "sizer"]);
    let enabled = section.boolean("enabled").unwrap_or(true);
    section.boolean("wait_for_result");
    let count = |n: i64| usize::try_from(n).unwrap_or(1);
    let size = section.integer("queue_size", 1).map_or(DEFAULT_QUEUE.size, count);
    let consumers = section.integer("num_consumers", 1).map_or(DEFAULT_QUEUE.consumers, count);
    let block = section.boolean("block_on_overflow").unwrap_or(false);
    enabled.then_some(Queue { size, consumers, block })
}

fn retry(section: &mut Section<'_>) -> Option<Retry> {
    let defaults = Retry::default();
    let enabled = section.boolean("enabled").unwrap_or(true);
    let retry = Retry {
        initial: section.duration("initial_interval").unwrap_or(defaults.initial),
        randomization: section.number("randomization_factor").unwrap_or(defaults.randomization),
        multiplier: section.number("multiplier").unwrap_or(defaults.multiplier),
        largest: section.duration("max_interval").unwrap_or(defaults.largest),
        longest: section.duration("max_elapsed_time").unwrap_or(defaults.longest),
    };
    if !(0.0..=1.0).contains(&retry.randomization) {
        section.problem("randomization_factor", Problem::new("`randomization_factor` is not between 0 and 1"));
    }
    if retry.multiplier < 0.0 || !retry.multiplier.is_finite() {
        section.problem("multiplier", Problem::new("`multiplier` is negative"));
    }
    enabled.then_some(retry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{problems_of, read_section};

    #[test]
    fn urls_are_joined_with_one_slash_and_own_ones_stand_as_they_are() {
        let yaml = "endpoint: http://x:1/base/\ntraces_endpoint: http://x:1/own/path\n";
        let mut seen = Vec::new();
        read_section(yaml, |section| {
            let base = url(section, "endpoint");
            for (key, path) in [("traces_endpoint", "v1/traces"), ("metrics_endpoint", "v1/metrics")] {
                seen.push(signal_url(section, base.as_ref(), key, path).expect("url").to_string());
            }
        });
        assert_eq!(seen, ["http://x:1/own/path", "http://x:1/base/v1/metrics"]);
    }

    #[test]
    fn wrong_values_are_named_but_header_values_are_not() {
        let yaml = "endpoint: host:4318\nheaders: {Authorization: \"Bearer s3cr3t\\n\"}\ncompression: snappy\n\
                    timeout: fast\nsending_queue: {queue_size: 0, batch: {}}\ntls: {cert_file: x}\n";
        let text = problems_of(yaml, |section| drop(read(section)));
        for word in ["endpoint", "Authorization", "snappy", "timeout", "queue_size", "batch", "key_file"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("s3cr3t"), "{text}");
    }

    #[test]
    fn what_an_endpoint_is_told_in_secret_is_kept_from_every_text() {
        let yaml = "endpoint: \"https://us%65r-one:p%40ss-word@x:1/?api=s3cr3t%21\"\n\
                    headers: {Authorization: Bearer t0ken-1, X-Tenant: tenant-1}\n";
        let findings = crate::collector::section::Findings::new("c.yaml");
        let node = crate::collector::load::read_text(yaml, &|_| None, &findings).expect("YAML");
        Section::read(&findings, &node, "", 1, |section| drop(read(section)));
        let secrets = findings.secrets.into_inner();
        let basic = BASE64.encode(b"user-one:p@ss-word");
        for secret in [
            "us%65r-one",
            "user-one",
            "p%40ss-word",
            "p@ss-word",
            "s3cr3t!",
            "s3cr3t%21",
            "t0ken-1",
            "tenant-1",
            &basic,
        ] {
            assert_eq!(secrets.mask(&format!("<{secret}>")), "<***>");
        }
    }
}
