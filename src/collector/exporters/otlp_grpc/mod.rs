//! The `otlp_grpc` exporter: payloads to an endpoint, by gRPC.
//!
//! `config` reads what it is told, `channel` makes the connection, `transport` is one call, `answer` says what a status
//! means; queue, batches and retries are [`super::sending`]'s.

mod answer;
mod channel;
mod config;
mod transport;

pub(in crate::collector::exporters) use answer::{Message, read as read_answer};
pub use config::FACTORY;
pub(super) use config::plain;
