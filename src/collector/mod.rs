//! The embedded collector: the same collector.yaml as otelcol, as a child process.
//!
//! The text of the configuration is read and expanded ([`node`]), each component reads its own [`section`], and the
//! graph of `service.pipelines` is built from [`component`]s. Data flows as [`crate::otlp::Payload`].

mod accept;
mod addresses;
pub mod component;
pub mod config;
pub mod connectors;
pub mod controls;
pub mod counters;
pub mod deadline;
pub mod delivery;
pub mod duration;
mod encoding;
mod entrance;
pub mod expand;
pub mod exporters;
pub mod extensions;
pub mod flush;
#[doc(hidden)]
pub mod fuzzing;
mod glob;
mod go_format;
mod go_number;
pub mod graph;
#[cfg(test)]
mod graph_tests;
mod grpc_message;
mod host;
mod http_server;
#[cfg(test)]
mod key_tests;
mod letter_case;
pub mod listen;
pub mod load;
pub mod log;
pub mod node;
mod ottl;
mod owed;
pub mod own;
mod pattern;
mod percent;
pub mod pipelines;
mod portions;
pub mod processors;
pub mod receivers;
pub mod refusal;
pub mod run;
pub mod scalar;
pub mod secrets;
pub mod section;
pub mod service;
pub mod source;
pub mod storage;
#[cfg(test)]
mod testing;
mod tls;
mod trace_state;
mod value_text;
