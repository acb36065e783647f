//! One collector from its configuration to its end.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;

use super::component::{Context, Shared, items_word};
use super::config::Config;
use super::controls::State;
use super::counters::Counters;
use super::delivery;
use super::exporters::OpenedFiles;
use super::graph::Graph;
use super::log::Sink;
use super::own::{Gatherer, Meters, OwnResource, Readers, with_defaults};
use super::storage::Credentials;
use crate::diag::Problem;

/// What a run needs beside its configuration.
#[derive(Clone)]
pub struct Surroundings {
    /// Where the collector's lines go.
    pub sink: Sink,
    /// Where `delivery.json` is written; `None`: nowhere.
    pub delivery: Option<PathBuf>,
    /// What one collector after the other of this process goes on with when the configuration is read anew.
    pub kept: Kept,
}

/// What outlives a reload.
#[derive(Clone, Default)]
pub struct Kept {
    /// The counts: the report is about the process.
    pub counters: Arc<Counters>,
    /// The files that were begun, so that they are not emptied.
    pub files: Arc<OpenedFiles>,
}

/// Runs until `shutdown` ends or a component fails, then drains. `Ok` with the counts after an ordered stop; a problem
/// if the start failed or a component did.
///
/// A stop has one [deadline](super::deadline), shortly before its limit: what is in flight is given up then and counted, so
/// that the report is written in time.
pub async fn run(
    mut config: Config,
    surroundings: Surroundings,
    shutdown: impl Future<Output = ()>,
) -> Result<Arc<Counters>, Problem> {
    let secrets = Arc::new(config.secrets.clone());
    let log = config.telemetry.logs.open(&surroundings.sink)?.without(secrets.clone());
    let context = Context {
        name: "collector".into(),
        log: log.clone(),
        counters: surroundings.kept.counters,
        controls: Arc::default(),
        shared: Shared::default(),
    };
    context.shared.put(surroundings.kept.files);
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
    let start = async {
        let readers = Readers::open(readers, &gatherer, &context).await?;
        Ok((readers, Graph::start(config, context.clone()).await?))
    };
    tokio::pin!(shutdown);
    let (readers, mut graph) = tokio::select! {
        started = start => started.map_err(|problem| secrets.mask_problem(problem))?,
        () = &mut shutdown => return Ok(counters),
    };
    controls.set_state(State::Ready(jiff::Timestamp::now(), std::time::Instant::now()));
    log.info("everything is ready");

    let failure = tokio::select! {
        () = &mut shutdown => None,
        failure = controls.failed() => Some(failure),
    };
    let deadline = controls.begin_stop();
    log.info(&format!("stopping; data may drain for {:.1} s", (deadline.at() - Instant::now()).as_secs_f64()));
    let give_up = || {
        for (component, signal, items) in counters.give_up() {
            let word = items_word(signal);
            log.error(&format!("{component}: dropped {items} {word} (shutdown): there was no more time"));
        }
    };
    let report = || {
        give_up();
        gatherer.report()
    };
    graph.stop(&deadline, &context, &report).await;
    give_up();
    if let Some(directory) = surroundings.delivery
        && let Err(error) = delivery::write(&counters, &directory)
    {
        log.warn(&format!("cannot write {}: {error}", directory.join(delivery::FILE_NAME).display()));
    }
    log.info(&format!("stopped; {}", delivery::summary(&counters)));
    graph.stop_extensions(&deadline, &context).await;
    readers.stop(&deadline).await;
    match failure {
        None => Ok(counters),
        Some(failure) => Err(secrets.mask_problem(Problem::new(failure))),
    }
}
