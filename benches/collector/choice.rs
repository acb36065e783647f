//! What the command lines of all benches have: the parts to measure.

use clap::{Args, ValueEnum};

/// The parts that are wanted.
#[derive(Args)]
pub struct Choice<P: ValueEnum + Send + Sync + 'static> {
    /// Parts to measure, separated by commas [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<P>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

impl<P: ValueEnum + Send + Sync + PartialEq> Choice<P> {
    /// Whether this part is wanted.
    pub fn has(&self, part: &P) -> bool {
        self.only.is_empty() || self.only.contains(part)
    }
}
