//! `gymrun collector`: the embedded collector in the foreground, its configuration checked, its stored data sent.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use clap::{Args, Subcommand};
use futures_util::future::OptionFuture;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::say::print;
use crate::collector::config::Config;
use crate::collector::config::load::{Texts, load};
use crate::collector::config::source::Source;
use crate::collector::flush::flush;
use crate::collector::log::Sink;
use crate::collector::log_writer::{finish, stderr};
use crate::collector::run::{Failure, Kept, Shed, Surroundings, run as run_collector};
use crate::diag::{Problem, Problems, counted, render};
use crate::process::{
    OsSignals, Told, in_words, keep_a_blocking_thread, set_up_allocator, shed_free_memory, shed_memory,
    take_all_descriptors,
};

/// What the subcommand takes.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct CollectorArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    sources: Sources,
}

/// Where the configuration is.
#[derive(Args, Clone, Debug)]
struct Sources {
    /// The collector.yaml; may be given again: maps are joined and the later one wins. Also `env:NAME` and `yaml:TEXT`.
    /// The report `delivery.json` is written at the end, beside the first file (without one, as with a pipe: in the working
    /// directory).
    #[arg(long, value_name = "FILE", required = true)]
    config: Vec<String>,
    /// One value over what the files say, such as `exporters.debug.verbosity=detailed`; may be given again. The value is
    /// YAML; maps are joined, anything else is replaced. `::` separates as `.` does.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<Source>,
}

impl Sources {
    /// In the order in which they are joined.
    fn all(&self) -> Vec<Source> {
        self.config.iter().map(|name| name.as_str().into()).chain(self.set.iter().cloned()).collect()
    }
}

/// `--set` as a source.
fn setting(text: &str) -> Result<Source, String> {
    let (key, value) = text.split_once('=').ok_or("there is no `=` in it")?;
    Ok(Source::Setting(key.trim().to_owned(), value.trim().to_owned()))
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Say everything that is wrong with a configuration, and start nothing.
    Validate(Sources),
    /// Send what the collector of a job could not send and stored.
    Flush {
        /// The directory of the job.
        #[arg(value_name = "JOBDIR")]
        directory: PathBuf,
        /// How long it may take, at most a day.
        #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=86_400))]
        timeout: u64,
    },
}

/// Runs until SIGTERM or SIGINT; 0 after an ordered stop, 1 for every error of configuration, start or component, as the
/// reference collector. `validate`: 0 if nothing is wrong with the file. `flush`: 0 if nothing is left.
#[must_use]
pub fn run(args: &CollectorArgs) -> i32 {
    let _finish = Finish;
    let result = match &args.action {
        None => serve(&args.sources.all()),
        Some(Action::Validate(sources)) => load(&sources.all(), &environment).map(|config| {
            show(&config.warnings);
            0
        }),
        Some(Action::Flush { directory, timeout }) => send_stored(directory, Duration::from_secs(*timeout)),
    };
    result.unwrap_or_else(|problems| show(&problems))
}

/// The last lines are written when this goes, whatever ends the work.
struct Finish;

impl Drop for Finish {
    fn drop(&mut self) {
        finish();
    }
}

fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// A slow answer or a large batch does not keep the health check from answering.
const WORKERS: usize = 2;

fn runtime() -> Result<Runtime, Problem> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = keep_a_blocking_thread(runtime.worker_threads(WORKERS).enable_all(), WORKERS);
    runtime.map_err(|error| Problem::new(format!("cannot start the runtime: {}", in_words(&error))))
}

/// Memory that was needed at a busy moment is given back after this time at most.
const FREE_MEMORY_KEPT: Duration = Duration::from_secs(10);

fn serve(sources: &[Source]) -> Result<i32, Problems> {
    set_up_allocator();
    // Each client has one.
    take_all_descriptors();
    let first = Texts::load(sources, &environment)?;
    let runtime = runtime()?;
    let result = serve_on(&runtime, sources, first);
    // What is still running at this point has been left behind on purpose.
    runtime.shutdown_background();
    result
}

/// One collector after the other: the next one where it is told to go on with another configuration.
fn serve_on(runtime: &Runtime, sources: &[Source], first: (Config, Texts)) -> Result<i32, Problems> {
    let (mut config, mut texts) = first;
    // Those of the configuration that ran before this one, until this one runs.
    let mut former: Option<Texts> = None;
    runtime.spawn(async {
        loop {
            tokio::time::sleep(FREE_MEMORY_KEPT).await;
            shed_memory();
        }
    });
    let sink = stderr();
    let surroundings = Surroundings {
        sink: sink.clone(),
        report_folder: Some(directory(sources)),
        kept: Kept::default(),
        ready: shed_memory,
        shed: Shed(shed_free_memory),
    };
    let signals = {
        let _guard = runtime.enter();
        OsSignals::new().map_err(|error| Problem::new(format!("cannot listen for signals: {error}")))?
    };
    let mut orders = Orders { signals, sources, sink: sink.clone(), reading: None, again: false };
    loop {
        let (result, order) = runtime.block_on(run_until_told(config, &surroundings, &mut orders));
        match (result, order, former.take()) {
            (Ok(ran), Some(Order::Reload(next)), before) => {
                // One that was told to go before it ran has not shown that it can start.
                former = before.filter(|_| !ran).or(Some(texts));
                (config, texts) = *next;
            }
            (Err(Failure::Start(problem)), Some(Order::Reload(next)), Some(before)) => {
                show(&problem.into());
                former = Some(before);
                (config, texts) = *next;
            }
            (Err(Failure::Start(problem)), None, Some(before)) => {
                show(&problem.into());
                sink("SIGHUP: this configuration cannot start; the one from before is started again");
                (config, texts) = (before.again(sources, &environment)?, before);
            }
            (Err(Failure::Start(problem)), Some(Order::Stop), Some(_)) => {
                // It was told to go, and of what it had taken before nothing is left to do.
                show(&problem.into());
                return Ok(0);
            }
            (result, ..) => return result.map(|_| 0).map_err(|failure| Problem::from(failure).into()),
        }
    }
}

