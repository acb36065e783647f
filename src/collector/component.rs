//! What a component is: the seam between the graph and its parts.
//!
//! A kind of component is a [`Factory`]: its type names, the signals it can carry, and `configure`, which reads its
//! section of the configuration and records every problem with its line. What comes out is a checked component
//! ([`Receiver`], [`Processor`], [`Exporter`], [`Connector`], [`Extension`]) that has not started anything. The graph
//! starts extensions, exporters, processors and receivers in this order, each with the [`Next`] it hands on to.
//!
//! Data flows by [`Consumer::consume`]. `Ok` means that the consumer has taken responsibility; a [`Refusal`] means that
//! it has not. **Who swallows a refusal counts it** (as dropped, with the refusal's reason, under the names of those who
//! refused); who passes it on does not.
//! A receiver passes it to its client, so nothing is lost silently on the way. What is put into the pipelines
//! (received) and what they refuse is counted by the graph, once for all pipelines that take it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, join_all};

use super::controls::Controls;
use super::counters::{Counters, Tally};
use super::deadline::Deadline;
use super::items::counted_items;
use super::log::Log;
use super::owed::Owed;
use crate::collector::config::section::Section;
use crate::diag::{Problem, excerpt};
use crate::otlp::{Payload, Signal};

pub use super::refusal::{Part, Refusal};

/// A kind of component: `C` is one of the five component traits.
pub struct Factory<C: ?Sized> {
    /// The type names, the current one first, older spellings after it.
    pub names: &'static [&'static str],
    /// The signals it takes (receivers: gives). For a connector: from which signal to which.
    pub signals: Signals,
    /// Reads the section; records problems in it; `None` only if it recorded one. Keys that were not asked for are
    /// unknown keys, so it must ask for all before it gives up.
    pub configure: fn(&mut Section<'_>) -> Option<Box<C>>,
}

