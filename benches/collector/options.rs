//! The command line.

use clap::{Parser, Subcommand, ValueEnum};

use crate::bed::{Program, SPANS_PER_REQUEST};
use crate::choice::Choice;
use crate::table::Table;
use crate::{cost, idle, scrape, start, throughput};

/// Measures gymrun's collector beside otelcol and Rotel and prints one table in Markdown.
#[derive(Parser)]
pub struct Options {
    /// Fewer spans and repetitions: for a look while something is being changed.
    #[arg(long)]
    quick: bool,
    /// Repetitions, of which the medians are taken [default: 5; quick: 3].
    #[arg(long)]
    repetitions: Option<usize>,
    /// Spans of one repetition [default: 200000; quick: 100000].
    #[arg(long)]
    spans: Option<u64>,
    #[command(flatten)]
    pub parts: Choice<Part>,
    /// Programs to measure, separated by commas [default: all that are there].
    #[arg(long, value_enum, value_delimiter = ',')]
    programs: Vec<Peer>,
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What else it does.
#[derive(Subcommand)]
pub enum Action {
    /// Serves HTTP and drops every body: the floor of receiving.
    #[command(hide = true)]
    Discard {
        #[arg(long)]
        port: u16,
    },
    /// Sends half of what it can take, for long: nothing is lost, memory does not grow.
    Soak {
        #[arg(long, default_value_t = 600)]
        seconds: u64,
    },
}

/// A part of the table.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// CPU and memory for spans.
    Cost,
    /// Spans a second on one core.
    Throughput,
    /// CPU for a scrape.
    Scrape,
    /// Memory and CPU without anything to do.
    Idle,
    /// Time to be ready, and to be gone.
    Start,
}

/// In the order of the table.
pub const PARTS: [Part; 5] = [Part::Cost, Part::Throughput, Part::Scrape, Part::Idle, Part::Start];

impl Part {
    /// Measures it and adds its rows.
    pub fn measure(self, options: &Options, table: &mut Table) {
        match self {
            Self::Cost => cost::measure(options, table),
            Self::Throughput => throughput::measure(options, table),
            Self::Scrape => scrape::measure(options, table),
            Self::Idle => idle::measure(options, table),
            Self::Start => start::measure(options, table),
        }
    }
}

/// A program as it is named in options.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Peer {
    Gymrun,
    Otelcol,
    Rotel,
    Discard,
}

impl Options {
    /// How often each thing is measured.
    pub fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 3 } else { 5 }).max(1)
    }

    /// Requests of one repetition.
    pub fn requests(&self) -> u64 {
        let spans = self.spans.unwrap_or(if self.quick { 100_000 } else { 200_000 });
        spans.div_ceil(SPANS_PER_REQUEST as u64).max(1)
    }

    /// How long nothing is done.
    pub fn idle_seconds(&self) -> u64 {
        if self.quick { 5 } else { 20 }
    }

    /// Those of these programs that are wanted and there.
    pub fn programs(&self, programs: &[Program]) -> Vec<Program> {
        let wanted = |program: &Program| {
            let peer = match program {
                Program::Gymrun => Peer::Gymrun,
                Program::Otelcol => Peer::Otelcol,
                Program::Rotel => Peer::Rotel,
                Program::Discard => Peer::Discard,
            };
            (self.programs.is_empty() || self.programs.contains(&peer)) && program.path().is_some()
        };
        programs.iter().copied().filter(wanted).collect()
    }
}
