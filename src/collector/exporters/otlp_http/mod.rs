//! The `otlp_http` exporter: payloads to an endpoint, by POST.
//!
//! `config` reads what it is told, `client` makes the HTTP client, `transport` is one try, `answer` says what an answer
//! means; queue, batches and retries are [`super::sending`]'s. Header values are secrets: they are marked as such and never
//! formatted.

mod answer;
mod client;
mod config;
mod transport;

pub(in crate::collector::exporters) use answer::read as read_answer;
pub use config::FACTORY;
pub(super) use config::{keep_secret, plain};
