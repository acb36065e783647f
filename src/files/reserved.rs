//! Room for a file that is written at the end.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, posix_fallocate};
use tempfile::NamedTempFile;

use super::whole::{directory_of, write_whole};

/// What the name of a file that is only room ends with.
const END: &str = ".reserved";

/// Room for a file that is written at the end: a disk that has become full meanwhile does not refuse it. Until then it is a
/// file of zeros beside it, of a name that nothing else has: `.NAME.??????.reserved`; dropped, it is gone. It is locked as
/// long as its owner lives, and one that is not is removed when room for the same file is reserved again.
#[derive(Debug)]
pub struct Reserved {
    path: PathBuf,
    /// The file, and how much fits; `None` if there was no room even then.
    room: Option<(NamedTempFile, usize)>,
}

impl Reserved {
    /// Reserves so many bytes for the file at `path`, 0600. Where that cannot be done it is written like any other.
    #[must_use]
    pub fn new(path: &Path, bytes: u32) -> Self {
        Self::clear_left(path);
        Self { path: path.to_owned(), room: room(path, bytes).ok() }
    }

    /// Removes what those who were killed had reserved for the file at `path`.
    pub fn clear_left(path: &Path) {
        let begin = begin(path);
        for entry in fs::read_dir(directory_of(path)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_room = name.to_str().is_some_and(|name| name.starts_with(&begin) && name.ends_with(END));
            if is_room && is_left(&entry.path()) {
                // If it is not there, so much the better.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// How many bytes are reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.room.as_ref().map_or(0, |(_, bytes)| *bytes)
    }

    /// Writes the file as a whole, whatever is there. What does not fit into the room is written like any other file, and the
    /// room stays for something shorter.
    ///
    /// # Errors
    /// What the system says; what was there stays then.
    pub fn write(&mut self, contents: &[u8]) -> io::Result<()> {
        if let Some((file, _)) = self.room.take_if(|(_, bytes)| contents.len() <= *bytes) {
            let inside = file.as_file();
            let filled = inside.write_all_at(contents, 0).and_then(|()| inside.set_len(contents.len() as u64));
            if filled.is_ok() && file.persist(&self.path).is_ok() {
                return Ok(());
            }
        }
        // It does not fit, or somebody has taken the room away.
        write_whole(&self.path, contents, 0o600)
    }
}

fn begin(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy())
}

fn room(path: &Path, bytes: u32) -> io::Result<(NamedTempFile, usize)> {
    let file = tempfile::Builder::new().prefix(&begin(path)).suffix(END).tempfile_in(directory_of(path))?;
    // Where there are no locks, what is left after a kill stays.
    let _ = file.as_file().try_lock();
    posix_fallocate(file.as_file(), 0, i64::from(bytes))?;
    Ok((file, usize::try_from(bytes).unwrap_or(usize::MAX)))
}

/// Whether nobody who lives has reserved this.
fn is_left(path: &Path) -> bool {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file: io::Result<File> = OpenOptions::new().write(true).custom_flags(flags).open(path);
    file.is_ok_and(|file| file.metadata().is_ok_and(|found| found.is_file()) && file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::Reserved;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("reads").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    fn rooms(directory: &Path) -> Vec<String> {
        names(directory)
            .into_iter()
            .filter(|name| name.starts_with(".x.json.") && name.ends_with(".reserved"))
            .collect()
    }

    #[test]
    fn what_was_reserved_is_filled_in_or_goes_away() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("x.json");
        let text = || fs::read_to_string(&path).expect("reads");
        // It fits; it is too large; somebody has removed it.
        for (contents, removed) in [("small", false), (&*"large".repeat(100), false), ("again", true)] {
            let mut reserved = Reserved::new(&path, 100);
            let rooms = rooms(scratch.path());
            assert_eq!((rooms.len(), reserved.bytes()), (1, 100));
            if removed {
                fs::remove_file(scratch.path().join(&rooms[0])).expect("is there");
            }
            reserved.write(contents.as_bytes()).expect("writes");
            drop(reserved);
            assert_eq!((text().as_str(), names(scratch.path())), (contents, vec!["x.json".to_owned()]));
            assert_eq!(fs::metadata(&path).expect("is there").permissions().mode() & 0o777, 0o600);
        }
        drop(Reserved::new(&path, 100));
        assert_eq!((text().as_str(), names(scratch.path()).len()), ("again", 1));
        // Nowhere at all.
        let nowhere = scratch.path().join("file/x.json");
        fs::write(scratch.path().join("file"), "").expect("writes");
        assert!(Reserved::new(&nowhere, 100).write(b"").is_err());
    }

    #[test]
    fn two_who_write_the_same_file_have_a_room_each() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("x.json");
        let mut first = Reserved::new(&path, 100);
        let mut second = Reserved::new(&path, 100);
        assert_eq!(rooms(scratch.path()).len(), 2);
        // A third who was started by mistake takes nothing away.
        drop(Reserved::new(&path, 100));
        assert_eq!(rooms(scratch.path()).len(), 2);
        first.write(b"of the first").expect("writes");
        let published = fs::File::open(&path).expect("is there");
        second.write(b"2").expect("writes");
        assert_eq!(std::io::read_to_string(published).expect("reads"), "of the first");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "2");
        assert_eq!(names(scratch.path()), ["x.json"]);
    }

    #[test]
    fn what_is_there_is_left_alone_but_for_the_room_of_one_who_was_killed() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (path, at) = (scratch.path().join("x.json"), |name: &str| scratch.path().join(name));
        let kept =
            [".x.json", ".x.json.backup", ".x.json.link.reserved", ".x.json.pipe.reserved", ".y.json.1.reserved"];
        for name in [kept[0], kept[1], kept[4], ".x.json.killed.reserved"] {
            fs::write(at(name), "is somebody's").expect("writes");
        }
        std::os::unix::fs::symlink(at(kept[0]), at(kept[2])).expect("a link");
        nix::unistd::mkfifo(&at(kept[3]), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        Reserved::new(&path, 100).write(b"{}").expect("writes");
        let mut expected: Vec<&str> = kept.into_iter().chain(["x.json"]).collect();
        expected.sort_unstable();
        assert_eq!(names(scratch.path()), expected);
        assert_eq!(fs::read_to_string(at(kept[0])).expect("reads"), "is somebody's");
    }

    #[test]
    fn what_does_not_fit_anywhere_leaves_the_room_for_something_shorter() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("x.json");
        let mut reserved = Reserved::new(&path, 10);
        fs::create_dir(&path).expect("a directory in the way");
        assert!(reserved.write(&[b'x'; 11]).is_err());
        assert_eq!((reserved.bytes(), rooms(scratch.path()).len()), (10, 1));
        fs::remove_dir(&path).expect("is empty");
        reserved.write(&[b'x'; 10]).expect("writes");
        assert_eq!((reserved.bytes(), names(scratch.path())), (0, vec!["x.json".to_owned()]));
    }
}
