//! What processes showed between their end and the moment in which they were reaped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::identity::{Identity, Proc, Stat};

/// The last looks at processes that have ended. Cheap to clone: all are the same list.
///
/// Whoever reaps a process notes it here before, so that one which is not there any more has been noted.
#[derive(Clone, Debug, Default)]
pub struct Ends(Arc<Mutex<HashMap<i32, Stat>>>);

impl Ends {
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Stat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a process that has ended and is not reaped yet.
    pub fn note(&self, proc: &Proc, pid: i32) {
        if let Some(stat) = proc.stat(pid) {
            self.lock().insert(pid, stat);
        }
    }

    /// Those of them that were not taken yet; from now on they are the caller's.
    pub(super) fn take_all(&self) -> HashMap<i32, Stat> {
        std::mem::take(&mut *self.lock())
    }

    /// The last look at that very process.
    pub(super) fn take(&self, process: Identity) -> Option<Stat> {
        let mut all = self.lock();
        all.get(&process.pid).is_some_and(|stat| stat.identity == process).then(|| all.remove(&process.pid)).flatten()
    }
}
