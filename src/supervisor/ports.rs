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
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use indexmap::IndexMap;
use nix::errno::Errno;

use super::claims::{Claim, Claimant, claim, claimant};
use super::held::{end_left, hold, hold_soon, let_go};
use crate::diag::Problem;
use crate::plan::{PROCESS_MARK, Plan, PortChoice, Question, Readiness, Unit};
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
            let address = address_of(unit);
            let free = hold(Ipv6Addr::UNSPECIFIED.into(), port).or_else(|_| hold(address, port)).ok();
            let socket = free.or_else(|| {
                let Some(left) = end_left(port) else {
                    taken.push(format!("its port {port} has been taken meanwhile: {}", whose(address, port)));
                    return None;
                };
                let what = "that a process of this job has left, and is killed";
                taken.push(format!("its port {port} was held by {left} {what}"));
                hold_soon(address, port)
            });
            self.held.extend(socket.map(|socket| (name, socket)));
        }
        taken
    }

    /// Lets go of the ports of a process, which is about to bind them itself.
    pub fn release(&mut self, unit: &Unit) {
        for name in names(unit) {
            if let Some(socket) = self.held.swap_remove(&name) {
                let_go(&socket);
            }
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
        "port {port} is free at {address} only: elsewhere it is held by {holder}; a server that wants every address cannot \
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
        let mark = holder.pid.and_then(|pid| proc.variable(pid, PROCESS_MARK));
        let owner = mark.as_deref().and_then(|mark| mark.rsplit_once(':'));
        let whose =
            owner.map(|(job, unit)| format!(", and is part of `{unit}` of the job `{job}`")).unwrap_or_default();
        return format!("it is held by {holder}{whose}");
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
