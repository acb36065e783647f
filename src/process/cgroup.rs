//! One cgroup (version 2) of gymrun's own: a directory, and the processes in it and below it.
//!
//! Whatever a process of it starts is born in it, however far it goes away from its parent, its session and its
//! environment. The kernel kills all of it in one stroke, those that are just being forked included.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// A directory of the hierarchy. It is there from the first process that is started in it.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    /// As `/proc/PID/cgroup` of its members says it.
    name: String,
    /// The directory that it is in, open: the kernel need not find the way there again and again.
    place: Option<Arc<File>>,
}

impl Cgroup {
    /// One below `parent`, whose name in `/proc/PID/cgroup` is `parent_name`.
    pub(super) fn below(parent: &Path, parent_name: &str, last: &str) -> Self {
        let name = format!("{}/{last}", parent_name.trim_end_matches('/'));
        Self { path: parent.join(last), name, place: None }
    }

    /// The same, with the directory that it is in.
    pub(super) fn inside(self, place: &Arc<File>) -> Self {
        Self { place: Some(Arc::clone(place)), ..self }
    }

    /// One that is there.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), name: String::new(), place: None }
    }

    /// A new one for its place: a kernel that has killed a cgroup kills what is forked into it later, too. Where what was
    /// killed has not left yet, nobody waits: the new one stands beside, with a number, and the old one goes with the job's.
    #[must_use]
    pub fn renew(&self) -> Self {
        let last = self.path.file_name().unwrap_or_default().to_string_lossy();
        let (stem, life) = last.split_once('.').unwrap_or((&last, "1"));
        let last = match self.remove() {
            Ok(()) => last.to_string(),
            Err(_) => format!("{stem}.{}", life.parse::<u32>().unwrap_or(1).saturating_add(1)),
        };
        let parent_name = self.name.rsplit_once('/').map_or("", |(parent, _)| parent);
        let new = Self::below(self.path.parent().unwrap_or(Path::new("/")), parent_name, &last);
        Self { place: self.place.clone(), ..new }
    }

    /// Where it is in the file system.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What `/proc/PID/cgroup` says of its members.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, in as few words as can be.
    fn short(&self) -> (BorrowedFd<'_>, &Path) {
        match &self.place {
            Some(place) => (place.as_fd(), Path::new(self.path.file_name().unwrap_or_default())),
            None => (AT_FDCWD, &self.path),
        }
    }

    /// Makes it.
    pub(super) fn make(&self) -> io::Result<()> {
        let (place, path) = self.short();
        Ok(mkdirat(place, path, Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO)?)
    }

    /// To fork into it. Makes it where it is not there yet.
    pub(super) fn open(&self) -> io::Result<File> {
        match self.make() {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => {
                let (place, path) = self.short();
                let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
                Ok(openat(place, path, flags, Mode::empty())?.into())
            }
        }
    }

    /// Whether anything lives in it or below it; a zombie does not. `false` once it is gone.
    #[must_use]
    pub fn populated(&self) -> bool {
        let mut events = [0; 64];
        let read = File::open(self.path.join("cgroup.events")).and_then(|mut file| file.read(&mut events));
        // It is the first line, which always comes whole.
        read.is_ok_and(|length| events[..length].starts_with(b"populated 1\n"))
    }

    /// Takes it away unless something lives in it or another is below it; whether it is gone. That is the cheapest way to
    /// learn that nothing lives there, and nothing ever will.
    #[must_use]
    pub fn remove_if_empty(&self) -> bool {
        let (place, path) = self.short();
        matches!(unlinkat(place, path, UnlinkatFlags::RemoveDir), Ok(()) | Err(Errno::ENOENT))
    }

    /// The pids of what lives in it and below it, as seen here.
    #[must_use]
    pub fn pids(&self) -> Vec<i32> {
        let mut found = Vec::new();
        if self.populated() {
            collect(&self.path, &mut found);
        }
        found
    }

    /// Kills all that is in it and below it at once.
    pub fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// Takes it away with all that is below it, if nothing lives there.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

fn collect(path: &Path, found: &mut Vec<i32>) {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    // One that is not seen in this pid namespace stands there as 0.
    found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 0));
    below(path).for_each(|path| collect(&path, found));
}

fn below(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

/// Takes a directory away with all that is below it, if nothing lives there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir(path) {
        // It has others below it: a unit may have made some.
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            below(path).try_for_each(|path| remove(&path))?;
            fs::remove_dir(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::Arc;

    use super::Cgroup;

    #[test]
    fn a_new_one_takes_the_place_or_stands_beside_one_that_is_not_empty_yet() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let place = Arc::new(File::open(scratch.path()).expect("a scratch directory"));
        let first = Cgroup::below(scratch.path(), "/x.slice/job", "0-a").inside(&place);
        first.open().expect("it is made");
        first.open().expect("it is there");
        let second = first.renew();
        assert_eq!((second.path(), second.name()), (first.path(), "/x.slice/job/0-a"));
        assert!(!second.path().exists());
        second.open().expect("it is made");
        // Something is still in it.
        fs::write(second.path().join("file"), "").expect("a scratch file");
        assert!(!second.remove_if_empty());
        let third = second.renew();
        assert_eq!((third.path(), third.name()), (&*scratch.path().join("0-a.2"), "/x.slice/job/0-a.2"));
        third.open().expect("it is made");
        assert_eq!(third.renew().name(), third.name());
        third.open().expect("it is made");
        fs::write(third.path().join("file"), "").expect("a scratch file");
        assert_eq!(third.renew().name(), "/x.slice/job/0-a.3");
        fs::remove_file(third.path().join("file")).expect("it is there");
        assert!(third.remove_if_empty() && !third.path().exists());
        assert!(third.remove_if_empty(), "it is gone");
    }
}
