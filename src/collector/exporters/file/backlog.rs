//! How much of what was taken is not in the file yet.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Those that wait for less are woken at each multiple of this, so limits are multiples of it.
pub(super) const STEP: usize = 1 << 20;

/// About how many bytes wait or are being written.
#[derive(Default)]
pub(super) struct Backlog {
    size: AtomicUsize,
    less: Notify,
}

impl Backlog {
    /// So many came.
    pub fn add(&self, size: usize) {
        self.size.fetch_add(size, Ordering::AcqRel);
    }

    /// About how many there are.
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Acquire)
    }

    /// Waits until there are fewer than `limit`, a multiple of [`STEP`].
    pub async fn below(&self, limit: usize) {
        loop {
            let less = self.less.notified();
            if self.size() < limit {
                return;
            }
            less.await;
        }
    }

    /// So many of them are being written from now on.
    pub fn begin(self: &Arc<Self>, size: usize) -> Writing {
        Writing { backlog: self.clone(), left: Cell::new(size) }
    }

    fn take(&self, size: usize) {
        let before = self.size.fetch_sub(size, Ordering::AcqRel);
        if before / STEP != (before - size) / STEP {
            self.less.notify_waiters();
        }
    }
}

/// What is being written; when this is dropped, nothing of it is left, whatever became of it.
pub(super) struct Writing {
    backlog: Arc<Backlog>,
    left: Cell<usize>,
}

impl Writing {
    /// About so many of its bytes are written.
    pub fn written(&self, size: usize) {
        let size = size.min(self.left.get());
        self.left.set(self.left.get() - size);
        self.backlog.take(size);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.written(usize::MAX);
    }
}
