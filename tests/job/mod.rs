//! What tests of whole jobs share: running the real binary under a watch, and reading what it left behind.
#![allow(
    dead_code,
    unused_imports,
    clippy::print_stdout,
    reason = "each test binary uses a part; one that is skipped says so"
)]

mod directory;
mod run;
mod sink;
mod telemetry;

pub use directory::JobDirectory;
pub use run::{Finished, Job, component, finish, gymrun, repository};
pub use sink::Sink;
pub use telemetry::{Metric, Span, Telemetry, attributes};
