//! The binary `gymrun`: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Exit codes of processes are eight bits wide.
    ExitCode::from(u8::try_from(gymrun::cli::main()).unwrap_or(u8::MAX))
}
