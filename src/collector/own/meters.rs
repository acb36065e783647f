//! What components count about themselves beside [`Counters`](crate::collector::counters::Counters): atomics that cost
//! an addition when something happens, and are read when somebody asks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::family::{Families, Number};

type Meter = Box<dyn Fn(&mut Families) + Send + Sync>;

/// All meters of one collector ([`Shared::get`](crate::collector::component::Shared::get)).
#[derive(Default)]
pub struct Meters {
    wanted: AtomicBool,
    all: Mutex<Vec<Meter>>,
}

impl Meters {
    /// Somebody will ask; said before anything starts.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether somebody will ask: what costs more than an addition is not done otherwise.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Has `meter` say its numbers whenever somebody asks.
    pub fn add(&self, meter: impl Fn(&mut Families) + Send + Sync + 'static) {
        if self.wanted() {
            self.all.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(meter));
        }
    }

    /// Everything they say now.
    pub fn read(&self, families: &mut Families) {
        for meter in self.all.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            meter(families);
        }
    }
}

/// A count.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it.
    pub fn add(&self, items: usize) {
        self.0.fetch_add(items as u64, Ordering::Relaxed);
    }

    /// Takes from it what was added before.
    pub fn take(&self, items: usize) {
        self.0.fetch_sub(items as u64, Ordering::Relaxed);
    }

    /// Its value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram of whole numbers.
pub struct Buckets {
    bounds: &'static [u64],
    counts: Vec<Count>,
    sum: Count,
}

impl Buckets {
    /// With these upper bounds, from small to large.
    #[must_use]
    pub fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: (0..=bounds.len()).map(|_| Count::default()).collect(), sum: Count::default() }
    }

    /// Counts a value.
    pub fn record(&self, value: usize) {
        let place = self.bounds.partition_point(|bound| *bound < value as u64);
        self.counts[place].add(1);
        self.sum.add(value);
    }

    /// What it holds; `None` if it is empty.
    #[must_use]
    pub fn get(&self) -> Option<Number> {
        let counts: Vec<u64> = self.counts.iter().map(Count::get).collect();
        let any = counts.iter().any(|count| *count > 0);
        any.then(|| Number::Buckets { bounds: self.bounds, counts, sum: self.sum.get() })
    }
}
