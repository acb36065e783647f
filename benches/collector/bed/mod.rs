//! What the measurements and the soak share: collectors as processes, their configurations, senders and a sink.

mod config;
mod files;
mod grpc;
mod http;
mod load;
mod outlets;
mod process;
mod programs;
mod sink;
mod spans;

pub use config::Pipelines;
pub use load::{Load, Protocol};
pub use outlets::Outlets;
pub use process::Running;
pub use programs::Program;
pub use sink::Sink;
pub use spans::{Requests, SPANS_PER_REQUEST};
