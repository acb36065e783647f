//! What the extension is told.

use axum::http::HeaderMap;

use crate::collector::component::{Extension, Factory, Signals};
use crate::collector::config::section::Section;
use crate::collector::net::http_server::{Patience, response_headers};
use crate::diag::Problem;

/// The kind.
pub const FACTORY: Factory<dyn Extension> =
    Factory { names: &["health_check"], signals: Signals::None, configure: read };

/// Where and how it answers.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// `host:port`.
    pub endpoint: String,
    /// `/` answers every path.
    pub path: String,
    /// Own bodies; without them JSON.
    pub bodies: Option<Bodies>,
    /// Added to every answer.
    pub response_headers: HeaderMap,
    /// How long it waits for its clients.
    pub patience: Patience,
}

/// Own bodies.
#[derive(Clone, Debug)]
pub(super) struct Bodies {
    pub healthy: String,
    pub unhealthy: String,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Extension>> {
    section.unsupported(&["tls", "auth", "cors", "middlewares", "dialer", "http", "grpc", "component_health"]);
    if section.boolean("use_v2") == Some(true) {
        section.problem("use_v2", Problem::new("`use_v2` is not supported by this collector").hint("leave it out"));
    }
    let patience = Patience::read(section);
    // A request has no body here.
    section.integer("max_request_body_size", i64::MIN);
    section.texts("compression_algorithms");
    let response_headers = response_headers(section);
    let endpoint = section.endpoint("endpoint").unwrap_or_else(|| "localhost:13133".to_owned());
    let path = section.text("path").unwrap_or_else(|| "/".to_owned());
    let bodies = section.section("response_body", |bodies| {
        let healthy = bodies.text("healthy").unwrap_or_default();
        let unhealthy = bodies.text("unhealthy").unwrap_or_default();
        Bodies { healthy, unhealthy }
    });
    // An accepted key without effect, as in the reference.
    section.has("check_collector_pipeline");
    if !path.starts_with('/') {
        section.problem("path", Problem::new("`path` must begin with `/`"));
        return None;
    }
    Some(Box::new(Settings { endpoint, path, bodies, response_headers, patience }))
}
