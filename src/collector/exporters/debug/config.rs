//! What the exporter is told, and what it does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::super::sending::Queue;
use super::text;
use crate::collector::component::{Built, Consumer, Context, EVERY_SIGNAL, Exporter, Factory, Refusal, Signals};
use crate::collector::config::section::Section;
use crate::collector::own::{Count, Families, IN_FLIGHT, Meters, Number, SENT, labels, of};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Exporter> =
    Factory { names: &["debug"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    Basic,
    Normal,
    Detailed,
}

#[derive(Clone, Debug)]
struct Settings {
    verbosity: Verbosity,
    /// Messages shown in each second before sampling begins.
    initial: u64,
    /// Then one of so many; 0: none.
    thereafter: u64,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Exporter>> {
    let verbosity =
        section.text("verbosity").map_or(Some(Verbosity::Basic), |text| match text.to_ascii_lowercase().as_str() {
            "basic" => Some(Verbosity::Basic),
            "normal" => Some(Verbosity::Normal),
            "detailed" => Some(Verbosity::Detailed),
            _ => {
                let problem = Problem::new(format!("`{text}` is no verbosity"));
                section.problem("verbosity", problem.suggest(&text, ["basic", "normal", "detailed"]));
                None
            }
        });
    let mut count = |key, default| section.integer(key, 0).and_then(|n| u64::try_from(n).ok()).unwrap_or(default);
    let (initial, thereafter) = (count("sampling_initial", 2), count("sampling_thereafter", 1));
    let internal = section.boolean("use_internal_logger").unwrap_or(true);
    let paths = section.texts("output_paths");
    if !internal || paths.is_some_and(|paths| !paths.is_empty()) {
        let problem = Problem::warning("the lines go to this collector's own log, on stderr, whatever is said here");
        section.problem(if internal { "output_paths" } else { "use_internal_logger" }, problem);
    }
    // Lines are written at once: there is nothing to wait for.
    if section.has("sending_queue") {
        Queue::read(section);
    }
    Some(Box::new(Settings { verbosity: verbosity?, initial, thereafter }))
}

impl Exporter for Settings {
    fn start(self: Box<Self>, context: Context, _signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        let sampler = Mutex::new(Sampler { second: Instant::now(), seen: 0 });
        let shown: Arc<[Count; 3]> = Arc::default();
        let (counted, id) = (shown.clone(), context.name.trim_start_matches("exporters/").to_owned());
        context.shared.get::<Meters>().add(move |families| read_meter(&counted, &id, families));
        Box::pin(std::future::ready(Ok(Built::stateless(Debug { settings: *self, sampler, context, shown }))))
    }
}

struct Debug {
    settings: Settings,
    sampler: Mutex<Sampler>,
    context: Context,
    /// Items that came, by signal: the reference calls them sent.
    shown: Arc<[Count; 3]>,
}

fn read_meter(shown: &[Count; 3], id: &str, families: &mut Families) {
    for signal in Signal::ALL {
        let items = shown[signal as usize].get();
        if items > 0 {
            families.add(of(&SENT, signal), labels([("exporter", id)]), Number::Integer(items));
            let labels = labels([("exporter", id), ("data_type", signal.name())]);
            families.add(&IN_FLIGHT, labels, Number::Integer(0));
        }
    }
}

struct Sampler {
    second: Instant,
    seen: u64,
}

impl Debug {
    fn is_shown(&self) -> bool {
        let mut sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner);
        if sampler.second.elapsed() >= Duration::from_secs(1) {
            *sampler = Sampler { second: Instant::now(), seen: 0 };
        }
        sampler.seen += 1;
        let Settings { initial, thereafter, .. } = self.settings;
        sampler.seen <= initial || thereafter > 0 && (sampler.seen - initial).is_multiple_of(thereafter)
    }
}

impl Consumer for Debug {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        self.shown[payload.signal as usize].add(payload.item_count());
        if self.is_shown() {
            for line in text::lines(&payload, self.settings.verbosity) {
                self.context.log.info(&line);
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
