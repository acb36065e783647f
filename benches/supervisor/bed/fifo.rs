//! Pipes with names, through which children say that they run.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;

/// One of them, held open at both ends so that nobody waits for the other.
pub struct Fifo {
    path: PathBuf,
    file: File,
}

impl Fifo {
    pub fn make(path: PathBuf) -> Self {
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).expect("a pipe with a name");
        let nonblocking = nix::libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(&path).expect("opens");
        Self { path, file }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets one reader go on.
    pub fn say(&mut self) {
        self.file.write_all(b".").expect("writes");
    }

    /// Waits until so many have said something; whether they did in time.
    pub fn hear(&mut self, mut count: usize, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let mut bytes = [0; 4096];
        while count > 0 {
            let most = count.min(bytes.len());
            match self.file.read(&mut bytes[..most]) {
                Ok(read) => count -= read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let wait = PollTimeout::try_from(left.min(Duration::from_mins(1))).expect("a short time");
                    let mut events = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
                    poll(&mut events, wait).expect("polls");
                }
                Err(error) => panic!("a pipe with a name cannot be read: {error}"),
            }
        }
        true
    }
}
