//! Checks of `service.pipelines`: everything named exists and fits, connectors join two sides, nothing goes in circles.

use std::collections::{BTreeMap, BTreeSet};

use super::checked::{Components, Declared, check_id};
use super::section::Findings;
use super::service::{Draft, Reference};
use crate::collector::component::Signals;
use crate::diag::Problem;
use crate::otlp::Signal;

/// A checked pipeline. Connectors stand in their own lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// `traces`, `metrics/local`.
    pub id: String,
    /// Its signal.
    pub signal: Signal,
    /// Ids of receivers.
    pub receivers: Vec<String>,
    /// Ids of connectors that feed it.
    pub fed_by: Vec<String>,
    /// Ids of processors, in order.
    pub processors: Vec<String>,
    /// Ids of exporters.
    pub exporters: Vec<String>,
    /// Ids of connectors that it feeds.
    pub feeds: Vec<String>,
}

/// Checks all drafts; gives pipelines sorted so that each stands before those that its connectors feed.
pub fn check(drafts: Vec<Draft>, components: &Components, findings: &Findings) -> Vec<Pipeline> {
    let mut pipelines = Vec::new();
    let mut lines = Vec::new();
    for draft in drafts {
        let line = draft.line;
        if let Some(pipeline) = check_one(&draft, components, findings) {
            pipelines.push(pipeline);
            lines.push(line);
        }
    }
    check_connectors(&pipelines, &lines, components, findings);
    sort(pipelines, &lines, components, findings)
}

fn check_one(draft: &Draft, components: &Components, findings: &Findings) -> Option<Pipeline> {
    let path = format!("service.pipelines.{}", draft.id);
    let word = draft.id.split_once('/').map_or(draft.id.as_str(), |(signal, _)| signal);
    let Some(signal) = Signal::ALL.into_iter().find(|signal| signal.name() == word) else {
        let problem = Problem::new(format!("`{word}` is no signal of a pipeline"));
        findings.push(draft.line, &path, problem.suggest(word, Signal::ALL.map(Signal::name)));
        return None;
    };
    if let Err(why) = check_id(&draft.id) {
        findings.push(draft.line, &path, Problem::new(format!("`{}` is no id of a pipeline: {why}", draft.id)));
        return None;
    }
    for (list, what) in [(&draft.receivers, "receiver"), (&draft.exporters, "exporter")] {
        if list.is_empty() {
            findings.push(draft.line, &path, Problem::new(format!("the pipeline `{}` has no {what}", draft.id)));
        }
    }
    let at = Place { path: &path, signal, findings };
    let mut pipeline = Pipeline {
        id: draft.id.clone(),
        signal,
        receivers: Vec::new(),
        fed_by: Vec::new(),
        processors: Vec::new(),
        exporters: Vec::new(),
        feeds: Vec::new(),
    };
    for reference in &draft.receivers {
        let connector = components.connectors.iter().any(|connector| connector.id == reference.id);
        if connector || at.fits(reference, "receiver", &components.receivers) {
            add(if connector { &mut pipeline.fed_by } else { &mut pipeline.receivers }, reference);
        }
    }
    for reference in &draft.processors {
        if !at.fits(reference, "processor", &components.processors) {
            continue;
        }
        if !add(&mut pipeline.processors, reference) {
            let message = format!("the processor `{}` is named twice", reference.id);
            findings.push(reference.line, &format!("{path}.processors"), Problem::new(message));
        }
        if let Some(processor) = component(&components.processors, reference)
            && let Err(problem) = processor.suits(signal)
        {
            findings.push(reference.line, &format!("processors.{}", reference.id), problem);
        }
    }
    for reference in &draft.exporters {
        let connector = components.connectors.iter().any(|connector| connector.id == reference.id);
        if connector || at.fits(reference, "exporter", &components.exporters) {
            let new = add(if connector { &mut pipeline.feeds } else { &mut pipeline.exporters }, reference);
            if let Some(exporter) = component(&components.exporters, reference).filter(|_| new)
                && let Err(problem) = exporter.suits(signal)
            {
                findings.push(reference.line, &format!("{path}.exporters"), problem);
            }
        }
    }
    Some(pipeline)
}

/// What is referred to, if it is declared and could be read.
fn component<'a, C: ?Sized>(declared: &'a [Declared<C>], reference: &Reference) -> Option<&'a C> {
    declared.iter().find(|declared| declared.id == reference.id)?.component.as_deref()
}

