//! Names a file system that is full while processes run.
//!
//! The same looks find logs that were removed. A process that owns its log learns of it only by an error of its own, which it
//! may well not be able to write anywhere.
//!
//! A file system that does not answer may keep a look for ever. It keeps one thread then, and nobody else: whoever waits for
//! a look has a limit, and no other is begun meanwhile.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::log_watch::LogWatch;
use crate::events::{Closing, Sink};
use crate::procfs::Space;

/// The shortest time between two looks.
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
    closing: Closing,
    logs: LogWatch,
    beat: Mutex<Option<AbortHandle>>,
    /// Whoever looks has it.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// What was said last.
    said: Mutex<Room>,
}

impl DiskWatch {
    /// `logs` makes what watches the logs, from where it is to speak.
    pub(super) fn new(job_dir: &Path, sink: &Sink, logs: impl FnOnce(Sink) -> LogWatch) -> Self {
        let (sink, closing) = sink.closable();
        Self {
            job_dir: job_dir.to_owned(),
            logs: logs(sink.clone()),
            sink,
            closing,
            beat: Mutex::default(),
            turn: Arc::default(),
            said: Mutex::new(Room::Enough),
        }
    }

    /// Looks at it now and then, not more often than every `interval`. To be called inside a runtime.
    pub(super) fn look_every(self: &Arc<Self>, interval: Duration) {
        let watch = Arc::clone(self);
        let looking = async move {
            loop {
                sleep(interval.max(BEAT)).await;
                watch.look_aside().await;
            }
        };
        self.change_beat(Some(tokio::spawn(looking).abort_handle()));
    }

    fn change_beat(&self, beat: Option<AbortHandle>) {
        let former = std::mem::replace(&mut *self.beat.lock().unwrap_or_else(PoisonError::into_inner), beat);
        if let Some(former) = former {
            former.abort();
        }
    }

    /// Looks at it for the last time. If that takes too long, what it finds is not said any more.
    pub(super) async fn end(self: &Arc<Self>) {
        self.change_beat(None);
        self.look_aside().await;
        self.closing.close();
    }

    /// Looks at it on another thread: a file system that does not answer holds up nobody for long.
    pub(super) async fn look_aside(self: &Arc<Self>) {
        let (watch, turn) = (Arc::clone(self), Arc::clone(&self.turn));
        let looking = async {
            let turn = turn.lock_owned().await;
            let look = move || {
                watch.look();
                drop(turn);
            };
            spawn_blocking(look).await
        };
        let _ = timeout(LIMIT, looking).await;
    }

    /// Looks at it, and says when it becomes full and when it has room again, and which logs are gone. Two system calls.
    fn look(&self) {
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
    use std::time::Duration;

    use super::{DiskWatch, LogWatch, mount_point};
    use crate::events::{EventKind, Sink};
    use crate::procfs::Space;

    #[test]
    fn a_file_system_is_called_by_where_it_is_mounted() {
        assert_eq!(mount_point(Path::new("/proc/self")), Path::new("/proc"));
        assert_eq!(mount_point(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn a_file_system_that_does_not_answer_keeps_one_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(2).build();
        let runtime = runtime.expect("a runtime");
        let said = Arc::new(Mutex::new(0));
        let heard = Arc::clone(&said);
        let sink = Sink::new(move |_| *heard.lock().expect("nobody panics here") += 1);
        let logs = |sink| LogWatch::new("/".into(), sink, Vec::new());
        let watch = Arc::new(DiskWatch::new(Path::new("/"), &sink, logs));
        // A look does not come further than this.
        let hangs = watch.said.lock().expect("nobody panics here");
        runtime.block_on(async {
            futures_util::future::join_all((0..4).map(|_| watch.look_aside())).await;
            let other = tokio::task::spawn_blocking(|| 1);
            let done = tokio::time::timeout(Duration::from_secs(30), other).await;
            assert_eq!(done.expect("there is a thread").expect("it ends"), 1);
        });
        // The last one is not waited for any longer than the others; whatever it says then comes too late.
        runtime.block_on(watch.end());
        drop(hangs);
        watch.judge(Space { total: 1 << 40, free: 0, files: 0, free_files: 0 });
        assert_eq!(*said.lock().expect("nobody panics here"), 0);
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
        let watch = DiskWatch::new(Path::new("/"), &sink, |sink| LogWatch::new("/".into(), sink, Vec::new()));
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
