//! What the measurements and the soak share: collectors as processes, their configurations, senders and a sink.

mod config;
mod files;
mod grpc;
mod http;
mod load;
mod process;
mod programs;
mod sink;
mod spans;

pub use config::Pipelines;
pub use files::SpanFile;
pub use load::{CONNECTIONS, Load, Protocol, Sent};
pub use process::{Memory, PATIENCE, Running, until};
pub use programs::Program;
pub use sink::Sink;
pub use spans::{Requests, SPANS_PER_REQUEST};
