//! The only place where pipelines are wired: from a checked configuration to running components, and back.
//!
//! Start: extensions, exporters, then the pipelines from the last one (in the order of what feeds what) to the first,
//! each from its last processor to its first, receivers at the end. So whatever hands data on finds its next part
//! running. Stop: the other way, level by level, all pipelines of a level side by side, so that one stuck endpoint does
//! not keep the others from draining. Everything has one deadline; who needs longer is named and left behind.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::component::{Consumer, Context, Next, Outputs, Running};
use super::counters::Tally;
use super::deadline::Deadline;
use super::entrance::{Counted, Head};
use super::own::Watch;
use super::storage::Storages;
use super::tasks::until;
use crate::collector::config::pipelines::Pipeline;
use crate::collector::config::{Components, Config};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// How long after the deadline a component may still need to notice it.
const PATIENCE: Duration = Duration::from_millis(300);

/// A running component.
pub(super) struct Named {
    pub name: Arc<str>,
    pub running: Box<dyn Running>,
}

/// The running components, in the groups in which they are stopped.
#[derive(Default)]
pub struct Graph {
    extensions: Vec<Named>,
    receivers: Vec<Named>,
    /// By level: the processors of each pipeline in order, then the connectors that the level feeds.
    levels: Vec<Level>,
    exporters: Vec<Named>,
    /// Those that write the report, when all others have ended.
    reporters: Vec<Reporter>,
}

struct Reporter {
    named: Named,
    consumer: Arc<dyn Consumer>,
}

#[derive(Default)]
struct Level {
    pipelines: Vec<Vec<Named>>,
    connectors: Vec<Named>,
}

/// Nothing of a graph runs.
pub struct NotStarted {
    /// What failed; `None` if a stop was asked for.
    pub problem: Option<Problem>,
    /// Of what has to end yet.
    pub deadline: Deadline,
}

/// What the start collects on the way.
struct Builder {
    base: Context,
    exporters: HashMap<String, Arc<dyn Consumer>>,
    connectors: HashMap<(String, Signal, Signal), Arc<dyn Consumer>>,
    heads: HashMap<String, Arc<dyn Consumer>>,
    levels: HashMap<String, usize>,
    graph: Graph,
}

impl Graph {
    /// Starts everything. If something fails or `shutdown` ends, what has been started is stopped again.
    pub async fn start(config: Config, base: Context, shutdown: impl Future<Output = ()>) -> Result<Self, NotStarted> {
        let mut builder = Builder {
            base,
            exporters: HashMap::new(),
            connectors: HashMap::new(),
            heads: HashMap::new(),
            levels: levels(&config),
            graph: Self::default(),
        };
        let problem = tokio::select! {
            biased;
            started = builder.start(config) => match started {
                Ok(()) => return Ok(builder.graph),
                Err(problem) => Some(problem),
            },
            () = shutdown => None,
        };
        let Builder { base, mut graph, .. } = builder;
        // What a receiver has taken already drains as at any stop.
        let deadline = if graph.receivers.is_empty() {
            Deadline::fixed(Instant::now() + Duration::from_secs(1))
        } else {
            base.controls.begin_stop()
        };
        graph.stop(&deadline, &base, &|| Payload::new(Signal::Metrics)).await;
        graph.stop_extensions(&deadline, &base).await;
        Err(NotStarted { problem, deadline })
    }

    /// Stops everything in order by `deadline`: receivers, pipelines, exporters; at last those that write the report, which
    /// is made then. Extensions answer until [`Graph::stop_extensions`].
    pub async fn stop(&mut self, deadline: &Deadline, base: &Context, report: &(dyn Fn() -> Payload + Sync)) {
        // A file that blocks does not take the time of the others: it is tried again at the end.
        let now = Instant::now();
        let first = now + deadline.at().saturating_duration_since(now) / 4;
        let reporters = self.reporters.iter().map(|reporter| &reporter.named);
        let flushed = join_all(self.exporters.iter().chain(reporters).map(|exporter| exporter.running.flush()));
        deadline.until(until(first, flushed)).await;
        // Nothing is owed to a client whose request has not come in yet, and much to those whose data is held.
        shut(std::mem::take(&mut self.receivers), &deadline.half(), base).await;
        for level in std::mem::take(&mut self.levels) {
            join_all(level.pipelines.into_iter().map(|processors| async move {
                for processor in processors {
                    shut(vec![processor], deadline, base).await;
                }
            }))
            .await;
            shut(level.connectors, deadline, base).await;
        }
        shut(std::mem::take(&mut self.exporters), deadline, base).await;
        self.write_report(deadline, base, report).await;
    }

