//! Whose answer it was.
//!
//! An answer to a unit's probe counts if its own tree listens there, where the kernel can say so. It does not if the
//! listener belongs to another unit, or to a process that is older than the unit's: then a stranger on its port speaks for
//! it. Whatever cannot be decided (a listener of another user, in a container, behind a tunnel) counts, and is said once.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::host::Report;
use super::machine::UnitId;
use super::resolve::Resolved;
use super::slot::Slot;
use crate::events::{ExitStatus, Explanation, Finding};
use crate::plan::PROCESS_MARK;
use crate::process;
use crate::procfs::{Holder, Identity, Listener, Proc};

/// A /proc that does not answer costs its part of an explanation.
const LIMIT: Duration = Duration::from_secs(2);

/// Judges the answers to the probes of a unit that runs.
#[derive(Debug)]
pub(super) struct Witness {
    pub(super) unit: UnitId,
    /// The unit's own ports: who answers elsewhere was asked on purpose.
    ports: Vec<u16>,
    pub(super) slot: Arc<Slot>,
    pub(super) reports: mpsc::UnboundedSender<Report>,
    /// The sockets that are known to be the unit's: they need not be looked for again.
    known: Mutex<HashSet<u64>>,
}

impl Witness {
    /// Of a unit as it runs now.
    pub(super) fn new(
        unit: UnitId,
        resolved: &Resolved,
        slot: &Arc<Slot>,
        reports: &mpsc::UnboundedSender<Report>,
    ) -> Arc<Self> {
        let (ports, slot) = (resolved.own_ports.clone(), Arc::clone(slot));
        Arc::new(Self { unit, ports, slot, reports: reports.clone(), known: Mutex::default() })
    }

    /// Whether a good answer counts that came from an address, or from a command.
    ///
    /// # Errors
    /// Who answered in the unit's place.
    pub(super) async fn accept(self: Arc<Self>, answered: Option<SocketAddr>) -> Result<(), String> {
        let asked: Vec<SocketAddr> = match answered {
            Some(address) => [address].into_iter().filter(|address| self.ports.contains(&address.port())).collect(),
            // What a command has asked is not known, and it is most likely this.
            None => self.ports.iter().map(|port| (Ipv4Addr::LOCALHOST, *port).into()).collect(),
        };
        let mut doubts = Vec::new();
        for address in asked {
            let witness = Arc::clone(&self);
            // It may read much of /proc: not on the thread of the engine.
            let judged = tokio::task::spawn_blocking(move || witness.judge(address));
            match judged.await.unwrap_or(Ok(Answerer::Itself))? {
                Answerer::Itself => {}
                Answerer::Unseen if answered.is_none() => {}
                Answerer::Unseen => doubts.push(format!("{address}, where nobody is seen to listen")),
                Answerer::Unknown(holder) => doubts.push(format!("{address}, where it is {holder}")),
            }
        }
        if let Some(doubt) = doubts.into_iter().next()
            && self.slot.doubted.set(()).is_ok()
        {
            let message =
                format!("its health check was answered at {doubt}: it counts, though that may be another process");
            let _ = self.reports.send(Report::Warning { unit: Some(self.unit), message, hint: None });
        }
        Ok(())
    }

    /// Adds to an explanation who else listens on the ports of a unit that failed before it was ready: it may have found
    /// them taken.
    pub(super) async fn explain(
        self: Arc<Self>,
        ended: Option<ExitStatus>,
        explanation: Option<Explanation>,
    ) -> Option<Explanation> {
        let failed = ended.is_some_and(|status| status.code.is_some_and(|code| code != 0));
        if !failed || self.slot.was_ready.get().is_some() {
            return explanation;
        }
        let looked = tokio::task::spawn_blocking(move || self.look_for_others());
        let others = tokio::time::timeout(LIMIT, looked).await.ok().and_then(Result::ok).unwrap_or_default();
        let rest = explanation.into_iter().flat_map(|explanation| explanation.findings);
        Explanation::of(others.into_iter().chain(rest).collect())
    }

