//! Free space of the file system that a path is on.

use std::fmt;
use std::path::Path;

use nix::sys::statvfs::statvfs;

/// With no more bytes left than this, no file system counts as having room, however small a share that is.
const NEARLY_FULL: u64 = 16 << 20;
/// The same for files.
const NEARLY_NO_FILES: u64 = 16;

/// What a file system has left. Quotas of a user are not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its size in bytes.
    pub total: u64,
    /// What a process without privileges may still write, in bytes.
    pub free: u64,
    /// How many files it may have; 0 if it has no such limit.
    pub files: u64,
    /// How many more files a process without privileges may make.
    pub free_files: u64,
}

impl Space {
    /// Of the file system that `path` is on; `None` if it is not there, or does not say.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let stat = statvfs(path).ok()?;
        let bytes = |blocks: libc::fsblkcnt_t| blocks.saturating_mul(stat.fragment_size());
        let space = Self {
            total: bytes(stat.blocks()),
            free: bytes(stat.blocks_available()),
            files: stat.files(),
            free_files: stat.files_available(),
        };
        // A file system that is none (/proc) has no size.
        (space.total > 0).then_some(space)
    }

    /// Whether writing fails now, or will at once: at most 2 % and at most 16 MiB are left.
    #[must_use]
    pub fn full(&self) -> bool {
        self.free <= (self.total / 50).min(NEARLY_FULL)
    }

    /// The same for the making of files: at most 2 % and at most 16 are left.
    #[must_use]
    pub fn out_of_files(&self) -> bool {
        self.files > 0 && self.free_files <= (self.files / 50).min(NEARLY_NO_FILES)
    }
}

/// What is left of how much: bytes, or files if those are what it lacks.
impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.out_of_files() && !self.full() {
            return write!(f, "{} of {} files left", self.free_files, self.files);
        }
        write!(f, "{} of {} left", crate::diag::bytes(self.free), crate::diag::bytes(self.total))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Space;

    #[test]
    fn a_file_system_is_full_before_its_last_byte() {
        let space = |total: u64, free: u64| Space { total, free, files: 0, free_files: 0 };
        assert!(space(1 << 40, 0).full());
        assert!(space(1 << 40, 16 << 20).full());
        assert!(!space(1 << 40, 17 << 20).full());
        // A small one, as containers have it at /dev/shm.
        assert!(space(64 << 20, 1 << 20).full());
        assert!(!space(64 << 20, 2 << 20).full());
        assert!(!space(64 << 20, 2 << 20).out_of_files(), "it has no limit on files");
        assert!(Space { files: 1000, free_files: 3, ..space(1 << 30, 1 << 29) }.out_of_files());
    }

    #[test]
    fn what_is_left_is_said_in_what_it_lacks() {
        let space = Space { total: 64 << 20, free: 0, files: 100, free_files: 1 };
        assert_eq!(space.to_string(), "0 B of 64.0 MiB left");
        assert_eq!(Space { free: 32 << 20, ..space }.to_string(), "1 of 100 files left");
    }

    #[test]
    fn this_machine_says_how_much_it_has_and_proc_has_nothing() {
        let here = Space::of(Path::new(".")).expect("files are kept somewhere");
        assert!(here.total > 0 && here.free <= here.total);
        assert_eq!(Space::of(Path::new("/proc")), None);
        assert_eq!(Space::of(Path::new("/nowhere/at/all")), None);
    }
}
