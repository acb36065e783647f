//! The `otlp_grpc` exporter: payloads to an endpoint, by gRPC.
//!
//! `config` reads what it is told, `channel` makes the connection, `transport` is one call, `answer` says what a status
//! means; queue, batches and retries are [`super::sending`]'s.

mod answer;
mod channel;
mod config;
mod transport;

pub use config::FACTORY;
