//! Choosing and reserving ports, all in one step.
//!
//! A chosen port is held twice. A socket is bound to it (not listening) until right before its process is spawned, so that
//! nobody's random port falls on it; and its name is taken for as long as gymrun lives ([`super::claims`]), so that two
//! gymrun processes never choose the same, even while a server has not bound yet.
//!
//! A port of a range, or an `auto` one, is free at every address of both families. A fixed one is free if a server can
//! listen at the address where gymrun and the other processes look for it, 127.0.0.1 unless its health check names another.
//! Whoever listens on it at other addresses is a warning: a server that wants all addresses will not start, and clients
//! that take `localhost` for `::1` may reach that one.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};

use indexmap::IndexMap;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt};

use super::claims::{Claim, Claimant, claim, claimant};
use crate::diag::Problem;
use crate::plan::{Plan, PortChoice, Question, Readiness, Unit};
use crate::procfs::{Listener, Proc};

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
    held: IndexMap<String, OwnedFd>,
    /// Held and never looked at.
    claims: Vec<Claim>,
    /// What the author should know of a port: the process, and a lower-case fragment.
    pub warnings: Vec<(String, String)>,
}

impl Reservations {
    /// Holds the ports of a process again that is to be started once more. Whoever has taken one meanwhile is told: a
    /// lower-case fragment for each.
    pub fn hold_again(&mut self, unit: &Unit) -> Vec<String> {
        let mut taken = Vec::new();
        for name in names(unit) {
            let Some(port) = self.ports.get(&name).copied() else { continue };
            match hold(Ipv6Addr::UNSPECIFIED.into(), port).or_else(|_| hold(address_of(unit), port)) {
                Ok(socket) => drop(self.held.insert(name, socket)),
                Err(_) => {
                    taken.push(format!("its port {port} has been taken meanwhile: {}", whose(address_of(unit), port)));
                }
            }
        }
        taken
    }

    /// Lets go of the ports of a process, which is about to bind them itself.
    pub fn release(&mut self, unit: &Unit) {
        for name in names(unit) {
            self.held.swap_remove(&name).map(let_go);
        }
    }
}

fn names(unit: &Unit) -> impl Iterator<Item = String> {
    let keys = unit.port.iter().map(|_| None).chain(unit.ports.keys().map(|key| Some(key.as_str())));
    keys.map(|key| port_name(&unit.name, key))
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
    let mut reservations = Reservations::default();
    let mut taken = HashSet::new();
    let mut chosen: IndexMap<usize, (u16, OwnedFd)> = IndexMap::new();
    let rank = |choice: PortChoice| match choice {
        PortChoice::Fixed(_) => 0,
        PortChoice::Range(..) => 1,
        PortChoice::Auto => 2,
    };
    for turn in 0..=2 {
        for (index, want) in wanted.iter().enumerate().filter(|(_, w)| rank(w.choice) == turn) {
            let mut found = None;
            for port in candidates(want.choice, plan).filter(|port| !taken.contains(port)) {
                match reserve(want, port) {
                    Ok(reserved) => {
                        found = Some((port, reserved));
                        break;
                    }
                    Err(Errno::EADDRINUSE | Errno::EACCES | Errno::EPERM) => {}
                    Err(error) => return Err(unreservable(want, port, error)),
                }
            }
            let Some((port, Reserved { socket, claim, warning })) = found else {
                return Err(none_left(want, plan, &taken));
            };
            taken.insert(port);
            reservations.claims.extend(claim);
            reservations.warnings.extend(warning.map(|warning| (want.unit.name.clone(), warning)));
            chosen.insert(index, (port, socket));
        }
    }
    for (index, want) in wanted.iter().enumerate() {
        if let Some((port, socket)) = chosen.swap_remove(&index) {
            let name = port_name(&want.unit.name, want.key);
            reservations.ports.insert(name.clone(), port);
            reservations.held.insert(name, socket);
        }
    }
    Ok((reservations.ports.clone(), reservations))
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

/// A port that is held.
struct Reserved {
    socket: OwnedFd,
    claim: Option<Claim>,
    warning: Option<String>,
}

fn reserve(want: &Wanted<'_>, port: u16) -> Result<Reserved, Errno> {
    let everywhere = hold(Ipv6Addr::UNSPECIFIED.into(), port);
    let (socket, warning) = match (everywhere, want.choice) {
        (Err(Errno::EADDRINUSE), PortChoice::Fixed(_)) => {
            let address = address_of(want.unit);
            (hold(address, port)?, beside(address, port))
        }
        (held, _) => (held?, None),
    };
    Ok(Reserved { socket, claim: claim(port)?, warning })
}

/// A bound socket that does not listen, and is in the way of all others; `::` is every address of both families. Ports
/// whose old connections linger (`TIME_WAIT`) count as free, as they are for servers that set `SO_REUSEADDR`.
fn hold(address: IpAddr, port: u16) -> Result<OwnedFd, Errno> {
    let held = hold_one(address, port);
    match held {
        // A host without that family.
        Err(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL) if address == IpAddr::from(Ipv6Addr::UNSPECIFIED) => {
            hold_one(Ipv4Addr::UNSPECIFIED.into(), port)
        }
        held => held,
    }
}

fn hold_one(address: IpAddr, port: u16) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    if address.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6V6Only, &!address.is_unspecified())?;
    }
    let place = SockaddrStorage::from(SocketAddr::new(address, port));
    // With `SO_REUSEADDR` it would be in nobody's way who sets that too, as most servers do. The kernel remembers of a port
    // whether its first socket had that, so it is only set where old connections were there before, and taken back.
    match bind(socket.as_raw_fd(), &place) {
        Err(Errno::EADDRINUSE) => {
            setsockopt(&socket, sockopt::ReuseAddr, &true)?;
            bind(socket.as_raw_fd(), &place)?;
            setsockopt(&socket, sockopt::ReuseAddr, &false)?;
        }
        bound => bound?,
    }
    Ok(socket)
}

