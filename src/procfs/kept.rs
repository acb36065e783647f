//! Files of /proc that are read again and again, on descriptors that stay open.
//!
//! Opening and closing costs more than reading `statm`, and a descriptor is bound to the very process that it was opened
//! for: after that one's end a read fails, whoever has its pid then. There are not always enough descriptors for a large
//! job, so each is kept only while that leaves the rest of gymrun its half; a file beyond that is opened for each read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};

/// No job needs more.
const MOST: u64 = 1 << 20;

/// A read that leaves so much of a page free has reached the end: the kernel's lists come a page at a time.
const ENOUGH: usize = 3072;

/// An open file that counts against the limit. It is closed on exec, as all files of the standard library are.
#[derive(Debug)]
pub(super) struct Kept {
    file: File,
    _ticket: Arc<()>,
}

/// Reads files, and knows how many may stay open.
#[derive(Debug)]
pub(super) struct Files {
    tickets: Arc<()>,
    most: usize,
    buffer: Vec<u8>,
    /// Why a file could not be opened though it may be there.
    trouble: Option<Errno>,
}

impl Files {
    /// Half of the descriptors that this process may have.
    pub(super) fn within_limit() -> Self {
        let soft = getrlimit(Resource::RLIMIT_NOFILE).map_or(256, |(soft, _)| soft);
        Self::with(usize::try_from(soft.min(MOST) / 2).unwrap_or_default())
    }

    /// At most `most` files stay open.
    pub(super) fn with(most: usize) -> Self {
        Self { tickets: Arc::new(()), most, buffer: vec![0; 16 << 10], trouble: None }
    }

    /// How many are open.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        Arc::strong_count(&self.tickets) - 1
    }

    /// All of a file: through `kept`, or through `path` if nothing is kept yet.
    pub(super) fn read(&mut self, kept: &mut Option<Kept>, path: impl FnOnce() -> PathBuf) -> io::Result<&[u8]> {
        let length = if let Some(kept) = kept {
            fill(&kept.file, &mut self.buffer)?
        } else {
            let file = File::open(path()).inspect_err(|error| self.note(error))?;
            let length = fill(&file, &mut self.buffer)?;
            if Arc::strong_count(&self.tickets) <= self.most {
                *kept = Some(Kept { file, _ticket: Arc::clone(&self.tickets) });
            }
            length
        };
        Ok(&self.buffer[..length])
    }

    fn note(&mut self, error: &io::Error) {
        let errno = error.raw_os_error().map(Errno::from_raw);
        if let Some(errno @ (Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM)) = errno {
            self.trouble = Some(errno);
        }
    }

    /// Whether a file could not be opened though it may be there.
    pub(super) fn in_trouble(&self) -> bool {
        self.trouble.is_some()
    }

    /// What kept files from being read since this was asked last: not theirs, but the system's.
    pub(super) fn trouble(&mut self) -> Option<Errno> {
        self.trouble.take()
    }
}

/// All of a file of /proc, by as few reads as can be.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; 4096];
    let length = fill(&File::open(path)?, &mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

fn fill(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(count) => {
                length += count;
                if count < ENOUGH {
                    return Ok(length);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if buffer.len() - length < ENOUGH {
            buffer.resize(2 * buffer.len(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Files;

    #[test]
    fn beyond_the_limit_files_are_opened_each_time_and_a_closed_one_gives_its_place_back() {
        let root = tempfile::tempdir().expect("a scratch directory");
        let path = |name: usize| root.path().join(name.to_string());
        let mut files = Files::with(2);
        let mut kept: Vec<_> = (0..4).map(|_| None).collect();
        for (name, kept) in kept.iter_mut().enumerate() {
            fs::write(path(name), name.to_string()).expect("a scratch file");
            assert_eq!(files.read(kept, || path(name)).expect("it is there"), name.to_string().as_bytes());
        }
        assert_eq!(files.open(), 2);
        // Two go on though their names are gone, and two do not.
        fs::remove_dir_all(root.path()).expect("a scratch directory");
        let read: Vec<bool> =
            kept.iter_mut().enumerate().map(|(name, kept)| files.read(kept, || path(name)).is_ok()).collect();
        assert_eq!(read, [true, true, false, false]);
        kept.remove(0);
        assert_eq!(files.open(), 1);
        assert!(files.trouble().is_none());
    }

    #[test]
    fn a_list_longer_than_the_buffer_is_read_whole() {
        let root = tempfile::tempdir().expect("a scratch directory");
        let path = root.path().join("children");
        let list = (0..20_000).map(|pid| pid.to_string()).collect::<Vec<_>>().join(" ");
        fs::write(&path, &list).expect("a scratch file");
        assert_eq!(Files::with(1).read(&mut None, || path).expect("it is there"), list.as_bytes());
    }
}
