//! Names a file system that is full while processes run.
//!
//! A process that owns its log learns of it only by an error of its own, which it may well not be able to write anywhere.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::events::Sink;
use crate::procfs::Space;

/// How long is between two looks while nothing else gives the beat.
const BEAT: Duration = Duration::from_secs(1);
/// How long a look may take where somebody waits for it.
const LIMIT: Duration = Duration::from_secs(2);

/// Watches the file system of a job directory.
#[derive(Debug)]
pub(super) struct DiskWatch {
    job_dir: PathBuf,
    sink: Sink,
    /// It was full when it was looked at last.
    full: Mutex<bool>,
}

impl DiskWatch {
    pub(super) fn new(job_dir: &Path, sink: Sink) -> Self {
        Self { job_dir: job_dir.to_owned(), sink, full: Mutex::new(false) }
    }

    /// Looks at it now and then, until it is aborted. To be called inside a runtime.
    pub(super) fn start(self: &Arc<Self>) -> AbortHandle {
        let watch = Arc::clone(self);
        let looking = async move {
            loop {
                sleep(BEAT).await;
                watch.look_aside().await;
            }
        };
        tokio::spawn(looking).abort_handle()
    }

    /// Looks at it on another thread: a file system that does not answer holds up nobody for long.
    pub(super) async fn look_aside(self: &Arc<Self>) {
        let watch = Arc::clone(self);
        let _ = timeout(LIMIT, spawn_blocking(move || watch.look())).await;
    }

    /// Looks at it, and says when it became full and when it has room again. One system call.
    pub(super) fn look(&self) {
        let Some(space) = Space::of(&self.job_dir) else { return };
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let without = space.full() || space.out_of_files();
        // With a little more room than that it would be said again and again.
        let with = !Space { free: space.free / 4, free_files: space.free_files / 4, ..space }.full();
        if without && !*full {
            *full = true;
            let message = format!(
                "the file system at `{}` is full, {space}: what processes write to their logs and results in `{}` fails",
                mount_point(&self.job_dir).display(),
                self.job_dir.display()
            );
            self.sink.warn(None, message, Some("make room there; the job goes on".to_owned()));
        } else if *full && with && !space.out_of_files() {
            *full = false;
            let message =
                format!("the file system at `{}` has room again, {space}", mount_point(&self.job_dir).display());
            self.sink.warn(None, message, None);
        }
    }
}

/// The highest directory above `path` on the same file system.
fn mount_point(path: &Path) -> PathBuf {
    let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
    let own = device(path);
    path.ancestors().take_while(|above| device(above) == own).last().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::mount_point;

    #[test]
    fn a_file_system_is_called_by_where_it_is_mounted() {
        assert_eq!(mount_point(Path::new("/proc/self")), Path::new("/proc"));
        assert_eq!(mount_point(Path::new("/")), Path::new("/"));
    }
}
