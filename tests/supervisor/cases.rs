//! Runs cases side by side and says how they ended, in the words of the standard harness.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A name and a test.
pub type Case = (&'static str, fn());

const SIDE_BY_SIDE: usize = 4;

/// With `GYMRUN_TEST_BUSY` one core has something else to do meanwhile, until the process ends.
fn keep_busy() {
    if std::env::var_os("GYMRUN_TEST_BUSY").is_some() {
        std::thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
}

pub fn run(cases: &[Case], arguments: &[String]) -> ExitCode {
    let exact = arguments.iter().any(|a| a == "--exact");
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let wanted: Vec<&Case> = cases
        .iter()
        .filter(|(name, _)| {
            filters.is_empty() || filters.iter().any(|f| if exact { *name == **f } else { name.contains(f.as_str()) })
        })
        .collect();
    if arguments.iter().any(|a| a == "--list") {
        wanted.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", wanted.len());
    keep_busy();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((name, test)) = wanted.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let start = std::time::Instant::now();
                    let ok = catch_unwind(AssertUnwindSafe(test)).is_ok();
                    println!(
                        "test {name} ... {} ({:.1} s)",
                        if ok { "ok" } else { "FAILED" },
                        start.elapsed().as_secs_f64()
                    );
                    if !ok {
                        failed.lock().expect("no test panics with the lock held").push(*name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("all threads are over");
    println!(
        "\ntest result: {}. {} passed; {} failed",
        if failed.is_empty() { "ok" } else { "FAILED" },
        wanted.len() - failed.len(),
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
