//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::choice::Choice;

/// Measures gymrun's sampler beside Python's and prints one table in Markdown.
#[derive(Parser)]
pub struct Options {
    /// Repetitions, of which the medians are taken.
    #[arg(long, default_value_t = 8)]
    pub repetitions: usize,
    #[command(flatten)]
    pub parts: Choice<Part>,
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What else it is, as a process of its own.
#[derive(Subcommand)]
pub enum Action {
    /// A process of a tree.
    #[command(hide = true)]
    Node(Node),
    /// A process that maps and unmaps memory without pause and says how long that takes.
    #[command(hide = true)]
    Target {
        /// What it holds.
        mebibytes: usize,
    },
}

/// A process of a tree in which each has `fan_out` children.
#[derive(Args, Clone, Copy)]
pub struct Node {
    /// Processes in the tree.
    pub count: usize,
    pub fan_out: usize,
    /// Anonymous memory of each.
    pub kibibytes: usize,
    /// Which one it is.
    pub index: usize,
}

/// A part of the table.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// A whole exact sample.
    Cost,
    /// Cost for a process with more of them.
    Scale,
    /// A running gymrun at the default schedule.
    Job,
    /// What the sampled process feels.
    Stall,
}
