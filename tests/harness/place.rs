//! Where a gymrun under test runs: cgroups (version 2) in which it may or may not make others, as root or as nobody.
//!
//! All that comes of it is born in the same cgroup or below it, so what is left there at the end got away, whatever it had
//! done to its parents, its session, its environment and its name.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gymrun::procfs::Proc;

use super::component::skip;

const NOBODY: u32 = 65_534;

/// A cgroup of its own for a gymrun, or none.
pub struct Place {
    path: Option<PathBuf>,
    /// Whether a gymrun here must find that it may make cgroups.
    pub has_cgroups: bool,
    user: Option<u32>,
}

impl Place {
    /// Where the test itself runs.
    pub fn here() -> Self {
        Self { path: None, has_cgroups: false, user: None }
    }

    /// Without cgroups of its own, wherever the test itself runs.
    pub fn walked() -> Self {
        Self::make(false, None).unwrap_or_else(Self::here)
    }

    /// One of each kind that can be made: with and without cgroups, as the test's user and, if that is root, as nobody;
    /// empty where there are none.
    pub fn all() -> Vec<Self> {
        let users: &[Option<u32>] = if nix::unistd::geteuid().is_root() { &[None, Some(NOBODY)] } else { &[None] };
        let kinds = users.iter().flat_map(|user| [(true, *user), (false, *user)]);
        let made: Option<Vec<Self>> = kinds.map(|(has_cgroups, user)| Self::make(has_cgroups, user)).collect();
        made.unwrap_or_else(|| {
            skip("cgroups", "no cgroup of version 2 can be made here");
            Vec::new()
        })
    }

    /// One of a kind.
    pub fn make(has_cgroups: bool, user: Option<u32>) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if user.is_some() && !nix::unistd::geteuid().is_root() {
            return None;
        }
        let own = Proc::default().cgroups().unified(std::process::id().cast_signed())?;
        let path = own.join(format!("test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst)));
        fs::create_dir(&path).ok()?;
        let place = Self { path: Some(path.clone()), has_cgroups, user };
        match (has_cgroups, user) {
            // What systemd does where it delegates.
            (true, Some(user)) => {
                for file in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"] {
                    chown(path.join(file), Some(user), Some(user)).ok()?;
                }
            }
            (false, Some(_)) => {}
            // Where systemd runs the machine root needs its mark.
            (true, None) => mark(&path),
            (false, None) => fs::write(path.join("cgroup.max.descendants"), "0").ok()?,
        }
        Some(place)
    }

    /// Starts a command here.
    #[expect(unsafe_code, reason = "a child is moved before it is executed")]
    pub fn put(&self, command: &mut Command) {
        let list = self.path.as_ref().map(|path| {
            File::options().write(true).open(path.join("cgroup.procs")).expect("a cgroup of the test's own")
        });
        let user = self.user;
        let step = move || {
            if let Some(mut list) = list.as_ref() {
                list.write_all(b"0")?;
            }
            if let Some(user) = user {
                nix::unistd::setgroups(&[])?;
                nix::unistd::setgid(user.into())?;
                nix::unistd::setuid(user.into())?;
            }
            Ok(())
        };
        // SAFETY: system calls alone.
        unsafe { command.pre_exec(step) };
    }

    /// Gives what lies there to whoever runs here.
    pub fn give(&self, folder: &Path) {
        let Some(user) = self.user else { return };
        chown(folder, Some(user), Some(user)).expect("the test is root");
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            chown(entry.path(), Some(user), Some(user)).expect("the test is root");
        }
    }

    /// Its directory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The command lines of what lives here.
    pub fn inhabitants(&self) -> Vec<String> {
        self.path.iter().flat_map(|path| inhabitants(path)).collect()
    }

    /// The cgroups below it.
    pub fn below(&self) -> Vec<PathBuf> {
        self.path.iter().flat_map(|path| below(path)).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(path) = &self.path else { return };
        let _ = fs::write(path.join("cgroup.kill"), "1");
        let end = Instant::now() + Duration::from_secs(10);
        while !remove(path) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[expect(unsafe_code, reason = "no library here writes extended attributes")]
fn mark(path: &Path) {
    let path = std::ffi::CString::new(path.to_str().expect("a plain path")).expect("a plain path");
    // SAFETY: whole strings, and one byte of a value. Where the attribute is not known no systemd runs either.
    unsafe { libc::setxattr(path.as_ptr(), c"trusted.delegate".as_ptr(), c"1".as_ptr().cast(), 1, 0) };
}

fn below(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

fn inhabitants(path: &Path) -> Vec<String> {
    let pids = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let own = pids.lines().map(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
    });
    own.chain(below(path).iter().flat_map(|path| inhabitants(path))).collect()
}

fn remove(path: &Path) -> bool {
    below(path).iter().all(|path| remove(path)) && fs::remove_dir(path).is_ok()
}
