//! Who listens on a TCP port, and who answers at an address.
//!
//! The kernel's socket diagnosis tells every listener of this network namespace with its address and inode, whoever it belongs
//! to, and so do `/proc/net/tcp` and `tcp6`, which are read where it cannot be asked; which process has that inode open is told
//! by `/proc/PID/fd`, for those processes that may be looked at.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::identity::Proc;
use super::listening::ListenerQuery;

/// A socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where. `::` may or may not take connections to IPv4 addresses as well: that is not shown.
    pub address: SocketAddr,
    /// What its descriptors are known by.
    pub inode: u64,
    /// The user who made it.
    pub user: u32,
}

/// The holder of a port, as far as the kernel tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its pid; `None` if it cannot be looked at.
    pub pid: Option<i32>,
    /// Its program, and its script if it has one.
    pub command: String,
    /// Its listener.
    pub listener: Listener,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listener { address, user, .. } = self.listener;
        match self.pid {
            Some(pid) => write!(f, "pid {pid} (`{}`), which listens on {address}", self.command),
            None => write!(f, "a process of user {user} that cannot be looked at, which listens on {address}"),
        }
    }
}

/// State `LISTEN` in `/proc/net/tcp`.
const LISTEN: &str = "0A";

impl Listener {
    /// `None` if the line is not of a listener.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let address = address(fields.nth(1)?)?;
        if fields.nth(1)? != LISTEN {
            return None;
        }
        let user = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Self { address, inode, user })
    }

    /// How well it fits a connection to `asked`: the kernel gives that to the best one. `None` if it does not fit.
    fn fits(&self, asked: IpAddr) -> Option<u8> {
        let own = self.address.ip();
        if own.to_canonical() == asked {
            return Some(0);
        }
        match (own, asked) {
            (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(_)) => Some(1),
            (IpAddr::V6(Ipv6Addr::UNSPECIFIED), _) => Some(2),
            _ => None,
        }
    }
}

/// An address as the tables write it.
pub(super) fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.rsplit_once(':')?;
    // Each four bytes stand there as one number of this machine.
    let word = |index: usize| u32::from_str_radix(ip.get(index * 8..index * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index)?);
            }
            IpAddr::from(bytes)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

