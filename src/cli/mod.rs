//! The command line: one file per subcommand; the only place where modules meet.

mod arguments;
mod check;
pub mod collector;
mod completions;
mod logs;
mod plan;
mod recorder;
mod run;
mod say;

use clap::Parser as _;

use arguments::{Cli, Command};

/// Parses the command line, does what it says, and gives gymrun's exit code.
#[must_use]
pub fn main() -> i32 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout with 0, wrong usage to stderr with 2.
            let _ = error.print();
            return error.exit_code();
        }
    };
    match cli.command {
        Some(Command::Run(arguments)) => run::run(&arguments),
        Some(Command::Plan(arguments)) => plan::run(&arguments),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Logs(arguments)) => logs::run(&arguments),
        Some(Command::Collector(arguments)) => collector::run(&arguments),
        Some(Command::Completions { shell }) => completions::run(shell),
        None => run::run(&cli.run),
    }
}
