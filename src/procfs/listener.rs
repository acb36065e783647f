//! Who listens on a TCP port.

use std::collections::HashSet;
use std::fmt;
use std::fs;

use super::identity::Proc;

/// The holder of a port, as far as the kernel tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its pid; `None` if it belongs to somebody else.
    pub pid: Option<i32>,
    /// Its program, and its script if it has one.
    pub command: String,
    /// The user it runs as.
    pub user: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "pid {pid} (`{}`)", self.command),
            None => write!(f, "a process of user {} that cannot be looked at", self.user),
        }
    }
}

/// State `LISTEN` in `/proc/net/tcp`.
const LISTEN: &str = "0A";

struct Listener {
    inode: u64,
    user: u32,
}

impl Proc {
    fn listeners(&self, port: u16) -> Vec<Listener> {
        let mut found = Vec::new();
        for table in ["net/tcp", "net/tcp6"] {
            let text = fs::read_to_string(self.global(table)).unwrap_or_default();
            found.extend(text.lines().skip(1).filter_map(|line| {
                let mut fields = line.split_ascii_whitespace();
                let local = fields.nth(1)?.rsplit_once(':')?.1;
                let listens = fields.nth(1)? == LISTEN;
                let user = fields.nth(3)?.parse().ok()?;
                let inode = fields.nth(1)?.parse().ok()?;
                (listens && u16::from_str_radix(local, 16) == Ok(port)).then_some(Listener { inode, user })
            }));
        }
        found
    }

    fn has_socket(&self, pid: i32, inodes: &HashSet<u64>) -> bool {
        let Ok(descriptors) = fs::read_dir(self.file(pid, "fd")) else { return false };
        descriptors.flatten().any(|descriptor| {
            fs::read_link(descriptor.path()).is_ok_and(|target| {
                let inode = target.to_str().and_then(|t| t.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
                inode.is_some_and(|inode: u64| inodes.contains(&inode))
            })
        })
    }

    /// Who listens on `port`; `None` if nobody does.
    #[must_use]
    pub fn holder(&self, port: u16) -> Option<Holder> {
        let listeners = self.listeners(port);
        let user = listeners.first()?.user;
        let inodes = listeners.iter().map(|l| l.inode).collect();
        let pid = self.pids().unwrap_or_default().into_iter().find(|pid| self.has_socket(*pid, &inodes));
        Some(Holder { pid, command: pid.map(|pid| self.command(pid)).unwrap_or_default(), user })
    }

    /// Whether one of `pids` listens on `port`; `None` if nobody that the kernel shows does.
    #[must_use]
    pub fn listens(&self, port: u16, pids: impl IntoIterator<Item = i32>) -> Option<bool> {
        let inodes: HashSet<u64> = self.listeners(port).iter().map(|l| l.inode).collect();
        if inodes.is_empty() {
            return None;
        }
        Some(pids.into_iter().any(|pid| self.has_socket(pid, &inodes)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use super::Proc;

    #[test]
    fn the_holder_of_a_listener_is_this_process_in_both_families() {
        let own = i32::try_from(std::process::id()).expect("pids are small");
        let proc = Proc::default();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().expect("it is bound").port();
            let holder = proc.holder(port).expect("somebody listens");
            assert_eq!(holder.pid, Some(own));
            assert!(!holder.command.is_empty());
            assert_eq!(proc.listens(port, [own]), Some(true));
            assert_eq!(proc.listens(port, [1]), Some(false));
            drop(listener);
            // A child that another test forks at this moment holds it until its exec.
            let end = Instant::now() + Duration::from_mins(1);
            while let Some(holder) = proc.holder(port) {
                assert!(Instant::now() < end, "{holder} still listens");
                std::thread::yield_now();
            }
        }
    }
}