    /// Where a unit listens that has refused connections to its own ports: the end of a sentence about that. A server at
    /// another address than the one that is asked looks like one that does not listen at all; and it may have begun to
    /// listen when its time was over.
    pub(super) async fn listens_by_now(self: &Arc<Self>, asked: Vec<SocketAddr>) -> Option<String> {
        let witness = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || {
            let own = witness.own_addresses(&asked);
            let there = !own.is_empty() && asked.iter().any(|address| listens_at(*address));
            listens(&own, there)
        });
        tokio::time::timeout(LIMIT, looked).await.ok()?.ok()?
    }

    /// Where the unit listens on those of its ports that were asked.
    fn own_addresses(&self, asked: &[SocketAddr]) -> Vec<SocketAddr> {
        let Some(members) = self.slot.members() else { return Vec::new() };
        let proc = Proc::default();
        let ports = self.ports.iter().filter(|port| asked.iter().any(|address| address.port() == **port));
        let listeners: Vec<Listener> = ports.flat_map(|port| proc.listeners(*port)).collect();
        let tree = proc.members(&[members], &process::adopted()).into_iter().flatten();
        let tree: Vec<i32> = tree.map(|stat| stat.identity.pid).collect();
        let own = proc.owners_of(&listeners, Some(&tree));
        listeners.iter().filter(|listener| own.contains_key(&listener.inode)).map(|listener| listener.address).collect()
    }

    fn look_for_others(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let Some(members) = self.slot.members() else { return found };
        let proc = Proc::default();
        for port in &self.ports {
            let listeners = proc.listeners(*port);
            if listeners.is_empty() {
                continue;
            }
            let tree = proc.members(slice::from_ref(&members), &process::adopted()).into_iter().flatten();
            let tree: Vec<i32> = tree.map(|stat| stat.identity.pid).collect();
            let own = proc.owners_of(&listeners, Some(&tree));
            let others: Vec<Listener> = listeners.into_iter().filter(|other| !own.contains_key(&other.inode)).collect();
            if let Some(holder) = proc.holders(&others).into_iter().next() {
                found.push(Finding::PortTaken { port: *port, holder: holder.to_string() });
            }
        }
        found
    }

    fn judge(&self, address: SocketAddr) -> Result<Answerer, String> {
        let Some(members) = self.slot.members() else { return Ok(Answerer::Itself) };
        if !is_here(address.ip()) {
            return Ok(Answerer::Itself);
        }
        let (root, mark) = (members.root, members.mark.clone());
        let proc = Proc::default();
        let listeners = proc.answering(address);
        if listeners.is_empty() {
            return Ok(Answerer::Unseen);
        }
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.iter().all(|listener| known().contains(&listener.inode)) {
            return Ok(Answerer::Itself);
        }
        let mut mine = proc.owners_of(&listeners, Some(&[root.pid]));
        // Most servers listen themselves: then the tree, for which all children of gymrun are looked through, need not be walked.
        if mine.len() < listeners.len() || proc.identity(root.pid) != Some(root) {
            let tree = proc.members(&[members], &process::adopted()).into_iter().flatten();
            let tree: Vec<i32> = tree.map(|stat| stat.identity.pid).collect();
            mine = proc.owners_of(&listeners, Some(&tree));
        }
        known().extend(mine.keys());
        // Several may share an address: each of them may be the one that answers.
        let others: Vec<Listener> =
            listeners.into_iter().filter(|listener| !mine.contains_key(&listener.inode)).collect();
        let owners = proc.owners_of(&others, None);
        let mut unknown = None;
        for listener in others {
            let pids = owners.get(&listener.inode).map_or(&[] as &[i32], Vec::as_slice);
            let relations: Vec<(i32, Relation)> =
                pids.iter().filter_map(|pid| Some((*pid, relation(&proc, *pid, root, &mark)?))).collect();
            if relations.iter().any(|(_, relation)| *relation == Relation::Own) {
                continue;
            }
            let holder = |pid: Option<i32>| {
                let command = pid.map(|pid| proc.command(pid)).unwrap_or_default();
                Holder { pid, command, listener }
            };
            let stranger = relations.iter().find_map(|(pid, relation)| match relation {
                Relation::Stranger(why) => Some((*pid, why)),
                _ => None,
            });
            if let Some((pid, why)) = stranger {
                let holder = holder(Some(pid));
                return Err(format!("port {} is answered by {holder}, not by this process: it {why}", address.port()));
            }
            unknown = Some(holder(relations.first().map(|(pid, _)| *pid)));
        }
        Ok(unknown.map_or(Answerer::Itself, |holder| Answerer::Unknown(Box::new(holder))))
    }
}

