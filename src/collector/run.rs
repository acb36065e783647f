//! One collector from its configuration to its end.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::time::Instant;

use super::component::{Context, Shared};
use super::controls::{Controls, Requests, State};
use super::counters::Counters;
use super::delivery;
use super::exporters::OpenedFiles;
use super::graph::Graph;
use super::items::counted_items;
use super::log::Sink;
use super::own::{Gatherer, Meters, OwnResource, Reader, Readers, with_defaults};
use super::storage::Credentials;
use crate::collector::config::Config;
use crate::collector::config::duration::about;
use crate::diag::Problem;

/// What a run needs beside its configuration.
#[derive(Clone)]
pub struct Surroundings {
    /// Where the collector's lines go.
    pub sink: Sink,
    /// The folder in which `delivery.json` is written; `None`: it is not.
    pub report_folder: Option<PathBuf>,
    /// What one collector after the other of this process goes on with when the configuration is read anew.
    pub kept: Kept,
    /// Called when everything is ready.
    pub ready: fn(),
    /// Gives back memory that is free, where it is short.
    pub shed: Shed,
}

/// See [`Surroundings::shed`]; nothing unless it is given.
#[derive(Clone, Copy, Debug)]
pub struct Shed(pub fn());

impl Default for Shed {
    fn default() -> Self {
        Self(|| ())
    }
}

/// What outlives a reload.
#[derive(Clone, Default)]
pub struct Kept {
    /// The counts: the report is about the process.
    pub counters: Arc<Counters>,
    /// The files that were begun, so that they are not emptied.
    pub files: Arc<OpenedFiles>,
    /// What was asked for.
    pub requests: Arc<Requests>,
}

/// Why a run ended without being told to.
#[derive(Debug)]
pub enum Failure {
    /// It did not start: nothing is left of it.
    Start(Problem),
    /// It ran, and then a component could not go on.
    Component(Problem),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Start(problem) | Failure::Component(problem) => problem,
        }
    }
}

/// Runs until `shutdown` ends or a component fails, then drains. `Ok` after an ordered stop, with whether it had come to
/// run before; a problem if the start failed or a component did. In each case what was started has ended: the ports are
/// free.
///
/// A stop has one [deadline](super::deadline), shortly before its limit: what is in flight is given up then and counted, so
/// that the report is written in time.
pub async fn run(
    mut config: Config,
    surroundings: Surroundings,
    shutdown: impl Future<Output = ()>,
) -> Result<bool, Failure> {
    let secrets = Arc::new(config.secrets.clone());
    let log = config.telemetry.logs.open(&surroundings.sink).map_err(Failure::Start)?.without(secrets.clone());
    let context = Context {
        name: "collector".into(),
        log: log.clone(),
        counters: surroundings.kept.counters,
        controls: Arc::new(Controls::with(surroundings.kept.requests)),
        shared: Shared::default(),
    };
    context.shared.put(surroundings.kept.files);
    context.shared.put(Arc::new(surroundings.shed));
    context.shared.get::<OwnResource>().set(with_defaults(&config.telemetry.resource));
    context.shared.get::<Credentials>().set(config.credentials.clone());
    for warning in &config.warnings {
        log.warn(&format!("{}: {} {}", warning.location, warning.path, warning.message));
    }
    let (controls, counters) = (context.controls.clone(), context.counters.clone());
    let readers = std::mem::take(&mut config.telemetry.readers);
    if !readers.is_empty() {
        context.shared.get::<Meters>().want();
    }
    let gatherer = Arc::new(Gatherer::new(config.telemetry.detail, &context));
    let mut room = surroundings.report_folder.as_deref().map(delivery::reserve);
    let mut write_report = || {
        if let (Some(folder), Some(room)) = (&surroundings.report_folder, room.take())
            && let Err(error) = delivery::write(&counters, room)
        {
            log.warn(&format!("cannot write {}: {error}", folder.join(delivery::FILE_NAME).display()));
        }
    };
    let give_up = || {
        for (component, signal, items) in counters.give_up() {
            let items = counted_items(signal, items);
            log.error(&format!("{component}: dropped {items} (shutdown): there was no more time"));
        }
    };
    tokio::pin!(shutdown);
    let (readers, mut graph) = match start(config, readers, &gatherer, &context, shutdown.as_mut()).await {
        Ok(Some(started)) => started,
        ended => {
            // Of what was taken meanwhile something may still be under way.
            give_up();
            // Of what a collector before this one counted there is no other report.
            if !counters.all().is_empty() {
                write_report();
            }
            return ended.map(|_| false).map_err(|problem| Failure::Start(secrets.mask_problem(problem)));
        }
    };
    controls.set_state(State::Ready(jiff::Timestamp::now(), std::time::Instant::now()));
    log.info("everything is ready");
    (surroundings.ready)();

    let failure = tokio::select! {
        () = &mut shutdown => None,
        failure = controls.failed() => Some(failure),
    };
    let deadline = controls.begin_stop();
    log.info(&format!("stopping; data may drain for {}", about(deadline.at() - Instant::now())));
    let report = || {
        give_up();
        gatherer.report()
    };
    graph.stop(&deadline, &context, &report).await;
    give_up();
    write_report();
    log.info(&format!("stopped; {}", delivery::summary(&counters)));
    graph.stop_extensions(&deadline, &context).await;
    readers.stop(&deadline).await;
    match failure {
        None => Ok(true),
        Some(failure) => Err(Failure::Component(secrets.mask_problem(Problem::new(failure)))),
    }
}