/// One collector from its start to its end. Orders are heard all the time, while it drains too: the last one counts, and after
/// one to stop there is no other.
async fn run_until_told(
    config: Config,
    surroundings: &Surroundings,
    orders: &mut Orders<'_>,
) -> (Result<bool, Failure>, Option<Order>) {
    let stop = CancellationToken::new();
    let mut running = pin!(run_collector(config, surroundings.clone(), stop.cancelled()));
    let mut order = None;
    loop {
        tokio::select! {
            biased;
            result = &mut running => return (result, order),
            next = orders.next(), if !matches!(order, Some(Order::Stop)) => {
                order = Some(next);
                stop.cancel();
            }
        }
    }
}

/// What a running collector is told.
enum Order {
    Stop,
    /// To go on with this configuration, which these are the texts of.
    Reload(Box<(Config, Texts)>),
}

/// Where the report goes: beside the first file.
fn directory(sources: &[Source]) -> PathBuf {
    let mut paths = sources.iter().filter_map(Source::path).map(Path::new);
    let path = paths.find(|path| path.is_file() && !is_descriptor(path)).unwrap_or(Path::new(""));
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// Whether it is what this process has open, such as `/dev/stdin`, a link to `/proc/self/fd/0`: nothing can be beside that.
fn is_descriptor(path: &Path) -> bool {
    let is_in_proc = |path: &Path| {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        folder.is_some_and(|folder| folder.starts_with("/proc"))
    };
    is_in_proc(path) || path.read_link().is_ok_and(|target| is_in_proc(&target))
}

/// Hears the orders for one collector after the other. SIGHUP is to go on with the configuration as it is then. The reference
/// ends with an error if that is broken; this one says so and goes on as it was.
struct Orders<'a> {
    signals: OsSignals,
    sources: &'a [Source],
    sink: Sink,
    /// The configuration that is being read. Files may be slow, and signals are heard all the same.
    reading: Option<JoinHandle<Result<(Config, Texts), Problems>>>,
    /// Another SIGHUP came meanwhile: the files may have changed behind the reader, so they are read once more.
    again: bool,
}

impl Orders<'_> {
    /// The next one. Nothing is lost where this is dropped before it ends.
    async fn next(&mut self) -> Order {
        loop {
            tokio::select! {
                biased;
                told = self.signals.next() => match told {
                    Told::Interrupt | Told::Terminate | Told::Quit => return Order::Stop,
                    // Whoever signals a whole job does not mean the collector; the reference does nothing either.
                    Told::Other(number) => (self.sink)(&format!("signal {number}: nothing is done")),
                    Told::HangUp if self.reading.is_some() => {
                        self.again = true;
                        (self.sink)("SIGHUP: the configuration is still being read, and will be once more");
                    }
                    Told::HangUp => self.read(),
                },
                Some(read) = OptionFuture::from(self.reading.as_mut()) => {
                    self.reading = None;
                    if std::mem::take(&mut self.again) {
                        self.read();
                        continue;
                    }
                    let broken = |error| Problems::from(Problem::new(format!("cannot read the configuration: {error}")));
                    match read.map_err(broken).flatten() {
                        Ok(next) => {
                            (self.sink)("SIGHUP: the configuration is read anew");
                            return Order::Reload(Box::new(next));
                        }
                        Err(problems) => {
                            show(&problems);
                            (self.sink)("SIGHUP: the configuration is broken now; the one from before stays");
                        }
                    }
                }
            }
        }
    }

    fn read(&mut self) {
        let sources = self.sources.to_vec();
        self.reading = Some(tokio::task::spawn_blocking(move || Texts::load(&sources, &environment)));
    }
}

fn send_stored(directory: &Path, limit: Duration) -> Result<i32, Problems> {
    let places = [directory.join("otel/collector.yaml"), directory.join("collector.yaml")];
    let Some(file) = places.iter().find(|place| place.exists()) else {
        let problem = Problem::new(format!("there is no {}", places[0].display()));
        return Err(problem.hint("name the directory of a job").into());
    };
    // As at the launch of a job: a `$` in a token is no reference, and the end of a line is not a part of it. What is
    // written as one is.
    let literal = |text: &str| {
        let refers = ["${env:", "${file:"].iter().any(|begin| text.contains(begin));
        if refers { text.to_owned() } else { text.replace('$', "$$") }
    };
    let variable = |name: &str| {
        let value = std::env::var_os(name)?;
        Some(value.into_string().map_or_else(|value| value, |text| literal(text.trim_end()).into()))
    };
    let sources = [Source::Named(file.display().to_string())];
    let beside = file.parent().unwrap_or(directory);
    let runtime = runtime()?;
    let flushed = runtime.block_on(flush(&sources, beside, &variable, stderr(), limit));
    // Nothing that still hangs is waited for, whatever came out.
    runtime.shutdown_background();
    let flushed = flushed?;
    let told = print(&format!(
        "sent {}, rejected {}, dropped {} (spans, data points and log records); {} still stored\n",
        flushed.sent,
        flushed.rejected,
        flushed.dropped,
        counted(flushed.left, "request is", "requests are")
    ));
    for problem in flushed.problems {
        show(&Problem::new(problem).into());
    }
    Ok(told.max(i32::from(flushed.left > 0 || flushed.dropped > 0)))
}

fn show(problems: &Problems) -> i32 {
    let sink = stderr();
    for problem in problems {
        sink(render(problem).trim_end());
    }
    1
}