    /// Writes the report and stops those that write it. Its points are no data: they are not counted.
    async fn write_report(&mut self, deadline: &Deadline, base: &Context, report: &(dyn Fn() -> Payload + Sync)) {
        let reporters = std::mem::take(&mut self.reporters);
        if reporters.is_empty() {
            return;
        }
        let next = Next::new(reporters.iter().map(|reporter| reporter.consumer.clone()).collect());
        let write = async {
            join_all(reporters.iter().map(|reporter| reporter.named.running.flush())).await;
            let report = report();
            if report.resources.is_empty() {
                return Ok(());
            }
            let written = |name: &str| base.counters.of(name, Signal::Metrics, &Tally::Written);
            let before: Vec<(Arc<str>, u64)> =
                reporters.iter().map(|Reporter { named, .. }| (named.name.clone(), written(&named.name))).collect();
            let result = next.consume(report).await;
            join_all(reporters.iter().map(|reporter| reporter.named.running.flush())).await;
            for (name, before) in before {
                let own = usize::try_from(written(&name).saturating_sub(before)).unwrap_or(0);
                base.counters.take_back(&name, Signal::Metrics, &Tally::Written, own);
            }
            result
        };
        let last = deadline.at().max(Instant::now()) + PATIENCE;
        if let None | Some(Err(_)) = until(last, write).await {
            base.log.warn("the report (`service.telemetry.metrics.report`) was not written to every exporter");
        }
        shut(reporters.into_iter().map(|reporter| reporter.named).collect(), deadline, base).await;
    }

    /// Stops the extensions, after the rest.
    pub async fn stop_extensions(&mut self, deadline: &Deadline, base: &Context) {
        shut(std::mem::take(&mut self.extensions), deadline, base).await;
    }
}

/// Stops some components side by side and names those that did not end in time.
pub(super) async fn shut(components: Vec<Named>, deadline: &Deadline, base: &Context) {
    join_all(components.into_iter().map(|Named { name, running }| async move {
        let late = async {
            deadline.passed().await;
            sleep(PATIENCE).await;
        };
        tokio::select! {
            biased;
            () = running.shutdown(deadline.clone()) => {}
            () = late => base.log.warn(&format!("{name} did not stop in time and was left behind")),
        }
    }))
    .await;
}

impl Builder {
    async fn start(&mut self, config: Config) -> Result<(), Problem> {
        let Config { mut components, extensions, pipelines, telemetry, .. } = config;
        for id in &extensions {
            let context = self.context("extensions", id);
            let Some(extension) = take(&mut components.extensions, id) else { continue };
            let running = extension.start(context.clone()).await.map_err(|problem| named(problem, &context))?;
            self.graph.extensions.push(Named { name: context.name, running });
        }
        let reporters: Vec<String> = telemetry.report.into_iter().map(|reference| reference.id).collect();
        self.start_exporters(&mut components, &pipelines, &reporters).await?;
        self.base.shared.get::<Storages>().unclaimed().iter().for_each(|it| self.base.log.warn(&it.to_string()));
        let depth = self.levels.values().max().map_or(0, |level| level + 1);
        self.graph.levels.resize_with(depth, Level::default);
        for pipeline in pipelines.iter().rev() {
            self.build_pipeline(pipeline, &pipelines, &components)?;
        }
        self.start_receivers(&mut components, &pipelines).await
    }

    async fn start_exporters(
        &mut self,
        components: &mut Components,
        pipelines: &[Pipeline],
        reporters: &[String],
    ) -> Result<(), Problem> {
        let ids: Vec<String> = components.exporters.iter().map(|exporter| exporter.id.clone()).collect();
        for id in ids {
            let signals = signals_of(pipelines, |pipeline| pipeline.exporters.contains(&id));
            if signals.is_empty() {
                continue;
            }
            let context = self.context("exporters", &id);
            let Some(exporter) = take(&mut components.exporters, &id) else { continue };
            let built = exporter.start(context.clone(), &signals).await.map_err(|problem| named(problem, &context))?;
            let named = Named { name: context.name, running: built.running };
            if reporters.contains(&id) {
                self.graph.reporters.push(Reporter { named, consumer: built.consumer.clone() });
            } else {
                self.graph.exporters.push(named);
            }
            self.exporters.insert(id, built.consumer);
        }
        Ok(())
    }

    fn build_pipeline(
        &mut self,
        pipeline: &Pipeline,
        pipelines: &[Pipeline],
        components: &Components,
    ) -> Result<(), Problem> {
        let exporter = |id: &String| Some((format!("exporters/{id}").into(), self.exporters.get(id)?.clone()));
        let mut ends: Vec<(Arc<str>, Arc<dyn Consumer>)> = pipeline.exporters.iter().filter_map(exporter).collect();
        for id in &pipeline.feeds {
            let name: Arc<str> = format!("connectors/{id}").into();
            let connected = self.connect(id, pipeline, pipelines, components)?;
            ends.extend(connected.into_iter().map(|consumer| (name.clone(), consumer)));
        }
        let mut next = Next::to_components(ends);
        let mut processors = Vec::new();
        for id in pipeline.processors.iter().rev() {
            let declared = components.processors.iter().find(|processor| processor.id == *id);
            let Some(processor) = declared.and_then(|declared| declared.component.as_ref()) else { continue };
            let context = self.context("processors", &format!("{id} in {}", pipeline.id));
            let watch = Watch::new(&context, id, pipeline.signal);
            let built = processor
                .build(context.clone(), pipeline.signal, watch.behind(next.clone()))
                .map_err(|problem| named(problem, &context))?;
            next = Next::to_processor(context.name.clone(), watch.in_front(built.consumer), next);
            processors.push(Named { name: context.name, running: built.running });
        }
        processors.reverse();
        let level = self.levels.get(&pipeline.id).copied().unwrap_or_default();
        self.graph.levels[level].pipelines.push(processors);
        self.heads.insert(pipeline.id.clone(), Arc::new(Head { next }));
        Ok(())
    }