/// Starts everything; `None` if a stop was asked for meanwhile. Unless it is whole, what was started is stopped again.
async fn start(
    config: Config,
    readers: Vec<Reader>,
    gatherer: &Arc<Gatherer>,
    context: &Context,
    mut shutdown: Pin<&mut impl Future<Output = ()>>,
) -> Result<Option<(Readers, Graph)>, Problem> {
    let readers = tokio::select! {
        readers = Readers::open(readers, gatherer, context) => readers?,
        () = &mut shutdown => return Ok(None),
    };
    let (problem, deadline) = match Graph::start(config, context.clone(), shutdown).await {
        Ok(graph) => return Ok(Some((readers, graph))),
        Err(ended) => (ended.problem, ended.deadline),
    };
    readers.stop(&deadline).await;
    problem.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::super::fuzzing::load_config;
    use super::super::testing;
    use super::*;
    use crate::otlp::Signal;

    /// What a start took in and could not bring to its end is in the report, be it that the start failed or was stopped.
    #[tokio::test]
    async fn a_start_that_comes_to_nothing_reports_what_is_owed() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("an address");
        let text = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '{address}'}}}}}}}}\nexporters: {{nop: }}\n\
             service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [nop]}}}}}}\n"
        );
        for is_stopped in [false, true] {
            let directory = tempfile::tempdir().expect("a folder");
            let context = testing::context("exporters/x");
            let owed = context.owe(Signal::Logs, 3);
            let kept = Kept { counters: context.counters.clone(), ..Kept::default() };
            let report_folder = Some(directory.path().to_owned());
            let surroundings =
                Surroundings { sink: Arc::new(|_| ()), report_folder, kept, ready: || (), shed: Shed::default() };
            let config = load_config(&text, &|_| None).expect("a configuration");
            let ended = if is_stopped {
                run(config, surroundings, ready(())).await
            } else {
                run(config, surroundings, pending()).await
            };
            assert!(!matches!(ended, Ok(true) | Err(Failure::Component(_))), "{ended:?}");
            let report = std::fs::read(directory.path().join(delivery::FILE_NAME)).expect("a report");
            let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
            assert_eq!(report["logs"]["dropped"]["shutdown"], 3, "{report}");
            drop(owed);
        }
    }
}
