//! By which means nothing of a job gets away.
//!
//! Where gymrun may make cgroups of its own, each unit has one below the job's, and is killed with it in one stroke. The
//! kernel needs version 2 with `cgroup.kill` (5.14), and the part of the hierarchy that gymrun is in must have been handed
//! over: that is so where the user owns it, or its manager has marked it with the attribute `delegate`. Root can write
//! everywhere, so where systemd runs the machine only that mark counts: the rest of the tree is systemd's. gymrun itself
//! stays where it is. Everywhere else the tree of processes is walked, and the reason is said.
//!
//! A job's cgroup is locked for as long as its gymrun lives. One that is there and not locked was left by a gymrun that was
//! killed: it goes if it is empty.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{AccessFlags, geteuid};

use super::cgroup::{self, Cgroup};
use super::guard::Guard;
use super::program::in_words;
use crate::procfs::Proc;

/// How the name of a job's cgroup begins.
const PREFIX: &str = "gymrun-";
/// Where systemd says that it runs the machine.
const SYSTEMD: &str = "/run/systemd/system";
/// How long processes that were killed may take to leave their cgroup.
const REMOVAL: Duration = Duration::from_secs(1);

/// The means of a job. Dropped, its cgroup is taken away, and its guard is gone.
#[derive(Debug)]
pub struct Containment {
    job: Result<Job, String>,
}

/// The cgroup of a job, locked.
#[derive(Debug)]
struct Job {
    cgroup: Cgroup,
    /// It was taken away.
    removed: bool,
    lock: Arc<File>,
    /// Why there is none, if there should be one.
    guard: Result<Guard, Option<io::Error>>,
}

impl Containment {
    /// The strongest means that there are here.
    #[must_use]
    pub fn choose(proc: &Proc) -> Self {
        let own = nix::unistd::getpid().as_raw();
        let place = proc.cgroups().unified(own).zip(proc.cgroup_name(own));
        let Some((directory, name)) = place else {
            return Self::walking("no cgroup file system of version 2 is mounted here");
        };
        Self { job: delegated(&directory, Path::new(SYSTEMD)).and_then(|()| make(&directory, &name)) }
    }

    /// None but the walk, for that reason.
    #[must_use]
    pub fn walking(reason: &str) -> Self {
        Self { job: Err(reason.to_owned()) }
    }

    /// The job's cgroup; else why there is none.
    pub fn cgroup(&self) -> Result<&Path, &str> {
        self.job.as_ref().map(|job| job.cgroup.path()).map_err(String::as_str)
    }

    /// What stays behind if gymrun itself is killed by SIGKILL, and why; `None` if nothing does.
    #[must_use]
    pub fn unguarded(&self) -> Option<String> {
        let why = match &self.job {
            Ok(Job { guard: Err(Some(error)), .. }) => {
                format!("the guard of the job's cgroup cannot be started ({})", in_words(error))
            }
            Ok(_) => return None,
            Err(_) => "there is no cgroup to kill".to_owned(),
        };
        Some(format!(
            "{why}: if gymrun itself is killed by SIGKILL, what its processes have started lives on until the next run in \
             this job directory, and beyond it if it has dropped its environment"
        ))
    }

    /// The cgroup of a unit, which is made with its first process; `None` if there are none.
    #[must_use]
    pub fn unit(&self, number: usize, name: &str) -> Option<Cgroup> {
        let Job { cgroup: job, lock, .. } = self.job.as_ref().ok()?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        let last: String = name.chars().map(plain).take(64).collect();
        Some(Cgroup::below(job.path(), job.name(), &format!("{number}-{last}")).inside(lock))
    }

    /// Nothing is left: takes the job's cgroup away, and tells the guard to end, without waiting for it.
    pub fn close(&mut self) {
        let Ok(job) = &mut self.job else { return };
        job.remove();
        if let Ok(guard) = &mut job.guard {
            guard.dismiss();
        }
    }

    /// Kills all that is in the job's cgroup, at once.
    pub fn kill(&self) {
        if let Ok(job) = &self.job
            && job.cgroup.populated()
        {
            // What it does not kill is found by the walk.
            let _ = job.cgroup.kill();
        }
    }
}

impl Drop for Containment {
    fn drop(&mut self) {
        if thread::panicking() {
            // Nobody has ended what runs.
            self.kill();
        }
        if let Ok(job) = &mut self.job {
            job.remove();
        }
    }
}

impl Job {
    /// Takes its cgroup away, once.
    fn remove(&mut self) {
        let end = Instant::now() + REMOVAL;
        // Where something does not die, the next gymrun takes it away.
        while !self.removed && self.cgroup.remove().is_err() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        self.removed = true;
    }
}