/// Whether somebody takes a connection by now: what a listener at `::` takes cannot be seen otherwise.
fn listens_at(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, LIMIT / 2).is_ok()
}

/// `there`: also where it is asked.
fn listens(own: &[SocketAddr], there: bool) -> Option<String> {
    let shown: Vec<String> = own.iter().map(SocketAddr::to_string).collect();
    let advice = if there {
        ", where it is asked: it needs a longer `health_check.timeout_seconds`"
    } else {
        ": `health_check.host` says where it is asked, if not at 127.0.0.1"
    };
    (!shown.is_empty()).then(|| format!("; by now it listens on {}{advice}", shown.join(", ")))
}

enum Answerer {
    /// The unit.
    Itself,
    /// Nobody is seen to listen there: what answers is in another network, or has gone.
    Unseen,
    /// Somebody of whom it is not known what he has to do with the unit.
    Unknown(Box<Holder>),
}

/// What a process has to do with a unit.
#[derive(Debug, PartialEq, Eq)]
enum Relation {
    Own,
    /// It cannot be the unit's, and why: the end of a sentence about it.
    Stranger(String),
    /// Started by somebody else on the unit's behalf, or not.
    Open,
}

/// `None` if it has gone.
fn relation(proc: &Proc, pid: i32, root: Identity, mark: &str) -> Option<Relation> {
    let stat = proc.stat(pid)?;
    if stat.identity.started < root.started {
        return Some(Relation::Stranger("is older".into()));
    }
    let own = nix::unistd::getpid().as_raw();
    let mut next = Some(stat);
    while let Some(stat) = next.filter(|stat| stat.identity.pid != own) {
        if let Some(found) = proc.variable(stat.identity.pid, PROCESS_MARK) {
            let value = mark.split_once('=').map_or(mark, |(_, value)| value);
            return Some(match found.rsplit_once(':') {
                _ if found == value => Relation::Own,
                Some((job, name)) if value.rsplit_once(':').is_some_and(|(own, _)| own == job) => {
                    Relation::Stranger(format!("is part of `{name}`"))
                }
                Some((job, name)) => Relation::Stranger(format!("is part of `{name}` of the job `{job}`")),
                None => Relation::Open,
            });
        }
        next = proc.stat(stat.parent);
    }
    Some(Relation::Open)
}

/// Whether an address is this machine's: what listens elsewhere is not seen here.
fn is_here(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::{listens, listens_at};

    #[test]
    fn who_listens_too_late_is_not_told_to_listen_elsewhere() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("it is bound");
        assert!(listens_at(address));
        let late = listens(&[address], true).expect("it listens");
        assert!(late.contains("timeout_seconds") && !late.contains("health_check.host"), "{late}");
        drop(listener);
        assert!(!listens_at(address));
        let elsewhere = listens(&[address], false).expect("it listens");
        assert!(elsewhere.contains("health_check.host") && !elsewhere.contains("timeout_seconds"), "{elsewhere}");
        assert_eq!(listens(&[], false), None);
    }
}
