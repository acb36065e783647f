//! What the exporter is told.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::header::HeaderMap;

use super::super::own_metrics::Target;
use super::super::sending::{Compression, Lanes, Queue, Retry, Tls, Way, read_headers};
use super::client;
use super::transport::Http;
use crate::collector::component::{Built, Context, EVERY_SIGNAL, Exporter, Factory, Signals};
use crate::collector::config::section::Section;
use crate::collector::text::percent;
use crate::diag::Problem;
use crate::otlp::Signal;

/// The kind.
pub const FACTORY: Factory<dyn Exporter> =
    Factory { names: &["otlp_http", "otlphttp"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

/// All of it.
pub(super) struct Settings {
    /// Where each signal goes, in the order of [`crate::otlp::Signal::ALL`]; `None` if nowhere.
    pub urls: [Option<Url>; 3],
    pub headers: HeaderMap,
    pub compression: Compression,
    pub json: bool,
    /// Of one try; zero is none.
    pub timeout: Duration,
    pub tls: Tls,
    /// `None`: each payload is sent while its source waits.
    pub queue: Option<Queue>,
    /// `None`: one try.
    pub retry: Option<Retry>,
}

const COMPRESSIONS: &[&str] = &["gzip", "zlib", "deflate", "snappy", "x-snappy-framed", "zstd", "lz4"];

fn read(section: &mut Section<'_>) -> Option<Box<dyn Exporter>> {
    // The reference accepts unknown keys here; what it knows and this exporter cannot do is refused.
    section.tolerate_unknown();
    section.unsupported(&["auth", "proxy_url", "middlewares", "cookies", "profiles_endpoint"]);
    // Pools and buffers: the library's own limits stand.
    for key in
        ["read_buffer_size", "write_buffer_size", "max_idle_conns", "max_idle_conns_per_host", "max_conns_per_host"]
    {
        section.integer(key, i64::MIN);
    }
    for key in ["idle_conn_timeout", "http2_read_idle_timeout", "http2_ping_timeout"] {
        section.duration(key);
    }
    for key in ["disable_keep_alives", "force_attempt_http2"] {
        section.boolean(key);
    }
    section.has("keepalive");
    let base = url(section, "endpoint");
    let urls = [
        signal_url(section, base.as_ref(), "traces_endpoint", "v1/traces"),
        signal_url(section, base.as_ref(), "metrics_endpoint", "v1/metrics"),
        signal_url(section, base.as_ref(), "logs_endpoint", "v1/logs"),
    ];
    let any_key = ["endpoint", "traces_endpoint", "metrics_endpoint", "logs_endpoint"].map(|key| section.has(key));
    let compression = Compression::read(section, COMPRESSIONS);
    let json = section.word("encoding", &["proto", "json"]) == Some("json");
    let timeout = section.duration("timeout").unwrap_or(Duration::from_secs(30));
    let headers = read_headers(section);
    let tls = Tls::read(section);
    let queue = Queue::read(section);
    let retry = Retry::read(section, true);
    if !any_key.contains(&true) {
        section.problem_here(Problem::new("at least one endpoint is needed").hint("set `endpoint: https://...`"));
        return None;
    }
    Some(Box::new(Settings { urls, headers, compression, json, timeout, tls, queue, retry }))
}

/// An exporter of metrics without a queue.
pub(in crate::collector::exporters) fn plain(target: Target) -> Box<dyn Exporter> {
    let Target { url, headers, compression, timeout, tls, retry } = target;
    Box::new(Settings {
        urls: [None, Some(url), None],
        headers,
        compression,
        json: false,
        timeout,
        tls,
        queue: None,
        retry,
    })
}

fn url(section: &mut Section<'_>, key: &'static str) -> Option<Url> {
    let text = section.text(key)?;
    section.secret_user(&text);
    // Without a host it is this machine.
    let whole = match text.split_once("://") {
        Some((scheme, rest)) if rest.starts_with(':') => format!("{scheme}://localhost{rest}"),
        _ => text,
    };
    let problem = match Url::parse(&whole) {
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
pub(in crate::collector::exporters) fn keep_secret(section: &Section<'_>, url: &Url) {
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
    String::from_utf8_lossy(&percent::decode(part)).into_owned()
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

impl Exporter for Settings {
    fn suits(&self, signal: Signal) -> Result<(), Problem> {
        if self.urls[signal as usize].is_some() {
            return Ok(());
        }
        let word = signal.name();
        let problem = Problem::new(format!("the exporter has no endpoint for {word}"));
        Err(problem.hint(format!("set its `endpoint` or `{word}_endpoint`")))
    }

    fn storage(&self) -> Option<&str> {
        self.queue.as_ref()?.storage.as_deref()
    }

    fn start(mut self: Box<Self>, context: Context, signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        let signals = signals.to_vec();
        Box::pin(async move {
            let clients = client::build(&mut self, &context.log)?;
            let mut ways = Vec::new();
            for signal in signals {
                let place = signal as usize;
                let (Some(url), Some(client)) = (self.urls[place].clone(), clients[place].clone()) else {
                    return Err(self.suits(signal).err().unwrap_or_else(|| Problem::new("there is no client")));
                };
                let transport = Arc::new(Http {
                    signal,
                    client,
                    url,
                    headers: self.headers.clone(),
                    compression: self.compression,
                    json: self.json,
                    timeout: self.timeout,
                    secrets: context.log.secrets().clone(),
                });
                ways.push(Way { signal, transport });
            }
            Lanes::open(ways, self.queue.as_ref(), self.retry, &context)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{problems_of, read_section};

    #[test]
    fn urls_are_joined_with_one_slash_and_own_ones_stand_as_they_are() {
        let yaml = "endpoint: http://:1/base/\ntraces_endpoint: http://x:1/own/path\n";
        let mut seen = Vec::new();
        read_section(yaml, |section| {
            let base = url(section, "endpoint");
            for (key, path) in [("traces_endpoint", "v1/traces"), ("metrics_endpoint", "v1/metrics")] {
                seen.push(signal_url(section, base.as_ref(), key, path).expect("url").to_string());
            }
        });
        assert_eq!(seen, ["http://x:1/own/path", "http://localhost:1/base/v1/metrics"]);
    }

    #[test]
    fn wrong_values_are_named_but_header_values_are_not() {
        let yaml = "endpoint: host:4318\nheaders: {Authorization: \"Bearer s3cr3t\\n\"}\ncompression: brotli\n\
                    timeout: fast\nsending_queue: {queue_size: 0}\ntls: {cert_file: x}\n";
        let text = problems_of(yaml, |section| drop(read(section)));
        for word in ["endpoint", "Authorization", "brotli", "timeout", "queue_size", "key_file"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("s3cr3t"), "{text}");
    }

    #[test]
    fn what_an_endpoint_is_told_in_secret_is_kept_from_every_text() {
        let yaml = "endpoint: \"https://us%65r-one:p%40ss-word@x:1/?api=s3cr3t%21\"\n\
                    headers: {Authorization: Bearer t0ken-1, X-Tenant: tenant-1}\n";
        let findings = crate::collector::config::section::Findings::new("c.yaml");
        let node = crate::collector::config::load::read_text(yaml, &|_| None, &findings).expect("YAML");
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
