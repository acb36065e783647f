//! The `memory_limiter` processor: refuses payloads while the process has too much memory.
//!
//! The reference counts what Go has allocated; here it is the resident memory that is the process's own. It is looked
//! at when a payload comes and the last look is older than the interval, so an idle collector does nothing. The keys
//! for Go's garbage collector are checked and have no meaning here.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::collector::component::{Built, Consumer, Context, EVERY_SIGNAL, Factory, Next, Processor, Refusal, Signals};
use crate::collector::config::section::Section;
use crate::collector::run::Shed;
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};
use crate::procfs::{Proc, own_anonymous_memory};

/// The kind.
pub const FACTORY: Factory<dyn Processor> =
    Factory { names: &["memory_limiter"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

const MIB: u64 = 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    interval: Duration,
    /// From this many bytes on payloads are refused.
    most: u64,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Processor>> {
    let interval = section.duration("check_interval").unwrap_or_default();
    if interval.is_zero() {
        section
            .problem("check_interval", Problem::new("`check_interval` must be greater than zero").hint("write `1s`"));
    }
    check_collections(section);
    let number = |section: &mut Section<'_>, key| section.integer(key, 0).and_then(|value| u64::try_from(value).ok());
    let limit = number(section, "limit_mib").unwrap_or(0);
    let spike = number(section, "spike_limit_mib").unwrap_or(0);
    let percentage = number(section, "limit_percentage").unwrap_or(0);
    let spike_percentage = number(section, "spike_limit_percentage").unwrap_or(0);
    let problem = |key, text: &str| section.problem(key, Problem::new(text));
    if limit == 0 && percentage == 0 {
        problem("limit_mib", "`limit_mib` or `limit_percentage` must be greater than zero");
        return None;
    }
    for (key, value) in [("limit_percentage", percentage), ("spike_limit_percentage", spike_percentage)] {
        if value > 100 {
            problem(key, "a percentage is at most 100");
            return None;
        }
    }
    if limit > 0 && limit <= spike {
        problem("spike_limit_mib", "`spike_limit_mib` must be less than `limit_mib`");
        return None;
    }
    if percentage > 0 && percentage <= spike_percentage {
        problem("spike_limit_percentage", "`spike_limit_percentage` must be less than `limit_percentage`");
        return None;
    }
    let (limit, spike) = if limit > 0 {
        (limit.saturating_mul(MIB), spike.saturating_mul(MIB))
    } else {
        let Some(total) = total_memory() else {
            problem("limit_percentage", "the memory of this machine is not known; use `limit_mib`");
            return None;
        };
        (total / 100 * percentage, total / 100 * spike_percentage)
    };
    let spike = if spike == 0 { limit / 5 } else { spike };
    (!interval.is_zero()).then(|| Box::new(Settings { interval, most: limit - spike }) as Box<dyn Processor>)
}

/// The keys for the garbage collector: they must agree with each other.
fn check_collections(section: &mut Section<'_>) {
    let soft = section.duration("min_gc_interval_when_soft_limited").unwrap_or(Duration::from_secs(10));
    let hard = section.duration("min_gc_interval_when_hard_limited").unwrap_or_default();
    let most_soft = section.duration("max_gc_interval_when_soft_limited").unwrap_or(Duration::from_secs(30));
    let most_hard = section.duration("max_gc_interval_when_hard_limited").unwrap_or(Duration::from_secs(30));
    let on = |most: Duration| !most.is_zero();
    for (wrong, key, text) in [
        (
            soft < hard,
            "min_gc_interval_when_soft_limited",
            "it must not be less than `min_gc_interval_when_hard_limited`",
        ),
        (
            on(most_soft) && most_soft < soft,
            "max_gc_interval_when_soft_limited",
            "it must not be less than its minimum",
        ),
        (
            on(most_hard) && most_hard < hard,
            "max_gc_interval_when_hard_limited",
            "it must not be less than its minimum",
        ),
        (
            on(most_soft) && on(most_hard) && most_soft < most_hard,
            "max_gc_interval_when_soft_limited",
            "it must not be less than `max_gc_interval_when_hard_limited`",
        ),
    ] {
        if wrong {
            section.problem(key, Problem::new(text));
        }
    }
}

/// What this process may have: the limit of its control group, as far as it can be seen, or the machine's memory.
fn total_memory() -> Option<u64> {
    let proc = Proc::default();
    let machine = Some(proc.host_memory().total).filter(|total| *total > 0);
    let group = proc.cgroups().memory(std::process::id().cast_signed()).and_then(|group| group.limit());
    machine.into_iter().chain(group).min()
}

impl Processor for Settings {
    fn build(&self, context: Context, _signal: Signal, next: Next) -> Result<Built, Problem> {
        Ok(Built::stateless(Limiter { settings: *self, context, next, looked: Mutex::default() }))
    }
}

/// When the memory was last looked at, and whether it was too much.
#[derive(Clone, Copy, Default)]
struct Look {
    at: Option<Instant>,
    refuses: bool,
}

struct Limiter {
    settings: Settings,
    context: Context,
    next: Next,
    looked: Mutex<Look>,
}

impl Limiter {
    fn looked(&self) -> MutexGuard<'_, Look> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// While one looks, which takes a while where much is given back, the others have the former answer.
    async fn refuses(&self) -> bool {
        {
            let mut look = self.looked();
            if look.at.is_some_and(|at| at.elapsed() < self.settings.interval) {
                return look.refuses;
            }
            look.at = Some(Instant::now());
        }
        // Without a number nothing is refused.
        let mut memory = own_anonymous_memory().unwrap_or(0);
        if memory >= self.settings.most {
            // What is free counts as well as long as the allocator keeps it. If that breaks down, it is still there.
            let _ = tokio::task::spawn_blocking(self.context.shared.get::<Shed>().0).await;
            memory = own_anonymous_memory().unwrap_or(0);
        }
        let refuses = memory >= self.settings.most;
        let before = std::mem::replace(&mut *self.looked(), Look { at: Some(Instant::now()), refuses });
        if refuses != before.refuses {
            let (memory, most) = (memory / MIB, self.settings.most / MIB);
            self.context.log.warn(&if refuses {
                format!("memory usage of {memory} MiB is above the limit of {most} MiB: data is refused")
            } else {
                format!("memory usage of {memory} MiB is back within the limit of {most} MiB")
            });
        }
        refuses
    }
}

impl Consumer for Limiter {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            if self.refuses().await {
                return Err(Refusal::retryable("memory", "data refused due to high memory usage"));
            }
            self.next.consume(payload).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::collector::testing::{Keeper, context, eventually, problems_of, read_section, spans};

    #[tokio::test]
    async fn too_much_memory_refuses_and_little_passes() {
        for (most, taken) in [(1, 0), (u64::MAX, 1)] {
            let settings = Settings { interval: Duration::from_secs(1), most };
            let keeper = Keeper::default();
            let built = settings.build(context("m"), Signal::Traces, Next::to(keeper.clone())).expect("builds");
            let result = built.consumer.consume(spans(2)).await;
            assert_eq!(keeper.counts().len(), taken);
            assert_eq!(result.is_err_and(|refusal| refusal.http_status() == 503), taken == 0);
        }
    }

    /// Nothing is refused for memory that is free and only not given back yet.
    #[tokio::test]
    async fn what_is_free_is_given_back_before_something_is_refused() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let context = context("m");
        context.shared.put(Arc::new(Shed(|| {
            ASKED.fetch_add(1, Ordering::Relaxed);
        })));
        for (most, asked) in [(u64::MAX, 0), (1, 1)] {
            let settings = Settings { interval: Duration::from_hours(1), most };
            let built = settings.build(context.clone(), Signal::Traces, Next::to(Keeper::default())).expect("builds");
            for _ in 0..3 {
                assert_eq!(built.consumer.consume(spans(1)).await.is_err(), most == 1);
            }
            assert_eq!(ASKED.load(Ordering::Relaxed), asked, "once for each look");
        }
    }

    /// Giving memory back may take long: neither a worker nor what comes meanwhile waits for it.
    #[tokio::test]
    async fn what_comes_during_a_look_has_the_former_answer() {
        static OPEN: AtomicBool = AtomicBool::new(false);
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let context = context("m");
        context.shared.put(Arc::new(Shed(|| {
            BEGUN.fetch_add(1, Ordering::SeqCst);
            while !OPEN.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
        })));
        let settings = Settings { interval: Duration::from_hours(1), most: 1 };
        let consumer = settings.build(context, Signal::Traces, Next::to(Keeper::default())).expect("builds").consumer;
        let looking = consumer.clone();
        let first = tokio::spawn(async move { looking.consume(spans(1)).await });
        eventually(|| BEGUN.load(Ordering::SeqCst) == 1).await;
        assert!(consumer.consume(spans(1)).await.is_ok());
        OPEN.store(true, Ordering::SeqCst);
        assert!(first.await.expect("ends").is_err());
        assert!(consumer.consume(spans(1)).await.is_err());
    }

    #[test]
    fn memory_is_known_here() {
        assert!(own_anonymous_memory().is_some_and(|memory| memory > 0));
        assert!(total_memory().is_some_and(|total| total > own_anonymous_memory().unwrap_or(0)));
    }

    #[test]
    fn wrong_limits_are_found() {
        let good = "{check_interval: 1s, limit_percentage: 50, max_gc_interval_when_soft_limited: 0s}";
        read_section(good, |section| assert!(read(section).is_some()));
        for (yaml, word) in [
            ("{}", "`check_interval`"),
            ("{check_interval: 1s}", "greater than zero"),
            ("{check_interval: 1s, limit_mib: 10, spike_limit_mib: 10}", "less than `limit_mib`"),
            ("{check_interval: 1s, limit_percentage: 101}", "at most 100"),
            ("{check_interval: 1s, limit_percentage: 10, spike_limit_percentage: 20}", "less than `limit_percentage`"),
            ("{check_interval: 1s, limit_mib: 10, min_gc_interval_when_hard_limited: 20s}", "must not be less"),
            ("{check_interval: 1s, limit_mib: 10, max_gc_interval_when_hard_limited: 40s}", "must not be less"),
            ("{check_interval: 1s, limit_mib: 10, ballast: 1}", "ballast"),
        ] {
            let text = problems_of(yaml, |section| drop(read(section)));
            assert!(text.contains(word), "{yaml}: {text}");
        }
    }
}
