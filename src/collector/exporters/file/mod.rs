//! The `file` exporter: each payload as one message of a file, by default a line of OTLP/JSON.

mod backlog;
mod config;
mod form;
mod groups;
mod output;
mod place;
mod writer;

pub use config::FACTORY;
pub use place::OpenedFiles;
