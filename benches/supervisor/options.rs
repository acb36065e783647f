//! The command line.

use clap::{Parser, ValueEnum};

use crate::bed::Kit;
use crate::choice::Choice;
use crate::{capture, idle, plan, readiness, scale, start_stop};

/// Measures gymrun beside other supervisors and prints tables in Markdown.
#[derive(Parser)]
pub struct Options {
    /// Fewer repetitions, shorter times, less data: for a look while something is being changed.
    #[arg(long)]
    pub quick: bool,
    /// Repetitions, of which medians and minima are taken [default: 8; quick: 3].
    #[arg(long)]
    repetitions: Option<usize>,
    #[command(flatten)]
    pub parts: Choice<Part>,
    /// Leave out the peers that are neither a floor nor part of a goal.
    #[arg(long)]
    pub no_peers: bool,
}

/// What is measured together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Exec to all started, stop to all gone.
    Start,
    /// Memory, CPU and wake-ups without anything to do.
    Idle,
    /// How soon and at what cost readiness is noticed, and how soon a death.
    Readiness,
    /// CPU for a gibibyte of log lines.
    Capture,
    /// CPU of `gymrun plan`.
    Plan,
    /// 10, 100 and 1000 children.
    Scale,
}

/// In the order of the tables.
pub const PARTS: [Part; 6] = [Part::Start, Part::Idle, Part::Readiness, Part::Capture, Part::Plan, Part::Scale];

impl Part {
    /// Measures it and prints its table.
    pub fn measure(self, options: &Options, kit: &Kit) {
        match self {
            Self::Start => start_stop::measure(options, kit),
            Self::Idle => idle::measure(options, kit),
            Self::Readiness => readiness::measure(options, kit),
            Self::Capture => capture::measure(options, kit),
            Self::Plan => plan::measure(options, kit),
            Self::Scale => scale::measure(options, kit),
        }
    }
}

impl Options {
    /// How often each thing is measured.
    pub fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 3 } else { 8 }).max(1)
    }
}
