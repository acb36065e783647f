//! Where spans come out of the full pipelines: the sink and the file.

use std::time::{Duration, Instant};

use super::files::SpanFile;
use super::process::Running;
use super::sink::Sink;

/// Both ends of one collector.
pub struct Outlets<'a> {
    sink: &'a Sink,
    running: &'a Running,
    file: SpanFile,
}

/// Spans that came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub at_sink: u64,
    pub in_file: u64,
}

/// Nothing came for so long: nothing will.
const SILENCE: Duration = Duration::from_secs(15);

impl<'a> Outlets<'a> {
    pub fn new(sink: &'a Sink, running: &'a Running) -> Self {
        Self { sink, running, file: SpanFile::new(running.path("traces.jsonl")) }
    }

    /// What came out so far.
    pub fn arrived(&mut self) -> Arrived {
        Arrived { at_sink: self.sink.totals().spans, in_file: self.file.spans() }
    }

    /// Waits until this many spans came out on both ends; fails if fewer or more do.
    pub fn expect_all(&mut self, spans: u64) {
        let mut before = self.arrived();
        let mut changed = Instant::now();
        while before.at_sink < spans || before.in_file < spans {
            assert!(changed.elapsed() < SILENCE, "of {spans} spans came only {before:?}: {}", self.running.log());
            std::thread::sleep(Duration::from_millis(20));
            let now = self.arrived();
            if now != before {
                (before, changed) = (now, Instant::now());
            }
        }
        assert_eq!(before, Arrived { at_sink: spans, in_file: spans }, "more came out than went in");
    }
}