/// A server may have the port now. Another child that is just being executed may still have a copy of the socket: with
/// `SO_REUSEADDR` that is not in the server's way.
fn let_go(socket: OwnedFd) {
    let _ = setsockopt(&socket, sockopt::ReuseAddr, &true);
}

/// Where a process is looked for: at 127.0.0.1, unless its health check names another address.
fn address_of(unit: &Unit) -> IpAddr {
    let host = match &unit.readiness {
        Readiness::Probe(probe) => literal_host(&probe.question),
        Readiness::Started | Readiness::Exited { .. } => None,
    };
    host.filter(|address| !address.is_unspecified()).unwrap_or(Ipv4Addr::LOCALHOST.into())
}

fn literal_host(question: &Question) -> Option<IpAddr> {
    let host = question.host.as_ref()?.as_literal()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Who listens on a port without being in the way of a server at an address.
fn beside(address: IpAddr, port: u16) -> Option<String> {
    let proc = Proc::default();
    let others: Vec<Listener> = proc.listeners(port);
    let holder = proc.holders(&others).into_iter().next()?;
    let loopback = |ip: IpAddr| ip.to_canonical() == IpAddr::from(Ipv6Addr::LOCALHOST) || ip.is_unspecified();
    let clients = if others.iter().any(|other| loopback(other.address.ip())) && address.is_ipv4() {
        ", and clients may be led there by the name `localhost`"
    } else {
        ""
    };
    Some(format!(
        "port {port} is free at {address} only, since {holder} has it elsewhere: a server that wants every address cannot \
         have it{clients}"
    ))
}

/// Who is in the way of a server at an address.
fn whose(address: IpAddr, port: u16) -> String {
    let proc = Proc::default();
    let all = proc.listeners(port);
    let in_the_way = |listener: &&Listener| {
        let other = listener.address.ip();
        other.is_unspecified() || other.to_canonical() == address
    };
    // Whoever has the very address is in the way for sure; who has `::` may leave IPv4 alone.
    let mut near: Vec<Listener> = all.iter().filter(in_the_way).copied().collect();
    near.sort_by_key(|listener| {
        (listener.address.ip().is_unspecified(), listener.address.is_ipv6() != address.is_ipv6())
    });
    let shown = if near.is_empty() { &all } else { &near };
    if let Some(holder) = proc.holders(shown).into_iter().next() {
        return format!("it is held by {holder}");
    }
    match claimant(port) {
        Claimant::Process(pid) => format!("it is held by pid {pid} (`{}`), which has reserved it", proc.command(pid)),
        Claimant::Unseen => "it is held by a gymrun in another container, which has reserved it".to_owned(),
        Claimant::Nobody => match hold(Ipv6Addr::UNSPECIFIED.into(), port) {
            Err(Errno::EACCES) => "it is held by the system: only root may use it".to_owned(),
            _ => "it is held by a process that does not listen, or by connections that are still open".to_owned(),
        },
    }
}

/// The system itself refuses: another port would fare no better.
fn unreservable(want: &Wanted<'_>, port: u16, error: Errno) -> Problem {
    let problem = Problem::new(format!("port {port} of `{}` cannot be reserved: {}", want.unit.name, error.desc()));
    let problem = match error {
        Errno::EMFILE => problem.hint("raise the limit of open files (`ulimit -n`): each port takes two"),
        _ => problem,
    };
    problem.at(path_of(want)).in_file(want.unit.location.clone())
}

fn path_of(want: &Wanted<'_>) -> String {
    let name = &want.unit.name;
    let group = match want.unit.kind {
        crate::plan::Kind::Service => "services.",
        crate::plan::Kind::Server => "servers.",
        crate::plan::Kind::Collector | crate::plan::Kind::Driver => "",
    };
    match want.key {
        None => format!("{group}{name}.port"),
        Some(key) => format!("{group}{name}.ports.{key}"),
    }
}

fn none_left(want: &Wanted<'_>, plan: &Plan, taken: &HashSet<u16>) -> Problem {
    let name = &want.unit.name;
    let whose = |port: u16| {
        if taken.contains(&port) {
            return "it is held by another process of this job".to_owned();
        }
        whose(address_of(want.unit), port)
    };
    let problem = match want.choice {
        PortChoice::Fixed(port) => Problem::new(format!("port {port} of `{name}` is busy: {}", whose(port)))
            .hint("stop the holder, or write `\"auto\"` or a range such as `\"8000-8099\"` for the port"),
        PortChoice::Range(low, high) => {
            Problem::new(format!("no port of {low}-{high} is free for `{name}` ({low}: {})", whose(low)))
                .hint("give a wider range")
        }
        PortChoice::Auto => {
            let (low, high) = plan.ports.auto;
            Problem::new(format!("no port of {low}-{high} is free for `{name}`")).hint("give a wider `ports.auto`")
        }
    };
    problem.at(path_of(want)).in_file(want.unit.location.clone())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    use super::{hold, let_go};

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// As most servers do: with `SO_REUSEADDR`.
    fn serve(port: u16) -> Option<TcpListener> {
        TcpListener::bind((LOOPBACK, port)).ok()
    }

    fn fresh() -> u16 {
        let spare = TcpListener::bind((LOOPBACK, 0)).expect("loopback");
        spare.local_addr().expect("it is bound").port()
    }

    /// One whose server has just closed a connection and ended.
    fn lingering() -> u16 {
        let server = TcpListener::bind((LOOPBACK, 0)).expect("loopback");
        let address = server.local_addr().expect("it is bound");
        let mut client = TcpStream::connect(address).expect("loopback");
        drop(server.accept().expect("somebody has connected"));
        client.read_to_end(&mut Vec::new()).expect("an open connection");
        address.port()
    }

    #[test]
    fn a_held_port_is_in_the_way_of_everybody_until_it_is_let_go() {
        for address in [Ipv6Addr::UNSPECIFIED.into(), LOOPBACK] {
            for (port, kind) in [(fresh(), "fresh"), (lingering(), "lingering")] {
                let held = hold(address, port).expect("it is free");
                assert!(serve(port).is_none(), "{address}, {kind}");
                let copy: OwnedFd = held.try_clone().expect("a copy");
                let_go(held);
                let server = serve(port);
                assert!(server.is_some(), "{address}, {kind}");
                drop(copy);
                assert!(hold(address, port).is_err(), "{address}, {kind}");
            }
        }
    }
}
