//! Files of /proc that the kernel copies out of a process's own memory: its arguments and its environment.
//!
//! Such a read needs the lock of that memory, and waits for ever where whoever has it waits for a file system that does not
//! answer. So each happens on a thread that does nothing else, and has a limit; a process of which a read hangs is not
//! asked again before that has ended. All else that is read here of another process the kernel knows itself.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::identity::Proc;

/// How long a read may take. It takes microseconds, and longer only where the machine has other work for all of that time.
const LIMIT: Duration = Duration::from_millis(300);
/// How many reads of those that are asked for together may hang; those behind them are left out.
const PATIENCE: usize = 3;
/// How many threads may hang; beyond that nothing is read.
const MOST: usize = 64;
/// Of a thread that reads.
const STACK: usize = 128 << 10;

/// The same file of some processes.
struct Batch {
    proc: Proc,
    name: &'static str,
    pids: Vec<i32>,
    /// Each as it is read, in their order.
    answers: mpsc::Sender<Option<Vec<u8>>>,
    /// How many have been read.
    done: Arc<AtomicUsize>,
}

/// A read that was given up.
struct Hung {
    /// The directory of the process.
    place: PathBuf,
    /// Which of a batch it is.
    index: usize,
    done: Arc<AtomicUsize>,
}

/// Threads that wait for a batch. Whoever has one takes it away and gives it back, so that nobody waits for the reads of others.
static IDLE: Mutex<Vec<mpsc::Sender<Batch>>> = Mutex::new(Vec::new());
static HUNG: Mutex<Vec<Hung>> = Mutex::new(Vec::new());

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reads that hang now.
fn hung() -> MutexGuard<'static, Vec<Hung>> {
    let mut hung = lock(&HUNG);
    hung.retain(|read| read.done.load(Ordering::Acquire) <= read.index);
    hung
}

fn start() -> Option<mpsc::Sender<Batch>> {
    let (batches, inbox) = mpsc::channel();
    let reader = thread::Builder::new().name("reader".into()).stack_size(STACK);
    reader.spawn(move || inbox.into_iter().for_each(read)).ok().map(|_| batches)
}

fn read(batch: Batch) {
    for pid in batch.pids {
        let text = fs::read(batch.proc.file(pid, batch.name)).ok();
        batch.done.fetch_add(1, Ordering::Release);
        if batch.answers.send(text).is_err() {
            // It was given up.
            return;
        }
    }
}

impl Proc {
    /// Reads the same file of some processes, `cmdline` or `environ`, and hands over each that could be read, in their order.
    pub(super) fn images(&self, name: &'static str, pids: &[i32], mut take: impl FnMut(i32, &[u8])) {
        let mut pids = pids.to_vec();
        for _ in 0..PATIENCE {
            let hung = hung();
            if hung.len() >= MOST {
                return;
            }
            if !hung.is_empty() {
                pids.retain(|pid| !hung.iter().any(|read| read.place == self.file(*pid, "")));
            }
            drop(hung);
            if pids.is_empty() {
                return;
            }
            let answered = self.answered(name, &pids, &mut take);
            pids.drain(..(answered + 1).min(pids.len()));
        }
    }

    /// The same, up to the first that hangs. How many answered.
    fn answered(&self, name: &'static str, pids: &[i32], take: &mut impl FnMut(i32, &[u8])) -> usize {
        let (answers, told) = mpsc::channel();
        let done = Arc::default();
        let batch = Batch { proc: self.clone(), name, pids: pids.to_vec(), answers, done: Arc::clone(&done) };
        // Not to know whose a process is would be worse than to wait, where there can be no more threads.
        let idle = lock(&IDLE).pop();
        let reader = idle.or_else(start);
        match &reader {
            Some(reader) => drop(reader.send(batch)),
            None => read(batch),
        }
        for (index, pid) in pids.iter().enumerate() {
            let Ok(text) = told.recv_timeout(LIMIT) else {
                lock(&HUNG).push(Hung { place: self.file(*pid, ""), index, done });
                return index;
            };
            if let Some(text) = text {
                take(*pid, &text);
            }
        }
        lock(&IDLE).extend(reader);
        pids.len()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use nix::sys::stat::Mode;

    use super::super::identity::Identity;
    use super::super::tree::Members;
    use super::{PATIENCE, Proc};

    /// A /proc of which these pids do not answer.
    fn proc(answering: &[i32], hanging: &[i32]) -> (tempfile::TempDir, Proc) {
        let root = tempfile::tempdir().expect("a scratch directory");
        for pid in answering.iter().chain(hanging) {
            let own = root.path().join(pid.to_string());
            fs::create_dir_all(&own).expect("a scratch directory");
            let stat = format!("{pid} (x) S 1 10 {pid} 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 7 0 0\n");
            fs::write(own.join("stat"), stat).expect("a scratch file");
            fs::write(own.join("comm"), "name\n").expect("a scratch file");
            for (file, text) in [("environ", "MARK=x\0PLACE=y\0"), ("cmdline", "sh\0script\0")] {
                if hanging.contains(pid) {
                    // Nobody ever opens the other end.
                    nix::unistd::mkfifo(&own.join(file), Mode::S_IRWXU).expect("a pipe with a name");
                } else {
                    fs::write(own.join(file), text).expect("a scratch file");
                }
            }
        }
        let proc = Proc::at(root.path());
        (root, proc)
    }

    #[test]
    fn a_process_whose_memory_is_locked_holds_up_nobody() {
        let (_root, proc) = proc(&[10, 12], &[11]);
        let mut marked = proc.marked("MARK=", "PLACE=y");
        marked.sort_unstable();
        assert_eq!(marked, [10, 12]);
        assert_eq!((proc.command(11), proc.command(12)), ("[name]".to_owned(), "sh script".to_owned()));
        assert_eq!((proc.variable(11, "MARK"), proc.variable(12, "MARK")), (None, Some("x".to_owned())));
        // It is known by its group then.
        let members = |pid, mark: &str| Members { root: Identity { pid, started: 7 }, mark: mark.into(), cgroup: None };
        let owners = proc.owners(&[members(10, "none"), members(9, "MARK=x")], &[11, 12]);
        assert_eq!(owners, [(11, 0), (12, 1)]);
    }

    #[test]
    fn one_that_hung_is_asked_again_only_when_it_has_answered() {
        let (root, proc) = proc(&[], &[21]);
        let own = root.path().join("21");
        assert_eq!(proc.variable(21, "MARK"), None);
        // The read that hangs has opened what has another name now.
        fs::rename(own.join("environ"), own.join("former")).expect("a scratch file");
        fs::write(own.join("environ"), "MARK=x\0").expect("a scratch file");
        assert_eq!(proc.variable(21, "MARK"), None, "it was asked");
        drop(fs::OpenOptions::new().write(true).open(own.join("former")).expect("somebody reads it"));
        let end = Instant::now() + Duration::from_mins(1);
        while proc.variable(21, "MARK").is_none() {
            assert!(Instant::now() < end, "it is not asked any more");
            std::thread::yield_now();
        }
    }

    #[test]
    fn where_many_hang_some_are_left_out_at_each_time() {
        let hanging: Vec<i32> = (30..30 + 2 * i32::try_from(PATIENCE).expect("few")).collect();
        let (_root, proc) = proc(&[90], &hanging);
        let mut all = hanging.clone();
        all.push(90);
        let mut found = Vec::new();
        for time in 0..3 {
            assert!(found.is_empty(), "{time}");
            proc.images("environ", &all, |pid, _| found.push(pid));
        }
        assert_eq!(found, [90]);
    }
}
