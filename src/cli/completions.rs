//! `gymrun completions SHELL`.

use clap::CommandFactory as _;

use super::arguments::Cli;
use super::say::print;

/// Prints the completions of a shell.
pub(super) fn run(shell: clap_complete::Shell) -> i32 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gymrun", &mut script);
    print(&String::from_utf8_lossy(&script))
}