fn add(list: &mut Vec<String>, reference: &Reference) -> bool {
    let new = !list.contains(&reference.id);
    if new {
        list.push(reference.id.clone());
    }
    new
}

struct Place<'a> {
    path: &'a str,
    signal: Signal,
    findings: &'a Findings,
}

impl Place<'_> {
    /// Whether the component is declared and carries the pipeline's signal; if not, the problem is recorded.
    fn fits<C: ?Sized>(&self, reference: &Reference, word: &str, declared: &[Declared<C>]) -> bool {
        let path = format!("{}.{word}s", self.path);
        let id = &reference.id;
        let Some(found) = declared.iter().find(|component| component.id == *id) else {
            let problem = Problem::new(format!("the {word} `{id}` is not declared"));
            let known = declared.iter().map(|component| component.id.as_str());
            self.findings.push(reference.line, &path, problem.suggest(id, known));
            return false;
        };
        let fits = matches!(found.signals, Signals::Each(signals) if signals.contains(&self.signal));
        if !fits {
            let message = format!("the {word} `{id}` does not carry {}", self.signal.name());
            self.findings.push(reference.line, &path, Problem::new(message));
        }
        fits
    }
}

/// Whether the connector can go from one signal to the other.
fn joins(components: &Components, id: &str, from: Signal, to: Signal) -> bool {
    let connector = components.connectors.iter().find(|connector| connector.id == id);
    match connector.map(|connector| connector.signals) {
        Some(Signals::Between(pairs)) => pairs.contains(&(from, to)),
        // One whose section was broken has been reported already.
        Some(_) => true,
        None => false,
    }
}

fn check_connectors(pipelines: &[Pipeline], lines: &[u32], components: &Components, findings: &Findings) {
    for (pipeline, line) in pipelines.iter().zip(lines) {
        let path = format!("service.pipelines.{}", pipeline.id);
        for id in &pipeline.feeds {
            let taken =
                |other: &Pipeline| other.fed_by.contains(id) && joins(components, id, pipeline.signal, other.signal);
            if !pipelines.iter().any(taken) {
                let message = format!(
                    "the connector `{id}` is an exporter of `{}`, but a receiver of no pipeline that it can feed from {}",
                    pipeline.id,
                    pipeline.signal.name()
                );
                findings.push(*line, &path, Problem::new(message));
            }
        }
        for id in &pipeline.fed_by {
            let fed =
                |other: &Pipeline| other.feeds.contains(id) && joins(components, id, other.signal, pipeline.signal);
            if !pipelines.iter().any(fed) {
                let message = format!(
                    "the connector `{id}` is a receiver of `{}`, but an exporter of no pipeline from which it can give {}",
                    pipeline.id,
                    pipeline.signal.name()
                );
                findings.push(*line, &path, Problem::new(message));
            }
        }
    }
}

/// Sorts by what feeds what; records a problem that names the circle if there is one.
fn sort(pipelines: Vec<Pipeline>, lines: &[u32], components: &Components, findings: &Findings) -> Vec<Pipeline> {
    let mut feeds: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (from, pipeline) in pipelines.iter().enumerate() {
        for (to, other) in pipelines.iter().enumerate() {
            let joined =
                |id: &String| other.fed_by.contains(id) && joins(components, id, pipeline.signal, other.signal);
            if pipeline.feeds.iter().any(joined) {
                feeds.entry(from).or_default().insert(to);
            }
        }
    }
    let mut order: Vec<usize> = Vec::new();
    let mut rest: BTreeSet<usize> = (0..pipelines.len()).collect();
    while !rest.is_empty() {
        let free = |place: &&usize| !rest.iter().any(|from| feeds.get(from).is_some_and(|to| to.contains(place)));
        let Some(next) = rest.iter().find(free).copied() else {
            let names: Vec<&str> = rest.iter().map(|place| pipelines[*place].id.as_str()).collect();
            let line = rest.first().map_or(1, |place| lines[*place]);
            let message = format!("the pipelines {} form a cycle through their connectors", names.join(", "));
            findings.push(line, "service.pipelines", Problem::new(message));
            return Vec::new();
        };
        rest.remove(&next);
        order.push(next);
    }
    let mut slots: Vec<Option<Pipeline>> = pipelines.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| slots[place].take()).collect()
}
