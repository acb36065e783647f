//! What tests with real processes share: a program to misbehave, a way to run jobs, a small test runner.
//!
//! A test target with `harness = false` calls [`main`] from its own: the same executable is then the runner of its
//! cases, the children of its jobs (`child STEP...`), and the gymrun under test (`run JOB`), each in a process of its own.

pub mod cases;
pub mod child;
pub mod job;
pub mod outside;
pub mod plan;

/// The whole of a test target.
pub fn main(cases: &[cases::Case]) -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => child::run(&arguments[1..]),
        Some("run") => job::run(std::path::Path::new(&arguments[1])),
        _ => cases::run(cases, &arguments),
    }
}