    /// The instances of a connector that `pipeline` feeds, one for each signal that comes out.
    fn connect(
        &mut self,
        id: &str,
        pipeline: &Pipeline,
        pipelines: &[Pipeline],
        components: &Components,
    ) -> Result<Vec<Arc<dyn Consumer>>, Problem> {
        let declared = components.connectors.iter().find(|connector| connector.id == id);
        let Some((declared, connector)) = declared.and_then(|d| Some((d, d.component.as_ref()?))) else {
            return Ok(Vec::new());
        };
        let super::component::Signals::Between(pairs) = declared.signals else { return Ok(Vec::new()) };
        let mut consumers = Vec::new();
        for (from, to) in pairs.iter().copied().filter(|(from, _)| *from == pipeline.signal) {
            let takers: Vec<&Pipeline> =
                pipelines.iter().filter(|other| other.signal == to && other.fed_by.iter().any(|f| f == id)).collect();
            if takers.is_empty() {
                continue;
            }
            let key = (id.to_owned(), from, to);
            if let Some(consumer) = self.connectors.get(&key) {
                consumers.push(consumer.clone());
                continue;
            }
            let context = self.context("connectors", id);
            let heads = takers.iter().filter_map(|taker| self.heads.get(&taker.id).cloned()).collect();
            let next = Next::to(Counted { next: Next::new(heads), context: context.clone() });
            let built = connector.build(context.clone(), from, to, next).map_err(|problem| named(problem, &context))?;
            // It is stopped when the last pipeline that feeds it has drained.
            let feeders = pipelines.iter().filter(|other| other.signal == from && other.feeds.iter().any(|f| f == id));
            let level = feeders.filter_map(|feeder| self.levels.get(&feeder.id)).max().copied().unwrap_or_default();
            self.graph.levels[level].connectors.push(Named { name: context.name, running: built.running });
            consumers.push(built.consumer.clone());
            self.connectors.insert(key, built.consumer);
        }
        Ok(consumers)
    }

    async fn start_receivers(&mut self, components: &mut Components, pipelines: &[Pipeline]) -> Result<(), Problem> {
        let ids: Vec<String> = components.receivers.iter().map(|receiver| receiver.id.clone()).collect();
        for id in ids {
            let context = self.context("receivers", &id);
            let mut outputs = Outputs::default();
            let signals = signals_of(pipelines, |pipeline| pipeline.receivers.contains(&id));
            for signal in &signals {
                let takers =
                    pipelines.iter().filter(|pipeline| pipeline.signal == *signal && pipeline.receivers.contains(&id));
                let heads = takers.filter_map(|taker| self.heads.get(&taker.id).cloned()).collect();
                let counted = Counted { next: Next::new(heads), context: context.clone() };
                outputs = outputs.with(*signal, Next::to(counted));
            }
            if signals.is_empty() {
                continue;
            }
            let Some(receiver) = take(&mut components.receivers, &id) else { continue };
            let running = receiver.start(context.clone(), outputs).await.map_err(|problem| named(problem, &context))?;
            self.graph.receivers.push(Named { name: context.name, running });
        }
        Ok(())
    }

    fn context(&self, kind: &str, id: &str) -> Context {
        let name: Arc<str> = format!("{kind}/{id}").into();
        Context { name: name.clone(), log: self.base.log.named(name), ..self.base.clone() }
    }
}

/// The component of this id, out of its declaration.
fn take<C: ?Sized>(declared: &mut [crate::collector::config::Declared<C>], id: &str) -> Option<Box<C>> {
    declared.iter_mut().find(|component| component.id == id)?.component.take()
}

fn named(mut problem: Problem, context: &Context) -> Problem {
    problem.message = format!("{}: {}", context.name, problem.message);
    problem
}

fn signals_of(pipelines: &[Pipeline], uses: impl Fn(&Pipeline) -> bool) -> Vec<Signal> {
    let in_use = |signal: &Signal| pipelines.iter().any(|pipeline| pipeline.signal == *signal && uses(pipeline));
    Signal::ALL.into_iter().filter(in_use).collect()
}

/// How many connectors lie at most between a receiver and the pipeline.
fn levels(config: &Config) -> HashMap<String, usize> {
    let mut levels: HashMap<String, usize> = HashMap::new();
    // Feeders stand before those that they feed.
    for pipeline in &config.pipelines {
        let fed = |other: &&Pipeline| other.feeds.iter().any(|id| pipeline.fed_by.contains(id));
        let feeders = config.pipelines.iter().filter(fed).filter(|other| other.id != pipeline.id);
        let level = feeders.filter_map(|feeder| levels.get(&feeder.id)).max().map_or(0, |level| level + 1);
        levels.insert(pipeline.id.clone(), level);
    }
    levels
}
