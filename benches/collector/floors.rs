//! What cannot be undercut: each thing that must be done, once, by the library's own functions in this process.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use gymrun::collector::receivers::prometheus::exposition::{Dialect, Parser};
use gymrun::otlp::{Payload, Signal};
use nix::time::{ClockId, clock_gettime};

use crate::bed::{Requests, SPANS_PER_REQUEST};

/// How often it is done; the least counts.
const ROUNDS: usize = 5;

/// CPU seconds for a million spans: validate, write as JSON into a file, encode, compress with gzip level 1. Receiving
/// comes on top (the discard handler).
pub fn spans(requests: &Requests) -> f64 {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let path = folder.path().join("floor");
    let pass = || {
        for body in &requests.bodies {
            let payload = Payload::decode(Signal::Traces, body.clone()).expect("good spans");
            write_out(&payload, &path);
        }
    };
    least(pass).as_secs_f64() * 1e6 / (requests.bodies.len() * SPANS_PER_REQUEST) as f64
}

/// CPU milliseconds for a page: parse it; write the points that it became as JSON into a file, encode and compress them.
pub fn scrape(page: &str, points: &[u8], path: &Path) -> f64 {
    let pass = || {
        let mut parser = Parser::new(page.as_bytes(), Dialect::Text);
        while parser.next_entry().expect("a good page").is_some() {}
        // Only the parser makes payloads of pages, so these points are decoded here, which is cheap.
        let payload = Payload::decode(Signal::Metrics, points.to_vec()).expect("good points");
        write_out(&payload, path);
    };
    least(pass).as_secs_f64() * 1e3
}

fn write_out(payload: &Payload, path: &Path) {
    let mut json = Vec::new();
    payload.write_json(&mut json);
    File::create(path).expect("creates").write_all(&json).expect("writes");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&payload.encode()).expect("compresses");
    std::hint::black_box(encoder.finish().expect("compresses"));
}

/// CPU time of the quickest of some rounds.
fn least(pass: impl Fn()) -> Duration {
    let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock"));
    let round = |_| {
        let begin = now();
        pass();
        now().saturating_sub(begin)
    };
    (0..ROUNDS).map(round).min().expect("some rounds")
}
