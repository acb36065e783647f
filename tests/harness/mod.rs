//! What tests of the program share, one file for each noun: the binary, a program that a test starts, a job, a collector,
//! an endpoint, the files of a job directory, the processes of the machine, ports, components, and waiting.
//!
//! A test that waits does so for a condition, with one deadline for all ([`DEADLINE`]). What a test has started ends with it.
#![allow(
    dead_code,
    unused_imports,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "each test binary uses a part; programs are started from outside; a test that is skipped says so"
)]

mod collector;
mod component;
mod directory;
mod gymrun;
mod job;
mod lines;
mod place;
mod ports;
pub mod processes;
mod program;
mod raw;
mod sink;
mod small_disk;
mod telemetry;
mod wait;

pub use collector::Collector;
pub use component::{component, python, skip};
pub use directory::JobDirectory;
pub use gymrun::{binary, gymrun, repository};
pub use job::{Job, Watched};
pub use lines::{json_lines, json_lines_so_far, text_so_far};
pub use place::Place;
pub use ports::{free_pair, free_port, free_ports, is_free};
pub use program::{Ended, Program, Running, limit_files, tell_beforehand};
pub use raw::Raw;
pub use sink::{Answer, GOOD, Seen, Sink};
pub use small_disk::small_disk;
pub use telemetry::{Metric, Span, Telemetry, attributes};
pub use wait::{DEADLINE, eventually, eventually_async};