/// The signals that a kind of component can carry.
#[derive(Clone, Copy, Debug)]
pub enum Signals {
    /// Extensions carry none.
    None,
    /// Each pipeline of one of these.
    Each(&'static [Signal]),
    /// A connector: from pipelines of the first signal to pipelines of the second.
    Between(&'static [(Signal, Signal)]),
}

/// All three signals.
pub const EVERY_SIGNAL: &[Signal] = &Signal::ALL;

/// A checked receiver: one instance for each id, shared by all pipelines that name it.
pub trait Receiver: Send {
    /// What it listens on: the path of the key in its section, and the `host:port`.
    fn endpoints(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// Binds its listeners (a problem names the address) and begins to receive. `outputs` has the signals in use.
    fn start(
        self: Box<Self>,
        context: Context,
        outputs: Outputs,
    ) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>>;
}

/// A checked processor: built once for each pipeline that names it.
pub trait Processor: Send {
    /// Whether its settings have a meaning for a pipeline of this signal; what is wrong.
    fn suits(&self, _signal: Signal) -> Result<(), Problem> {
        Ok(())
    }

    /// A running instance between its pipeline's former part and `next`.
    fn build(&self, context: Context, signal: Signal, next: Next) -> Result<Built, Problem>;
}

/// A checked exporter: one instance for each id; the payload tells its signal.
pub trait Exporter: Send {
    /// Whether its settings have a meaning for a pipeline of this signal; what is wrong.
    fn suits(&self, _signal: Signal) -> Result<(), Problem> {
        Ok(())
    }

    /// The file that it writes.
    fn file(&self) -> Option<WrittenFile> {
        None
    }

    /// The id of the extension in which it stores what cannot be sent.
    fn storage(&self) -> Option<&str> {
        None
    }

    /// Opens what it writes to and begins to take payloads of `signals`.
    fn start(self: Box<Self>, context: Context, signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>>;
}

/// A file of an exporter, and how it is written: all who write it agree on that.
pub struct WrittenFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// The keys that tell how, each with its value in words; the same keys for each file.
    pub keys: Vec<(&'static str, String)>,
}

/// A checked connector: built once for each pair of signals in use, whatever the number of pipelines.
pub trait Connector: Send {
    /// A running instance that takes `from` and hands `to` on to `next`.
    fn build(&self, context: Context, from: Signal, to: Signal, next: Next) -> Result<Built, Problem>;
}

/// A checked extension.
pub trait Extension: Send {
    /// What it listens on: the path of the key in its section, and the `host:port`.
    fn endpoints(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// Binds its listeners and begins to answer.
    fn start(self: Box<Self>, context: Context) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>>;
}

/// A component that was started together with the end that takes payloads.
pub struct Built {
    /// Takes the payloads.
    pub consumer: Arc<dyn Consumer>,
    /// Stops it.
    pub running: Box<dyn Running>,
}

impl Built {
    /// A component without tasks or state: there is nothing to stop.
    pub fn stateless(consumer: impl Consumer + 'static) -> Self {
        Self { consumer: Arc::new(consumer), running: Box::new(Stateless) }
    }
}

/// Something started, until it is stopped. Dropping it without `shutdown` may lose data.
pub trait Running: Send + Sync {
    /// A stop is coming: what is ready goes out (files to disk), and work goes on. Called first of all, for exporters.
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Takes nothing new in, hands on or writes what it holds, and ends at `deadline` at the latest: what is left then
    /// it counts as dropped. A deadline in the past still allows what needs no waiting (flushing a file).
    fn shutdown(self: Box<Self>, deadline: Deadline) -> BoxFuture<'static, ()>;
}

/// A [`Running`] with nothing to stop.
pub struct Stateless;

impl Running for Stateless {
    fn shutdown(self: Box<Self>, _deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Takes payloads.
pub trait Consumer: Send + Sync {
    /// Takes over one payload, or refuses it as a whole.
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>>;

    /// Ends when it has dealt with most of what it took. Whoever makes large payloads waits for that before the next one, for
    /// a while. It is at once for what has a bounded queue of its own, and for what makes other data out of what it takes;
    /// what hands on asks the next ones.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Where a component hands its payloads on: one consumer or several.
///
/// Several get the same shared slices; the refusal of one does not keep the payload from the others.
#[derive(Clone)]
pub struct Next {
    consumers: Arc<[Taker]>,
}

struct Taker {
    /// What refusals of its own go by; `None` for what has no name (the head of a pipeline).
    name: Option<Arc<str>>,
    consumer: Arc<dyn Consumer>,
    /// Where it hands on what it takes, which is ready or not in its place.
    behind: Option<Next>,
}

impl Taker {
    fn ready(&self) -> BoxFuture<'_, ()> {
        self.behind.as_ref().map_or_else(|| self.consumer.ready(), |behind| Box::pin(behind.ready()))
    }

    async fn consume(&self, payload: Payload) -> Result<(), Refusal> {
        let Some(name) = &self.name else { return self.consumer.consume(payload).await };
        let items = payload.item_count();
        self.consumer.consume(payload).await.map_err(|refusal| refusal.of(name, items))
    }
}

impl Next {
    /// Hands on to all of `consumers`.
    #[must_use]
    pub fn new(consumers: Vec<Arc<dyn Consumer>>) -> Self {
        let taker = |consumer| Taker { name: None, consumer, behind: None };
        Self { consumers: consumers.into_iter().map(taker).collect() }
    }

    /// Hands on to components, each with its name.
    #[must_use]
    pub fn to_components(consumers: Vec<(Arc<str>, Arc<dyn Consumer>)>) -> Self {
        let taker = |(name, consumer)| Taker { name: Some(name), consumer, behind: None };
        Self { consumers: consumers.into_iter().map(taker).collect() }
    }

    /// Hands on to a processor of this name, which hands on to `behind`.
    #[must_use]
    pub fn to_processor(name: Arc<str>, consumer: Arc<dyn Consumer>, behind: Self) -> Self {
        Self { consumers: Arc::new([Taker { name: Some(name), consumer, behind: Some(behind) }]) }
    }

    /// Hands on to one.
    pub fn to(consumer: impl Consumer + 'static) -> Self {
        Self::new(vec![Arc::new(consumer)])
    }

    /// Ends when all of them have dealt with most of what they took.
    pub async fn ready(&self) {
        join_all(self.consumers.iter().map(Taker::ready)).await;
    }

    /// Hands `payload` on; refused if one of the consumers refused it (for good, if one of them did so for good).
    pub async fn consume(&self, payload: Payload) -> Result<(), Refusal> {
        if let [only] = self.consumers.as_ref() {
            return only.consume(payload).await;
        }
        // Side by side: one that waits for its endpoint does not keep the payload from a file.
        let results = join_all(self.consumers.iter().map(|consumer| consumer.consume(payload.clone()))).await;
        let mut refused: Option<Refusal> = None;
        for result in results {
            Refusal::join(&mut refused, result);
        }
        refused.map_or(Ok(()), Err)
    }
}

/// A receiver's outputs: one for each signal that some pipeline takes from it.
#[derive(Clone, Default)]
pub struct Outputs {
    next: [Option<Next>; 3],
}

impl Outputs {
    /// The same with `next` for `signal`.
    #[must_use]
    pub fn with(mut self, signal: Signal, next: Next) -> Self {
        self.next[signal as usize] = Some(next);
        self
    }

    /// Where payloads of `signal` go; `None` if no pipeline takes them.
    #[must_use]
    pub fn get(&self, signal: Signal) -> Option<&Next> {
        self.next[signal as usize].as_ref()
    }
}

/// What every component gets when it starts.
#[derive(Clone)]
pub struct Context {
    /// The component as people know it: `exporters/file/traces`.
    pub name: Arc<str>,
    /// Lines on stderr, under the component's name.
    pub log: Log,
    /// What was received, written, sent, rejected, dropped.
    pub counters: Arc<Counters>,
    /// Requests from outside (scrape now, stop) and the collector's state.
    pub controls: Arc<Controls>,
    /// Things that instances of one kind share.
    pub shared: Shared,
}

impl Context {
    /// Counts items under this component's name.
    pub fn count(&self, signal: Signal, tally: Tally, items: usize) {
        self.counters.add(&self.name, signal, tally, items);
    }

    /// Counts what a refusal cost, where this component swallows it, and says so: under the name of each component that
    /// refused, or under its own if that was nobody else.
    pub fn count_dropped(&self, signal: Signal, items: usize, refusal: &Refusal) {
        for part in &refusal.parts {
            self.counters.add(&part.component, signal, Tally::Dropped(part.reason.clone()), part.items);
        }
        let what = if refusal.parts.is_empty() {
            self.count(signal, Tally::Dropped(refusal.reason.clone()), items);
            format!("dropped {} ({})", counted_items(signal, items), refusal.reason)
        } else {
            let part = |part: &Part| {
                format!("{} dropped {} ({})", part.component, counted_items(signal, part.items), part.reason)
            };
            refusal.parts.iter().map(part).collect::<Vec<_>>().join(", ")
        };
        self.failed(&format!("{what}: {}", refusal.message));
    }

    /// Answers for items that are held or under way: unless they are settled (counted), their loss is counted, whatever
    /// brought it about.
    #[must_use]
    pub fn owe(&self, signal: Signal, items: usize) -> Owed {
        Owed::new(self.clone(), signal, items)
    }

    /// Says that something went wrong with data (at most a few lines in ten seconds) and keeps it as the last error: the
    /// beginning, where the words of others make it long.
    pub fn failed(&self, text: &str) {
        let text = &excerpt(&self.log.secrets().mask(text), LONGEST_ERROR);
        self.counters.set_last_error(&self.name, text, self.log.secrets());
        self.log.limited(text);
    }
}

/// Characters of what is said of one failure.
const LONGEST_ERROR: usize = 2000;

/// One value of each type for the whole collector, made at first use (such as the writers of all `file` exporters).
#[derive(Clone, Default)]
pub struct Shared {
    values: Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>,
}

impl Shared {
    /// Hands over a `T` that an earlier collector of this process had.
    pub fn put<T: Send + Sync + 'static>(&self, value: Arc<T>) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert(TypeId::of::<T>(), value);
    }

    /// The collector's one `T`.
    #[must_use]
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())).clone();
        value.downcast::<T>().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_processor_is_ready_when_what_is_behind_it_is() {
        struct Busy;
        impl Consumer for Busy {
            fn consume(&self, _payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
                Box::pin(std::future::ready(Ok(())))
            }

            fn ready(&self) -> BoxFuture<'_, ()> {
                Box::pin(std::future::pending())
            }
        }
        let keeper = || Arc::new(crate::collector::testing::Keeper::default());
        for (behind, ready) in [(Next::to(Busy), false), (Next::new(vec![keeper()]), true)] {
            let inner = Next::to_processor("b".into(), keeper(), behind);
            let outer = Next::to_processor("a".into(), keeper(), inner);
            assert_eq!(outer.ready().now_or_never().is_some(), ready);
        }
    }

    #[test]
    fn what_is_said_of_a_failure_is_bounded() {
        let said = Arc::new(Mutex::new(String::new()));
        let line = said.clone();
        let sink = Arc::new(move |text: &str| *line.lock().unwrap_or_else(PoisonError::into_inner) = text.to_owned());
        let mut context = crate::collector::testing::context("exporters/x");
        context.log = Log::new(sink, crate::collector::log::Level::Info);
        context.failed(&"\u{f6}".repeat(1 << 20));
        let last = context.counters.last_error().unwrap_or_default();
        let line = said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for text in [last, line] {
            assert!(text.contains('\u{2026}') && text.chars().count() < LONGEST_ERROR + 200, "{}", text.len());
        }
    }
}
