//! Choosing and reserving ports, all in one step.
//!
//! A chosen port is held twice. Sockets are bound to it (not listening) in both address families until right before its
//! process is spawned, so that nobody's random port falls on it; and a byte of one file per user and host is locked for
//! as long as gymrun lives, so that two gymrun processes never choose the same, even while a server has not bound yet.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};

use indexmap::IndexMap;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, SockaddrLike, bind, setsockopt, socket, sockopt,
};

use crate::diag::Problem;
use crate::plan::{Plan, PortChoice, Unit};
use crate::procfs::Proc;

/// The ports of a job: `process`, or `process.key`, and the number.
pub type Ports = IndexMap<String, u16>;

/// The name of a port among [`Ports`].
#[must_use]
pub fn port_name(process: &str, key: Option<&str>) -> String {
    key.map_or_else(|| process.to_owned(), |key| format!("{process}.{key}"))
}

/// What keeps the chosen ports ours.
#[derive(Debug, Default)]
pub struct Reservations {
    ports: Ports,
    held: IndexMap<String, Vec<OwnedFd>>,
    /// Unlocked when closed.
    _locks: Option<File>,
}

impl Reservations {
    /// Holds the ports of a process again that is to be started once more, where nobody else has taken them meanwhile:
    /// the process itself will say so.
    pub fn hold_again(&mut self, unit: &Unit) {
        let keys = unit.port.iter().map(|_| None).chain(unit.ports.keys().map(|key| Some(key.as_str())));
        for name in keys.map(|key| port_name(&unit.name, key)) {
            if let Some(sockets) = self.ports.get(&name).and_then(|port| hold_both(*port).ok()) {
                self.held.insert(name, sockets);
            }
        }
    }

    /// Lets go of the ports of a process, which is about to bind them itself.
    pub fn release(&mut self, unit: &Unit) {
        self.held.shift_remove(&port_name(&unit.name, None));
        for key in unit.ports.keys() {
            self.held.shift_remove(&port_name(&unit.name, Some(key)));
        }
    }
}

struct Wanted<'a> {
    unit: &'a Unit,
    key: Option<&'a str>,
    choice: PortChoice,
}

/// Chooses and reserves every port of a plan: fixed ones first, so that no other choice takes them.
///
/// # Errors
/// A fixed port is taken, or a range has none left: the problem names the port, the process and the holder.
pub fn choose(plan: &Plan) -> Result<(Ports, Reservations), Problem> {
    let mut wanted: Vec<Wanted<'_>> = Vec::new();
    for unit in &plan.units {
        wanted.extend(unit.port.map(|choice| Wanted { unit, key: None, choice }));
        wanted.extend(unit.ports.iter().map(|(key, choice)| Wanted { unit, key: Some(key), choice: *choice }));
    }
    let locks = lock_file();
    let mut taken = HashSet::new();
    let mut chosen: IndexMap<usize, (u16, Vec<OwnedFd>)> = IndexMap::new();
    let rank = |choice: PortChoice| match choice {
        PortChoice::Fixed(_) => 0,
        PortChoice::Range(..) => 1,
        PortChoice::Auto => 2,
    };
    for turn in 0..=2 {
        for (index, want) in wanted.iter().enumerate().filter(|(_, w)| rank(w.choice) == turn) {
            let found = candidates(want.choice, plan)
                .filter(|port| !taken.contains(port))
                .find_map(|port| reserve(port, locks.as_ref()).ok().map(|held| (port, held)));
            let Some((port, held)) = found else { return Err(none_left(want, plan, &taken, locks.as_ref())) };
            taken.insert(port);
            chosen.insert(index, (port, held));
        }
    }
    let mut ports = Ports::new();
    let mut held = IndexMap::new();
    for (index, want) in wanted.iter().enumerate() {
        if let Some((port, sockets)) = chosen.swap_remove(&index) {
            let name = port_name(&want.unit.name, want.key);
            ports.insert(name.clone(), port);
            held.insert(name, sockets);
        }
    }
    Ok((ports.clone(), Reservations { ports, held, _locks: locks }))
}

fn candidates(choice: PortChoice, plan: &Plan) -> Box<dyn Iterator<Item = u16> + '_> {
    match choice {
        PortChoice::Fixed(port) => Box::new(std::iter::once(port)),
        PortChoice::Range(low, high) => Box::new(low..=high),
        PortChoice::Auto => {
            let (low, high) = plan.ports.auto;
            // A random start keeps jobs that begin together apart; then round the whole range once.
            let start = fastrand::u16(low..=high.max(low));
            Box::new((start..=high).chain(low..start).filter(|port| !plan.ports.avoid.contains(port)))
        }
    }
}

