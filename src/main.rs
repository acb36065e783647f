//! The binary `gymrun`: everything is in the library.

use clap::{Parser, Subcommand};
use gymrun::cli::collector::{self, CollectorArgs};

#[derive(Parser)]
#[command(name = "gymrun", version)]
struct Gymrun {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the embedded collector.
    Collector(CollectorArgs),
}

#[expect(clippy::disallowed_methods, reason = "the one place where the exit code is set")]
fn main() {
    let code = match Gymrun::parse().command {
        Command::Collector(args) => collector::run(&args),
    };
    std::process::exit(code);
}
