//! The `otlp_http` exporter: payloads to an endpoint, by POST, with a queue and retries.
//!
//! `config` reads what it is told, `client` makes the HTTP client, `answer` says what an answer means, `sender` tries
//! until it is decided, `exporter` has the queue and the drain. Header values are secrets: they are marked as such and
//! never formatted.

mod answer;
mod backoff;
mod client;
mod config;
mod exporter;
mod sender;

pub use config::FACTORY;
