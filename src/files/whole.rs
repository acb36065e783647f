//! The write.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::posix_fallocate;
use tempfile::NamedTempFile;

/// Writes a file as a whole, whatever is there, with the mode from the start; its directory is made, 0700, if it is not
/// there.
///
/// # Errors
/// What the system says; what was there stays then.
pub fn write_whole(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(contents)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Room for a file that is written at the end: a disk that has become full meanwhile does not refuse it. Until then it is a
/// file of zeros with a dot in front of its name; dropped, it is gone.
#[derive(Debug)]
pub struct Reserved {
    path: PathBuf,
    /// The file, and how much fits; `None` if there was no room even then.
    room: Option<(File, usize)>,
}

impl Reserved {
    /// Reserves so many bytes for the file at `path`, 0600. Where that cannot be done it is written like any other.
    #[must_use]
    pub fn new(path: &Path, bytes: u32) -> Self {
        let mut reserved = Self { path: path.to_owned(), room: None };
        let new = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(reserved.hidden());
        if let Ok(file) = new {
            match posix_fallocate(&file, 0, i64::from(bytes)) {
                Ok(()) => reserved.room = Some((file, usize::try_from(bytes).unwrap_or(usize::MAX))),
                Err(_) => reserved.remove(),
            }
        }
        reserved
    }

    /// Writes the file as a whole, whatever is there.
    ///
    /// # Errors
    /// What the system says; what was there stays then.
    pub fn write(mut self, contents: &[u8]) -> io::Result<()> {
        if let Some((file, room)) = self.room.take()
            && contents.len() <= room
            && file.write_all_at(contents, 0).is_ok()
            && file.set_len(contents.len() as u64).is_ok()
            && fs::rename(self.hidden(), &self.path).is_ok()
        {
            return Ok(());
        }
        // It does not fit, or somebody has taken the room away.
        self.remove();
        write_whole(&self.path, contents, 0o600)
    }

    fn hidden(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}"))
    }

    fn remove(&self) {
        // If it is not there, so much the better.
        let _ = fs::remove_file(self.hidden());
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.room.is_some() {
            self.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::{Reserved, write_whole};

    #[test]
    fn what_was_reserved_is_filled_in_or_goes_away() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("x.json");
        let names = || {
            let entries = fs::read_dir(scratch.path()).expect("reads").flatten();
            entries.map(|entry| entry.file_name().into_string().expect("text")).collect::<Vec<_>>()
        };
        let text = || fs::read_to_string(&path).expect("reads");
        // It fits; it is too large; somebody has removed it.
        for (contents, removed) in [("small", false), (&*"large".repeat(100), false), ("again", true)] {
            let reserved = Reserved::new(&path, 100);
            assert!(names().contains(&".x.json".to_owned()));
            if removed {
                fs::remove_file(scratch.path().join(".x.json")).expect("is there");
            }
            reserved.write(contents.as_bytes()).expect("writes");
            assert_eq!((text().as_str(), names()), (contents, vec!["x.json".to_owned()]));
            assert_eq!(fs::metadata(&path).expect("is there").permissions().mode() & 0o777, 0o600);
        }
        drop(Reserved::new(&path, 100));
        assert_eq!((text().as_str(), names().len()), ("again", 1));
        // Nowhere at all.
        let nowhere = scratch.path().join("file/x.json");
        fs::write(scratch.path().join("file"), "").expect("writes");
        assert!(Reserved::new(&nowhere, 100).write(b"").is_err());
    }

    #[test]
    fn whole_with_its_mode_and_nothing_beside_it() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("new/x.json");
        for (contents, mode) in [("one", 0o600), ("two", 0o755)] {
            write_whole(&path, contents.as_bytes(), mode).expect("writes");
            assert_eq!(fs::read_to_string(&path).expect("reads"), contents);
            assert_eq!(fs::metadata(&path).expect("is there").permissions().mode() & 0o777, mode);
        }
        let directory = path.parent().expect("a directory");
        assert_eq!(fs::read_dir(directory).expect("reads").count(), 1);
        assert_eq!(fs::metadata(directory).expect("is there").permissions().mode() & 0o777, 0o700);
        assert!(write_whole(directory, b"", 0o600).is_err(), "a directory is in the way");
        assert_eq!(fs::read_dir(scratch.path()).expect("reads").count(), 1, "nothing is left of what failed");
    }
}
