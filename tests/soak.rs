//! The collector at half of what it can take, for a while: every span that it accepts comes out on both ends, and its
//! memory does not grow. `GYMRUN_SOAK_SECONDS` says for how long; `cargo bench --bench collector -- soak` is the same in
//! a release build.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests start the programs under test themselves, and this one says how much it did"
)]

#[path = "../benches/collector/bed/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the benches use the rest")]
mod bed;
#[path = "../benches/collector/soak.rs"]
#[allow(dead_code, reason = "the bench prints the rest")]
mod soak;

use std::time::Duration;

/// What an allocator may keep more at one time than at another.
const SLACK: u64 = 8 << 20;

#[test]
fn nothing_is_lost_and_memory_does_not_grow() {
    let seconds = std::env::var("GYMRUN_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(4, |text| text.parse().expect("GYMRUN_SOAK_SECONDS is a number"));
    let soaked = soak::run(Duration::from_secs(seconds));
    let asked = soaked.maximum / 2.0;
    println!("{} spans; asked for {asked:.0} a second, {:.0} went in", soaked.spans, soaked.rate);
    // A collector (or a sender) that stands still loses nothing either.
    assert!(soaked.rate > asked / 10.0, "{:.0} spans a second went in, {asked:.0} were to", soaked.rate);
    let (early, late) = soaked.memory();
    assert!(late <= early + early / 10 + SLACK, "memory grew from {early} to {late} bytes");
}
