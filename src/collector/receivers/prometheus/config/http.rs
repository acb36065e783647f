//! What a job says about its requests: who asks, with which headers, over which TLS.

use std::path::{Path, PathBuf};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::super::scrape::{Authorization, ClientSettings, Request, Secret, Tls, header_value};
use super::scalars;
use crate::collector::config::section::Section;
use crate::collector::net::tls::Version;
use crate::diag::Problem;

/// Keys of a job about proxies and token services, none of which is supported.
pub const UNSUPPORTED: [&str; 5] =
    ["no_proxy", "oauth2", "proxy_connect_header", "proxy_from_environment", "proxy_url"];

/// Headers that the request has anyway, or that mean something else than themselves.
const RESERVED: [&str; 18] = [
    "authorization",
    "host",
    "content-encoding",
    "content-length",
    "content-type",
    "user-agent",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "www-authenticate",
    "accept-encoding",
    "x-prometheus-remote-write-version",
    "x-prometheus-remote-read-version",
    "x-prometheus-scrape-timeout-seconds",
    "x-amz-date",
    "x-amz-security-token",
    "x-amz-content-sha256",
];

/// Reads the requests of a job; `accept` is the header of that name.
pub fn request(job: &mut Section<'_>, accept: String, body_limit: Option<usize>) -> Request {
    let mut headers = HeaderMap::new();
    let encoding = if job.boolean("enable_compression").unwrap_or(true) { "gzip" } else { "identity" };
    let own = [
        ("accept", accept),
        ("accept-encoding", encoding.to_owned()),
        ("user-agent", concat!("gymrun/", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    for (name, value) in own {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    Request {
        headers,
        own_headers: own_headers(job),
        authorization: authorization(job),
        client: ClientSettings {
            follow_redirects: job.boolean("follow_redirects").unwrap_or(true),
            http2: job.boolean("enable_http2").unwrap_or(true),
            tls: job.section("tls_config", tls).unwrap_or_default(),
            named_host: None,
        },
        body_limit,
    }
}

fn authorization(job: &mut Section<'_>) -> Option<Authorization> {
    let basic = job.section("basic_auth", |basic| {
        basic.unsupported(&["password_ref", "username_ref"]);
        Authorization::Basic {
            username: secret(basic, "username", "username_file"),
            password: secret(basic, "password", "password_file"),
        }
    });
    let other = job.section("authorization", |section| {
        section.unsupported(&["credentials_ref"]);
        let kind = scalars::text(section, "type").map(|kind| kind.trim().to_owned()).unwrap_or_default();
        if kind.eq_ignore_ascii_case("basic") {
            let problem = Problem::new("`basic` is no type of `authorization`");
            section.problem("type", problem.hint("write `basic_auth: {username: ..., password: ...}`"));
        }
        let credentials = secret(section, "credentials", "credentials_file");
        if let Some(Secret::File(path)) = &credentials {
            must_exist(section, "credentials_file", path);
        }
        Authorization::Other { kind: if kind.is_empty() { "Bearer".into() } else { kind }, credentials }
    });
    // The older spelling.
    let bearer = secret(job, "bearer_token", "bearer_token_file");
    if let Some(Secret::File(path)) = &bearer {
        must_exist(job, "bearer_token_file", path);
    }
    let bearer = bearer.map(|token| Authorization::Other { kind: "Bearer".into(), credentials: Some(token) });
    if [basic.is_some(), other.is_some(), bearer.is_some()].iter().filter(|there| **there).count() > 1 {
        let key = if other.is_some() { "authorization" } else { "basic_auth" };
        let message = "only one of `basic_auth`, `authorization` and `bearer_token` may be there";
        job.problem(key, Problem::new(message));
    }
    let found = basic.or(other).or(bearer);
    let inline = |secret: &Option<Secret>| !matches!(secret, Some(Secret::File(_)));
    let checkable = match &found {
        Some(Authorization::Other { credentials, .. }) => inline(credentials),
        Some(Authorization::Basic { username, password }) => inline(username) && inline(password),
        None => false,
    };
    if let (Some(authorization), true) = (&found, checkable) {
        if let Ok(header) = authorization.header() {
            job.secret(&String::from_utf8_lossy(header.as_bytes()));
        } else {
            let problem = Problem::new("the credentials have a character that no header may have");
            job.problem("authorization", problem.hint("look for a line end at the end of the variable"));
        }
    }
    found
}

/// A secret that may stand in a file, at one of two keys.
fn secret(section: &mut Section<'_>, key: &'static str, file: &'static str) -> Option<Secret> {
    let inline = scalars::filled(section, key);
    let path = scalars::filled(section, file).map(PathBuf::from);
    if inline.is_some() && path.is_some() {
        section.problem(file, Problem::new(format!("only one of `{key}` and `{file}` may be there")));
    }
    section.secret(inline.as_deref().unwrap_or_default());
    inline.map(Secret::Inline).or(path.map(Secret::File))
}

fn must_exist(section: &Section<'_>, key: &str, path: &Path) {
    if let Err(error) = std::fs::metadata(path) {
        section.problem(key, Problem::new(format!("cannot read {}: {error}", path.display())));
    }
}

/// `http_headers`: `{NAME: {values: [...], secrets: [...], files: [...]}}`.
fn own_headers(job: &mut Section<'_>) -> Vec<(HeaderName, Secret)> {
    const KEY: &str = "http_headers";
    let mut headers = Vec::new();
    let Some(entries) = job.node(KEY).and_then(|node| node.entries()) else { return headers };
    for entry in entries {
        let secrets = job.inner(entry, KEY, |header| {
            let mut list: Vec<Secret> = Vec::new();
            for key in ["values", "secrets"] {
                list.extend(scalars::texts(header, key).unwrap_or_default().into_iter().map(Secret::Inline));
            }
            let files = scalars::texts(header, "files").unwrap_or_default();
            list.extend(files.into_iter().map(|path| Secret::File(path.into())));
            list
        });
        if RESERVED.iter().any(|reserved| entry.key.eq_ignore_ascii_case(reserved)) {
            job.problem_at(KEY, entry.line, Problem::new(format!("the header `{}` may not be set", entry.key)));
        }
        let Ok(name) = HeaderName::try_from(entry.key.as_str()) else {
            job.problem_at(KEY, entry.line, Problem::new(format!("`{}` is no name of a header", entry.key)));
            continue;
        };
        for secret in secrets.unwrap_or_default() {
            if let Secret::Inline(text) = &secret {
                job.secret(text);
                if let Err(why) = header_value(text) {
                    job.problem_at(KEY, entry.line, Problem::new(format!("`{}`: {why}", entry.key)));
                }
            }
            headers.push((name.clone(), secret));
        }
    }
    headers
}

fn tls(section: &mut Section<'_>) -> Tls {
    section.unsupported(&["ca_ref", "cert_ref", "key_ref"]);
    let certificate = secret(section, "cert", "cert_file");
    let key = secret(section, "key", "key_file");
    if certificate.is_some() != key.is_some() {
        section.problem_here(Problem::new("a certificate and its key must be given together"));
    }
    let tls = Tls {
        authority: secret(section, "ca", "ca_file"),
        identity: certificate.zip(key),
        server_name: scalars::filled(section, "server_name"),
        skip_verify: section.boolean("insecure_skip_verify").unwrap_or(false),
        oldest: version(section, "min_version"),
        newest: version(section, "max_version"),
    };
    Version::check(section, tls.oldest, tls.newest);
    // The versions have been checked.
    match (Tls { oldest: None, newest: None, ..tls.clone() }).check() {
        Ok(None) => {}
        Ok(Some(warning)) => {
            let key = if matches!(tls.authority, Some(Secret::Inline(_))) { "ca" } else { "ca_file" };
            section.problem(key, Problem::warning(warning));
        }
        Err(why) => section.problem_here(Problem::new(format!("TLS cannot be set up: {why}"))),
    }
    tls
}

fn version(section: &mut Section<'_>, key: &'static str) -> Option<Version> {
    const NAMES: [&str; 4] = ["TLS10", "TLS11", "TLS12", "TLS13"];
    let word = scalars::word(section, key, &NAMES)?;
    Version::named(word, NAMES)
}
