//! Keys that every HTTP server of the reference has, for receivers and extensions alike.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::section::Section;
use crate::diag::Problem;

/// Accepts the keys that change nothing that can be seen: how long idle and slow connections are kept (the library's own
/// limits stand), and a client's metadata, which nobody here looks at.
pub fn accept_tuning(section: &mut Section<'_>) {
    for key in ["read_timeout", "read_header_timeout", "write_timeout", "idle_timeout"] {
        section.duration(key);
    }
    section.boolean("keep_alives_enabled");
    section.section("keepalive", |keepalive| {
        keepalive.boolean("enabled");
        keepalive.duration("idle_timeout");
    });
    section.boolean("include_metadata");
    section.word("transport", &["tcp", "tcp4", "tcp6"]);
}

/// `response_headers`: what is added to every answer.
pub fn response_headers(section: &mut Section<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in section.text_map("response_headers").unwrap_or_default() {
        match (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                headers.insert(name, value);
            }
            _ => section.problem("response_headers", Problem::new(format!("`{name}` and its value are no header"))),
        }
    }
    headers
}
