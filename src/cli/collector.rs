//! `gymrun collector --config FILE`: the embedded collector in the foreground.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::collector::load::load;
use crate::collector::log::Sink;
use crate::collector::run::{Surroundings, run as run_collector};
use crate::diag::{Problems, render};

/// What the subcommand takes.
#[derive(Args, Clone, Debug)]
pub struct CollectorArgs {
    /// The collector.yaml to run. The report `delivery.json` is written beside it at the end.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
}

/// Runs until SIGTERM or SIGINT; 0 after an ordered stop, 1 for every error of configuration, start or component, as the
/// reference collector.
#[must_use]
pub fn run(args: &CollectorArgs) -> i32 {
    let config = match load(&args.config) {
        Ok(config) => config,
        Err(problems) => return show(&problems),
    };
    // Two workers: a slow answer or a large batch does not keep the health check from answering.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return show(&crate::diag::Problem::new(format!("cannot start the runtime: {error}")).into()),
    };
    let directory = args.config.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sink: Sink = stderr_sink();
    let surroundings = Surroundings { sink, delivery: Some(directory.to_owned()) };
    let result = runtime.block_on(async {
        let told = Told::new()?;
        run_collector(config, surroundings, told.stop()).await
    });
    // What is still running at this point has been left behind on purpose.
    runtime.shutdown_background();
    match result {
        Ok(_) => 0,
        Err(problem) => show(&problem.into()),
    }
}

/// The signals that stop it.
struct Told {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Told {
    fn new() -> Result<Self, crate::diag::Problem> {
        let listen = |kind| {
            signal(kind).map_err(|error| crate::diag::Problem::new(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Ends at the first SIGTERM or SIGINT. The reference reloads its configuration at SIGHUP; this one goes on.
    async fn stop(mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {}
            }
        }
    }
}

/// Lines on stderr. A closed stderr must not stop the collector.
fn stderr_sink() -> Sink {
    let broken = AtomicBool::new(false);
    Arc::new(move |line: &str| {
        if !broken.load(Ordering::Relaxed)
            && std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes()).is_err()
        {
            broken.store(true, Ordering::Relaxed);
        }
    })
}

fn show(problems: &Problems) -> i32 {
    let sink = stderr_sink();
    for problem in problems {
        sink(render(problem).trim_end());
    }
    1
}