/// Holds a port in both families, and its byte of the lock file.
fn reserve(port: u16, locks: Option<&File>) -> Result<Vec<OwnedFd>, Errno> {
    let sockets = hold_both(port)?;
    if let Some(file) = locks {
        fcntl(file, FcntlArg::F_SETLK(&lock_of(port)))?;
    }
    Ok(sockets)
}

/// Holds a port in both families.
fn hold_both(port: u16) -> Result<Vec<OwnedFd>, Errno> {
    let mut sockets =
        vec![hold(AddressFamily::Inet, &SockaddrIn::from(std::net::SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)))?];
    let any = SockaddrIn6::from(std::net::SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0));
    match hold(AddressFamily::Inet6, &any) {
        Ok(socket) => sockets.push(socket),
        // A host without that family.
        Err(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL) => {}
        Err(error) => return Err(error),
    }
    Ok(sockets)
}

/// A bound socket that does not listen. Ports whose old connections linger (`TIME_WAIT`) count as free.
fn hold(family: AddressFamily, address: &dyn SockaddrLike) -> Result<OwnedFd, Errno> {
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    if family == AddressFamily::Inet6 {
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    bind(socket.as_raw_fd(), address)?;
    Ok(socket)
}

fn lock_of(port: u16) -> libc::flock {
    libc::flock {
        l_type: libc::c_short::try_from(libc::F_WRLCK).unwrap_or(1),
        l_whence: libc::c_short::try_from(libc::SEEK_SET).unwrap_or(0),
        l_start: i64::from(port),
        l_len: 1,
        l_pid: 0,
    }
}

/// The file whose bytes stand for ports. Without it (a full disk, a foreign file in its place) the sockets remain.
fn lock_file() -> Option<File> {
    let user = nix::unistd::geteuid().as_raw();
    // The same for everybody: an ssh session and a step of a job on one machine have other runtime directories.
    let path = format!("/tmp/gymrun-ports-{user}");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    let found = file.metadata().ok()?;
    (found.uid() == user && found.is_file()).then_some(file)
}

/// The gymrun that has reserved a port, if one has.
fn reserved_by(port: u16, locks: Option<&File>) -> Option<i32> {
    let mut asked = lock_of(port);
    fcntl(locks?, FcntlArg::F_GETLK(&mut asked)).ok()?;
    (i32::from(asked.l_type) != libc::F_UNLCK).then_some(asked.l_pid)
}

fn none_left(want: &Wanted<'_>, plan: &Plan, taken: &HashSet<u16>, locks: Option<&File>) -> Problem {
    let name = &want.unit.name;
    let group = match want.unit.kind {
        crate::plan::Kind::Service => "services.",
        crate::plan::Kind::Server => "servers.",
        crate::plan::Kind::Collector | crate::plan::Kind::Driver => "",
    };
    let path = match want.key {
        None => format!("{group}{name}.port"),
        Some(key) => format!("{group}{name}.ports.{key}"),
    };
    let whose = |port: u16| {
        if taken.contains(&port) {
            return "another process of this job".to_owned();
        }
        let proc = Proc::default();
        match (proc.holder(port), reserved_by(port, locks)) {
            (Some(holder), _) => holder.to_string(),
            (None, Some(pid)) => format!("pid {pid} (`{}`), which has reserved it", proc.command(pid)),
            (None, None) => match reserve(port, None) {
                Err(Errno::EACCES) => "the system: only root may use it".to_owned(),
                _ => "a process that cannot be looked at".to_owned(),
            },
        }
    };
    let problem = match want.choice {
        PortChoice::Fixed(port) => {
            Problem::new(format!("port {port} of `{name}` is busy: it is held by {}", whose(port)))
                .hint("stop the holder, or write `\"auto\"` or a range such as `\"8000-8099\"` for the port")
        }
        PortChoice::Range(low, high) => {
            let holder = if low == high { String::new() } else { format!(" ({low} by {})", whose(low)) };
            Problem::new(format!("no port of {low}-{high} is free for `{name}`{holder}")).hint("give a wider range")
        }
        PortChoice::Auto => {
            let (low, high) = plan.ports.auto;
            Problem::new(format!("no port of {low}-{high} is free for `{name}`")).hint("give a wider `ports.auto`")
        }
    };
    problem.at(path).in_file(want.unit.location.clone())
}
