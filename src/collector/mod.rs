//! The embedded collector: the same collector.yaml as otelcol, as a child process.
//!
//! The text of the configuration is read and expanded ([`config`]), each component reads its own [`config::section`], and the
//! graph of `service.pipelines` is built from [`component`]s. Data flows as [`crate::otlp::Payload`].

pub mod component;
pub mod config;
pub mod connectors;
pub mod controls;
pub mod counters;
pub mod deadline;
pub mod delivery;
mod entrance;
pub mod exporters;
pub mod extensions;
pub mod flush;
#[doc(hidden)]
pub mod fuzzing;
pub mod graph;
#[cfg(test)]
mod graph_tests;
mod items;
#[cfg(test)]
mod key_tests;
pub mod log;
pub mod log_writer;
mod net;
mod ottl;
mod owed;
pub mod own;
pub mod processors;
pub mod receivers;
pub mod refusal;
pub mod run;
pub mod storage;
pub mod tasks;
#[cfg(test)]
mod testing;
mod text;
