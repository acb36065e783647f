//! One cgroup (version 2) that gymrun has made: a directory, and the processes in it and below it.
//!
//! Whatever a process of it starts is born in it, however far it goes away from its parent, its session and its
//! environment. The kernel kills all of it in one stroke, those that are just being forked included.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A directory of the hierarchy.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    /// As `/proc/PID/cgroup` of its members says it.
    name: String,
}

impl Cgroup {
    /// Makes one below `parent`, whose name in `/proc/PID/cgroup` is `parent_name`.
    pub(super) fn make(parent: &Path, parent_name: &str, last: &str) -> io::Result<Self> {
        let path = parent.join(last);
        DirBuilder::new().create(&path)?;
        Ok(Self { path, name: format!("{}/{last}", parent_name.trim_end_matches('/')) })
    }

    /// One that is there.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), name: String::new() }
    }

    /// A new one in its place: a kernel that has killed a cgroup kills what is forked into it later, too. Where what was
    /// killed has not left yet, nobody waits: the new one stands beside, with a number, and the old one goes with the job's.
    pub fn renew(&self) -> io::Result<Self> {
        let last = self.path.file_name().unwrap_or_default().to_string_lossy();
        let (stem, life) = last.split_once('.').unwrap_or((&last, "1"));
        let last = match self.remove() {
            Ok(()) => last.to_string(),
            Err(_) => format!("{stem}.{}", life.parse::<u32>().unwrap_or(1).saturating_add(1)),
        };
        let parent_name = self.name.rsplit_once('/').map_or("", |(parent, _)| parent);
        Self::make(self.path.parent().unwrap_or(Path::new("/")), parent_name, &last)
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

    /// To fork into it.
    pub(super) fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// Whether anything lives in it or below it; a zombie does not. `false` once it is gone.
    #[must_use]
    pub fn populated(&self) -> bool {
        let mut events = [0; 64];
        let read = File::open(self.path.join("cgroup.events")).and_then(|mut file| file.read(&mut events));
        // It is the first line, which always comes whole.
        read.is_ok_and(|length| events[..length].starts_with(b"populated 1\n"))
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
    use std::fs;

    use super::Cgroup;

    #[test]
    fn a_new_one_takes_the_place_or_stands_beside_one_that_is_not_empty_yet() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let first = Cgroup::make(scratch.path(), "/x.slice/job", "0-a").expect("it is made");
        let second = first.renew().expect("it is made");
        assert_eq!((second.path(), second.name()), (first.path(), "/x.slice/job/0-a"));
        // Something is still in it.
        fs::write(second.path().join("file"), "").expect("a scratch file");
        let third = second.renew().expect("it is made");
        assert_eq!((third.path(), third.name()), (&*scratch.path().join("0-a.2"), "/x.slice/job/0-a.2"));
        assert_eq!(third.renew().expect("it is made").name(), third.name());
        fs::write(third.path().join("file"), "").expect("a scratch file");
        assert_eq!(third.renew().expect("it is made").name(), "/x.slice/job/0-a.3");
    }
}
