//! What a component is: the seam between the graph and its parts.
//!
//! A kind of component is a [`Factory`]: its type names, the signals it can carry, and `configure`, which reads its
//! section of the configuration and records every problem with its line. What comes out is a checked component
//! ([`Receiver`], [`Processor`], [`Exporter`], [`Connector`], [`Extension`]) that has not started anything. The graph
//! starts extensions, exporters, processors and receivers in this order, each with the [`Next`] it hands on to.
//!
//! Data flows by [`Consumer::consume`]. `Ok` means that the consumer has taken responsibility; a [`Refusal`] means that
//! it has not. **Who swallows a refusal counts it** (as dropped, with the refusal's reason); who passes it on does not.
//! A receiver passes it to its client, so nothing is lost silently on the way. What is put into the pipelines
//! (received) and what they refuse is counted by the graph, once for all pipelines that take it.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use tokio::time::Instant;

use super::controls::Controls;
use super::counters::{Counters, Tally};
use super::deadline::Deadline;
use super::log::Log;
use super::owed::Owed;
use super::section::Section;
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

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
    /// Opens what it writes to and begins to take payloads of `signals`.
    fn start(self: Box<Self>, context: Context, signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>>;
}

/// A checked connector: built once for each pair of signals in use, whatever the number of pipelines.
pub trait Connector: Send {
    /// A running instance that takes `from` and hands `to` on to `next`.
    fn build(&self, context: Context, from: Signal, to: Signal, next: Next) -> Result<Built, Problem>;
}

/// A checked extension.
pub trait Extension: Send {
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
}

/// A payload was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whether the same payload may be taken later.
    pub retryable: bool,
    /// A google.rpc code, where the refusal came from one (an endpoint's answer).
    pub answered: Option<u32>,
    /// One word for the counters (`queue_full`, `http_400`, `shutdown`).
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: String,
}

impl Refusal {
    /// Worth another try later.
    pub fn retryable(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { retryable: true, answered: None, reason: reason.into(), message: message.into() }
    }

    /// Never taken, however often it is tried.
    pub fn permanent(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { retryable: false, answered: None, reason: reason.into(), message: message.into() }
    }

    /// The same with the google.rpc code of the answer that it came from.
    #[must_use]
    pub fn answered(mut self, code: u32) -> Self {
        self.answered = Some(code);
        self
    }

    /// The google.rpc code that an OTLP receiver answers: 14 (unavailable) to try again, 13 (internal) not to, unless
    /// an endpoint gave one.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.answered.unwrap_or(if self.retryable { 14 } else { 13 })
    }

    /// The HTTP status that an OTLP receiver answers for [`Refusal::code`].
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match self.code() {
            3 => 400,
            16 => 401,
            7 => 403,
            12 => 404,
            8 => 429,
            1 | 4 | 10 | 11 | 14 | 15 => 503,
            _ => 500,
        }
    }
}

/// Where a component hands its payloads on: one consumer or several.
///
/// Several get the same shared slices; the refusal of one does not keep the payload from the others.
#[derive(Clone)]
pub struct Next {
    consumers: Arc<[Arc<dyn Consumer>]>,
}

impl Next {
    /// Hands on to all of `consumers`.
    #[must_use]
    pub fn new(consumers: Vec<Arc<dyn Consumer>>) -> Self {
        Self { consumers: consumers.into() }
    }

    /// Hands on to one.
    pub fn to(consumer: impl Consumer + 'static) -> Self {
        Self::new(vec![Arc::new(consumer)])
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
            join(&mut refused, result);
        }
        refused.map_or(Ok(()), Err)
    }
}

/// What `work` gives; a refusal if it panics, so that a defect costs the data at hand and not what comes after it.
pub(super) async fn guarded(work: impl Future<Output = Result<(), Refusal>>) -> Result<(), Refusal> {
    let broken = |_| Err(Refusal::permanent("panic", "a part of the collector broke down (please report this)"));
    std::panic::AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(broken)
}

fn join(refused: &mut Option<Refusal>, result: Result<(), Refusal>) {
    let Err(new) = result else { return };
    match refused {
        None => *refused = Some(new),
        Some(former) => {
            former.message = format!("{}; {}", former.message, new.message);
            if former.retryable && !new.retryable {
                former.retryable = false;
                former.answered = new.answered;
                former.reason = new.reason;
            }
        }
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

    /// Counts what a refusal cost, where this component swallows it, and says so.
    pub fn count_dropped(&self, signal: Signal, items: usize, refusal: &Refusal) {
        self.count(signal, Tally::Dropped(refusal.reason.clone()), items);
        self.failed(&format!("dropped {items} {} ({}): {}", items_word(signal), refusal.reason, refusal.message));
    }

    /// Answers for items that are held or under way: unless they are settled (counted), their loss is counted, whatever
    /// brought it about.
    #[must_use]
    pub fn owe(&self, signal: Signal, items: usize) -> Owed {
        Owed::new(self.clone(), signal, items)
    }

    /// Says that something went wrong with data (at most a few lines in ten seconds) and keeps it as the last error.
    pub fn failed(&self, text: &str) {
        let text = &self.log.secrets().mask(text);
        self.counters.set_last_error(&format!("{}: {text}", self.name));
        self.log.limited(text);
    }
}

/// What the items of a signal are called.
#[must_use]
pub fn items_word(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "spans",
        Signal::Metrics => "data points",
        Signal::Logs => "log records",
    }
}

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

/// Runs `work` until `deadline`; `None` if it was not done by then.
pub async fn until<T>(deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout_at(deadline, work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_becomes_the_status_of_the_reference() {
        assert_eq!(Refusal::retryable("queue_full", "full").http_status(), 503);
        assert_eq!(Refusal::permanent("x", "never").code(), 13);
        let answers = [(3, 400), (16, 401), (7, 403), (12, 404), (8, 429), (2, 500), (14, 503)];
        for (code, status) in answers {
            assert_eq!(Refusal::permanent("http", "answered").answered(code).http_status(), status);
        }
    }

    #[test]
    fn of_several_refusals_the_permanent_one_decides_and_all_are_said() {
        let mut refused = None;
        join(&mut refused, Err(Refusal::retryable("queue_full", "a")));
        join(&mut refused, Ok(()));
        join(&mut refused, Err(Refusal::permanent("http_400", "b").answered(3)));
        let refused = refused.expect("refused");
        assert_eq!((refused.retryable, refused.code(), refused.message.as_str()), (false, 3, "a; b"));
    }
}