impl Proc {
    /// Everybody who listens on `port`, at any address.
    #[must_use]
    pub fn listeners(&self, port: u16) -> Vec<Listener> {
        let listed = || ListenerQuery::open()?.listeners(port);
        if self.is_live()
            && let Some(found) = listed()
        {
            return found;
        }
        let mut found = Vec::new();
        for table in ["net/tcp", "net/tcp6"] {
            let Ok(file) = File::open(self.global(table)) else { continue };
            let mut reader = BufReader::with_capacity(64 << 10, file);
            let mut line = String::new();
            let mut heading = true;
            while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                match Listener::parse(&line) {
                    Some(listener) if listener.address.port() == port => found.push(listener),
                    Some(_) => {}
                    None if heading => heading = false,
                    // Listeners come first: the connections of a busy machine need not be read.
                    None => break,
                }
                line.clear();
            }
        }
        found
    }

    /// Those of them one of whom takes the connections to an address of this machine: several share them if each has
    /// asked for that (`SO_REUSEPORT`).
    #[must_use]
    pub fn answering(&self, asked: SocketAddr) -> Vec<Listener> {
        let asked_ip = asked.ip().to_canonical();
        let ranked: Vec<(u8, Listener)> =
            self.listeners(asked.port()).into_iter().filter_map(|l| Some((l.fits(asked_ip)?, l))).collect();
        let best = ranked.iter().map(|(rank, _)| *rank).min();
        ranked.into_iter().filter(|(rank, _)| Some(*rank) == best).map(|(_, listener)| listener).collect()
    }

    /// Which of these sockets a process has open.
    fn open_sockets(&self, pid: i32, inodes: &HashSet<u64>) -> HashSet<u64> {
        let Ok(descriptors) = fs::read_dir(self.file(pid, "fd")) else { return HashSet::new() };
        descriptors
            .flatten()
            .filter_map(|descriptor| {
                let target = fs::read_link(descriptor.path()).ok()?;
                let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
                inodes.contains(&inode).then_some(inode)
            })
            .collect()
    }

    /// Who has each of these sockets open among `pids`, or among all processes that may be looked at. A socket that nobody
    /// is found to have is not in the map.
    #[must_use]
    pub fn owners_of(&self, listeners: &[Listener], pids: Option<&[i32]>) -> HashMap<u64, Vec<i32>> {
        let inodes: HashSet<u64> = listeners.iter().map(|listener| listener.inode).collect();
        let mut found: HashMap<u64, Vec<i32>> = HashMap::new();
        if inodes.is_empty() {
            return found;
        }
        let all = if pids.is_none() { self.pids().unwrap_or_default() } else { Vec::new() };
        for pid in pids.unwrap_or(&all) {
            for inode in self.open_sockets(*pid, &inodes) {
                found.entry(inode).or_default().push(*pid);
            }
        }
        found
    }

    /// The holders of these listeners, in their order.
    #[must_use]
    pub fn holders(&self, listeners: &[Listener]) -> Vec<Holder> {
        let owners = self.owners_of(listeners, None);
        let holder = |listener: &Listener| {
            let pid = owners.get(&listener.inode).and_then(|pids| pids.first().copied());
            Holder { pid, command: pid.map(|pid| self.command(pid)).unwrap_or_default(), listener: *listener }
        };
        listeners.iter().map(holder).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::net::{SocketAddr, TcpListener};
    use std::time::{Duration, Instant};

    use super::Proc;

    #[test]
    fn the_holder_of_a_listener_is_this_process_in_both_families() {
        let own = i32::try_from(std::process::id()).expect("pids are small");
        let proc = Proc::default();
        for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let at = listener.local_addr().expect("it is bound");
            let found = proc.listeners(at.port());
            assert_eq!(found.iter().map(|l| l.address).collect::<Vec<_>>(), [at]);
            let holders = proc.holders(&found);
            assert_eq!(holders[0].pid, Some(own));
            assert!(holders[0].to_string().ends_with(&format!("which listens on {at}")), "{}", holders[0]);
            assert_eq!(proc.owners_of(&found, Some(&[own]))[&found[0].inode], [own]);
            assert!(proc.owners_of(&found, Some(&[1])).is_empty());
            drop(listener);
            // A child that another test forks at this moment holds it until its exec.
            let end = Instant::now() + Duration::from_mins(1);
            while !proc.listeners(at.port()).is_empty() {
                assert!(Instant::now() < end, "somebody still listens");
                std::thread::yield_now();
            }
        }
    }

    /// A /proc whose listeners on port 8000 are at the given addresses, as the kernel prints them; their inodes are 1, 2, ...
    fn listening(v4: &[&str], v6: &[&str]) -> (tempfile::TempDir, Proc) {
        let root = tempfile::tempdir().expect("a scratch directory");
        fs::create_dir(root.path().join("net")).expect("a scratch directory");
        let mut inode = 0;
        for (file, addresses) in [("tcp", v4), ("tcp6", v6)] {
            let mut text = "  sl  local_address rem_address   st tx_queue rx_queue tr\n".to_owned();
            for address in addresses {
                inode += 1;
                let _ = writeln!(text, "   0: {address}:1F40 0:0000 0A 0:0 00:0 0 1000 0 {inode} 1 0 100 0 0 10 0");
            }
            // A connection, behind which nothing is read.
            text += "   9: 0100007F:1F40 0100007F:9C40 01 0:0 00:0 0 0 0 90 1 0 20 4 30 10 -1\n";
            text += "   9: 0100007F:1F40 0:0000 0A 0:0 00:0 0 0 0 91 1 0 100 0 0 10 0\n";
            fs::write(root.path().join("net").join(file), text).expect("a scratch file");
        }
        let proc = Proc::at(root.path());
        (root, proc)
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_best_listener_for_an_address_answers_and_equals_share() {
        const ANY4: &str = "00000000";
        const OWN4: &str = "0100007F";
        const OTHER4: &str = "020200C0";
        const ANY6: &str = "00000000000000000000000000000000";
        const OWN6: &str = "00000000000000000000000001000000";
        const MAPPED: &str = "0000000000000000FFFF00000100007F";
        type Case = (&'static [&'static str], &'static [&'static str], &'static str, &'static [u64]);
        let cases: [Case; 9] = [
            (&[ANY4, OWN4, OTHER4], &[ANY6], "127.0.0.1:8000", &[2]),
            (&[ANY4, OTHER4], &[ANY6, OWN6], "127.0.0.1:8000", &[1]),
            (&[OTHER4], &[ANY6, OWN6], "127.0.0.1:8000", &[2]),
            (&[ANY4], &[MAPPED], "127.0.0.1:8000", &[2]),
            (&[OTHER4], &[OWN6], "127.0.0.1:8000", &[]),
            (&[ANY4, OWN4], &[ANY6], "[::1]:8000", &[3]),
            (&[ANY4, OWN4], &[ANY6, OWN6, OWN6], "[::1]:8000", &[4, 5]),
            (&[ANY4, ANY4], &[], "192.0.2.2:8000", &[1, 2]),
            (&[ANY4], &[], "192.0.2.2:8001", &[]),
        ];
        for (v4, v6, asked, expected) in cases {
            let (_root, proc) = listening(v4, v6);
            let asked: SocketAddr = asked.parse().expect("an address");
            let found: Vec<u64> = proc.answering(asked).iter().map(|l| l.inode).collect();
            assert_eq!(found, expected, "{v4:?} {v6:?} {asked}");
        }
        let (_root, proc) = listening(&[OTHER4], &[MAPPED]);
        let addresses: Vec<String> = proc.listeners(8000).iter().map(|l| l.address.to_string()).collect();
        assert_eq!(addresses, ["192.0.2.2:8000", "[::ffff:127.0.0.1]:8000"]);
        assert_eq!(proc.listeners(8000)[0].user, 1000);
    }
}