/// Whether that part of the hierarchy was handed over to this user; if not, why.
fn delegated(directory: &Path, systemd: &Path) -> Result<(), String> {
    let shown = directory.display();
    let found = fs::metadata(directory).map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    let marked = ["trusted.delegate", "user.delegate"].iter().any(|name| attribute(directory, name));
    let user = geteuid();
    if user.is_root() {
        if !marked && systemd.exists() {
            return Err(format!("`{shown}` is systemd's: it has not been delegated"));
        }
    } else if !marked && found.uid() != user.as_raw() {
        return Err(format!("`{shown}` is another user's: it has not been delegated"));
    }
    // Who may not write this may not move a process from here to a cgroup below.
    let list = directory.join("cgroup.procs");
    nix::unistd::eaccess(&list, AccessFlags::W_OK)
        .map_err(|error| format!("`{}` cannot be written: {}", list.display(), error.desc()))
}

/// Whether a cgroup has the attribute with the value 1.
#[expect(unsafe_code, reason = "neither nix nor the standard library reads extended attributes")]
fn attribute(directory: &Path, name: &str) -> bool {
    let (Ok(path), Ok(name)) = (CString::new(directory.as_os_str().as_bytes()), CString::new(name)) else {
        return false;
    };
    let mut value = [0_u8; 8];
    // SAFETY: both strings end with null, and no more is written than the buffer holds.
    let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    length == 1 && value[0] == b'1'
}

/// Makes the job's cgroup, and takes away those that others left.
fn make(directory: &Path, name: &str) -> Result<Job, String> {
    remove_leftovers(directory);
    let shown = directory.display();
    loop {
        let last = format!("{PREFIX}{}-{:06x}", std::process::id(), fastrand::u32(..1 << 24));
        let cgroup = Cgroup::below(directory, name, &last);
        cgroup.make().map_err(|error| format!("no cgroup can be made below `{shown}`: {}", in_words(&error)))?;
        // Another gymrun may have taken it for one that was left, in the moment before it was locked.
        if let Some(lock) = lock(cgroup.path())
            && cgroup.path().exists()
        {
            if !cgroup.path().join("cgroup.kill").exists() {
                let _ = cgroup.remove();
                return Err("the kernel is older than 5.14: it has no `cgroup.kill`".to_owned());
            }
            let guard = Guard::start(&cgroup).map_err(Some);
            return Ok(Job { cgroup, removed: false, lock: Arc::new(lock), guard });
        }
    }
}

fn remove_leftovers(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())
            && let Some(_lock) = lock(&entry.path())
        {
            // One in which something lives stays: it is the next run's in its own job directory.
            let _ = cgroup::remove(&entry.path());
        }
    }
}

/// Locks a directory for as long as the file is open.
#[expect(unsafe_code, reason = "nix takes the lock away before the file is closed")]
fn lock(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    // SAFETY: the call takes plain numbers.
    let locked = unsafe { libc::flock(directory.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 };
    locked.then_some(directory)
}

/// The cgroup of a job whose gymrun was killed; `None` if it is gone, or held by a gymrun that lives.
fn left(path: &Path) -> Option<Job> {
    let named = path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    let lock = lock(path).filter(|_| named)?;
    Some(Job { cgroup: Cgroup::at(path), removed: false, lock: Arc::new(lock), guard: Err(None) })
}

/// The pids of what lives in the cgroup that a killed gymrun left.
#[must_use]
pub fn left_in(path: &Path) -> Vec<i32> {
    left(path).map(|left| left.cgroup.pids()).unwrap_or_default()
}

/// Takes the cgroup away that a killed gymrun left, with whatever lives there.
pub fn end_left_cgroup(path: &Path) {
    if let Some(left) = left(path) {
        let containment = Containment { job: Ok(left) };
        containment.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{delegated, left_in};

    #[test]
    fn what_is_systemds_or_anothers_is_not_taken() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let (own, systemd) = (scratch.path().join("own"), scratch.path().join("systemd"));
        fs::create_dir(&own).expect("a scratch directory");
        assert!(delegated(&own, &systemd).expect_err("no list").contains("cgroup.procs` cannot be written"));
        fs::write(own.join("cgroup.procs"), "").expect("a scratch file");
        // Nobody manages the machine, or the directory is the user's.
        assert_eq!(delegated(&own, &systemd), Ok(()));
        fs::create_dir(&systemd).expect("a scratch directory");
        let found = delegated(&own, &systemd);
        if nix::unistd::geteuid().is_root() {
            assert!(found.expect_err("not marked").ends_with("is systemd's: it has not been delegated"));
        } else {
            assert_eq!(found, Ok(()));
            let found = delegated(Path::new("/"), &systemd);
            assert!(found.expect_err("root's").ends_with("is another user's: it has not been delegated"));
        }
        assert!(delegated(&own.join("gone"), &systemd).expect_err("it is gone").contains("cannot be read"));
    }

    #[test]
    fn only_cgroups_of_gymrun_are_taken_for_left() {
        // The name decides first: an event log that somebody wrote by hand must not end anything else.
        assert!(left_in(Path::new("/sys/fs/cgroup")).is_empty());
        assert!(left_in(Path::new("/no/such/gymrun-1-abc")).is_empty());
    }
}
