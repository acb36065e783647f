//! Names a file system that is full while processes run.
//!
//! The same looks find logs that were removed. A process that owns its log learns of it only by an error of its own, which it may well not be able to write anywhere.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::log_watch::LogWatch;
use crate::events::Sink;
use crate::procfs::Space;

/// How long is between two looks while nothing else gives the beat.
const BEAT: Duration = Duration::from_secs(1);
/// How long a look may take where somebody waits for it.
const LIMIT: Duration = Duration::from_secs(2);

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Room {
    Enough,
    Little,
    None,
}

/// Watches the file system of a job directory.
#[derive(Debug)]
pub(super) struct DiskWatch {
    job_dir: PathBuf,
    sink: Sink,
    logs: LogWatch,
    /// What was said last.
    said: Mutex<Room>,
}

impl DiskWatch {
    pub(super) fn new(job_dir: &Path, sink: Sink, logs: LogWatch) -> Self {
        Self { job_dir: job_dir.to_owned(), sink, logs, said: Mutex::new(Room::Enough) }
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

    /// Looks at it, and says when it becomes full and when it has room again, and which logs are gone. Two system calls.
    pub(super) fn look(&self) {
        self.logs.look();
        if let Some(space) = Space::of(&self.job_dir) {
            self.judge(space);
        }
    }

    fn judge(&self, space: Space) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let room = room(space);
        let job_dir = self.job_dir.display();
        // Found out only where it is said.
        let at = || mount_point(&self.job_dir).display().to_string();
        if room > *said {
            let (state, what) = match room {
                Room::None => ("full", "fails"),
                _ => ("nearly full", "will fail soon"),
            };
            let message = format!(
                "the file system at `{}` is {state}, {space}: what processes write to their logs and results in \
                 `{job_dir}` {what}",
                at()
            );
            self.sink.warn(None, message, Some("make room there; the job goes on".to_owned()));
        } else if room == Room::Enough && *said > room {
            // With hardly more than the limit it would be said again and again.
            let hardly = Space { free: space.free / 4, free_files: space.free_files / 4, ..space };
            if self::room(hardly) != Room::Enough {
                return;
            }
            self.sink.warn(None, format!("the file system at `{}` has room again, {space}", at()), None);
        } else {
            return;
        }
        *said = room;
    }
}

fn room(space: Space) -> Room {
    // What is less than a block is of no use.
    if space.free < 4096 || (space.files > 0 && space.free_files == 0) {
        Room::None
    } else if space.full() || space.out_of_files() {
        Room::Little
    } else {
        Room::Enough
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

    use std::sync::{Arc, Mutex};

    use super::{DiskWatch, LogWatch, mount_point};
    use crate::events::{EventKind, Sink};
    use crate::procfs::Space;

    #[test]
    fn a_file_system_is_called_by_where_it_is_mounted() {
        assert_eq!(mount_point(Path::new("/proc/self")), Path::new("/proc"));
        assert_eq!(mount_point(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn each_change_for_the_worse_is_said_once_and_that_there_is_room_again() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let sink = Sink::new(move |event| {
            let EventKind::Warning { message, .. } = event.kind else { panic!("{event:?}") };
            let words: Vec<&str> = message.split(['`', ',']).map(str::trim).collect();
            heard.lock().expect("nobody panics here").push(words[2].to_owned());
        });
        let logs = LogWatch::new("/".into(), sink.clone(), Vec::new());
        let watch = DiskWatch::new(Path::new("/"), sink, logs);
        let with = |free: u64| watch.judge(Space { total: 1 << 40, free, files: 0, free_files: 0 });
        for free in [1 << 30, 15 << 20, 14 << 20, 100, 0, 15 << 20, 17 << 20, 70 << 20, 69 << 20, 0] {
            with(free);
        }
        assert_eq!(
            *said.lock().expect("nobody panics here"),
            ["is nearly full", "is full", "has room again", "is full"]
        );
    }
}
