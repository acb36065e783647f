//! Items whose fate is not counted yet: what a component holds, or a task has in its hands.
//!
//! Whatever ends such a task, the loss is counted. When a collector writes its report, everything that is still owed
//! counts as dropped by the stop ([`Counters::give_up`]); should somebody bring it to an end after all, that counts instead.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::component::{Context, Refusal};
use super::counters::{Counters, Tally};
use crate::otlp::Signal;

/// The reason of what a stop did not leave time for.
const SHUTDOWN: &str = "shutdown";

/// All that is owed in one collector.
#[derive(Default)]
pub(super) struct Debts {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    debts: BTreeMap<u64, Debt>,
}

struct Debt {
    component: Arc<str>,
    signal: Signal,
    items: usize,
    /// Of `items`, those that count as dropped.
    given_up: usize,
}

impl Debts {
    fn with<T>(&self, work: impl FnOnce(&mut Open) -> T) -> T {
        work(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counters {
    /// Counts all that is owed as dropped by the stop; gives what that was, with the component's name.
    ///
    /// It is counted before anybody can pay it, who would take back what is not there yet.
    pub fn give_up(&self) -> Vec<(Arc<str>, Signal, usize)> {
        let mut sums: BTreeMap<(Arc<str>, Signal), usize> = BTreeMap::new();
        self.debts.with(|open| {
            for debt in open.debts.values_mut().filter(|debt| debt.items > debt.given_up) {
                let items = debt.items - debt.given_up;
                debt.given_up = debt.items;
                self.add(&debt.component, debt.signal, Tally::Dropped(SHUTDOWN.into()), items);
                *sums.entry((debt.component.clone(), debt.signal)).or_default() += items;
            }
        });
        sums.into_iter().map(|((component, signal), items)| (component, signal, items)).collect()
    }

    /// Makes a debt smaller, to nothing at most; what was given up of that is taken back.
    fn pay(&self, id: u64, items: usize) -> usize {
        let paid = self.debts.with(|open| {
            let debt = open.debts.get_mut(&id)?;
            let paid = items.min(debt.items);
            debt.items -= paid;
            let back = debt.given_up.saturating_sub(debt.items);
            debt.given_up -= back;
            self.take_back(&debt.component, debt.signal, &Tally::Dropped(SHUTDOWN.into()), back);
            Some(paid)
        });
        paid.unwrap_or(0)
    }
}

/// A debt. What is left of it when it is dropped is counted as lost.
pub struct Owed {
    context: Context,
    signal: Signal,
    id: u64,
}

impl Owed {
    /// Owes `items` under the name of `context`.
    pub(super) fn new(context: Context, signal: Signal, items: usize) -> Self {
        let id = context.counters.debts.with(|open| {
            open.next += 1;
            open.debts.insert(open.next, Debt { component: context.name.clone(), signal, items, given_up: 0 });
            open.next
        });
        Self { context, signal, id }
    }

    /// Owes so many more.
    pub fn add(&self, items: usize) {
        self.context.counters.debts.with(|open| {
            if let Some(debt) = open.debts.get_mut(&self.id) {
                debt.items += items;
            }
        });
    }

    /// The fate of so many is counted, or somebody else does it.
    pub fn pay(&self, items: usize) {
        self.context.counters.pay(self.id, items);
    }

    /// The fate of all is.
    pub fn settled(self) {
        self.pay(usize::MAX);
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        let items = self.context.counters.pay(self.id, usize::MAX);
        self.context.counters.debts.with(|open| open.debts.remove(&self.id));
        if items > 0 {
            self.context.count_dropped(self.signal, items, &lost());
        }
    }
}

/// The refusal of what a task lets go of before it has decided about it.
#[must_use]
pub fn lost() -> Refusal {
    if std::thread::panicking() {
        Refusal::permanent("panic", "a task of the collector broke down (please report this)")
    } else {
        Refusal::retryable(SHUTDOWN, "the collector ended before their fate was known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::context;

    fn dropped(context: &Context, reason: &'static str) -> u64 {
        context.counters.total(Signal::Logs, &Tally::Dropped(reason.into()))
    }

    #[tokio::test]
    async fn a_task_that_panics_does_not_lose_its_count() {
        let context = context("x");
        let (owed, settled) = (context.owe(Signal::Logs, 7), context.owe(Signal::Logs, 5));
        let task = tokio::spawn(async move {
            settled.settled();
            let _owed = owed;
            panic!("a defect");
        });
        assert!(task.await.is_err());
        let all = context.counters.all();
        assert_eq!(all, [("x".to_owned(), Signal::Logs, Tally::Dropped("panic".into()), 7)]);
    }

    #[test]
    fn what_is_given_up_and_comes_to_an_end_after_all_counts_once() {
        let context = context("x");
        let (one, two) = (context.owe(Signal::Logs, 7), context.owe(Signal::Logs, 5));
        one.pay(2);
        one.add(1);
        assert_eq!(context.counters.give_up(), [("x".into(), Signal::Logs, 11)]);
        assert_eq!(context.counters.give_up(), []);
        assert_eq!(dropped(&context, "shutdown"), 11);
        one.pay(4);
        assert_eq!(dropped(&context, "shutdown"), 7);
        two.settled();
        assert_eq!(dropped(&context, "shutdown"), 2);
        drop(one);
        assert_eq!(dropped(&context, "shutdown"), 2, "lost once");
    }

    /// Whoever is first, the one that gives up or the one that pays: nothing is counted in the end that came to one.
    #[test]
    fn what_is_paid_while_it_is_given_up_does_not_count() {
        for _ in 0..500 {
            let context = context("x");
            let debts: Vec<Owed> = (0..20).map(|_| context.owe(Signal::Logs, 3)).collect();
            std::thread::scope(|scope| {
                scope.spawn(|| context.counters.give_up());
                scope.spawn(|| debts.into_iter().for_each(Owed::settled));
            });
            assert_eq!(context.counters.all(), []);
        }
    }
}
