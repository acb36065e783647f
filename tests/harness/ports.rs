//! Loopback ports that a program under test will listen on.
//!
//! Whoever asks the kernel for a free port and lets it go again may find it taken when it is needed: by another test, or as
//! the own port of some connection. So these come from beside the kernel's range for connections, and from beside those that a
//! gymrun of another test may take; and each is claimed by an abstract socket of its name for as long as the test's process
//! lives.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Mutex;

use gymrun::procfs::{Holder, Proc};

/// Below are the ports of servers that people run, those that gymrun gives to processes of its own accord
/// (20000 to 29999), and those of a case of the supervisor.
const FIRST: u16 = 30_200;
/// Some numbers are left for ranges that begin with one.
const LAST: u16 = 65_500;

static CLAIMS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Whether a job that is over has left a port: nobody listens there, or a test or another job has it by now, which is told by
/// the names that these claim, and by who listens.
pub fn is_free(port: u16) -> bool {
    let (own, proc) = (std::process::id().cast_signed(), Proc::default());
    let is_ours = |holder: &Holder| holder.pid.is_some_and(|pid| pid == own || proc.ancestors(pid).contains(&own));
    // Nothing is bound for this: whoever has just got the port would find it taken.
    let listeners = proc.listeners(port);
    let names = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let claims = [format!("@gymrun/port/{port}"), format!("@gymrun-test-port-{port}")];
    listeners.is_empty()
        || names.lines().filter_map(|line| line.split(' ').next_back()).any(|name| claims.iter().any(|c| c == name))
        || proc.holders(&listeners).iter().any(is_ours)
}

/// A port that nobody has, and no other test gets.
pub fn free_port() -> u16 {
    let [port] = free_ports();
    port
}

/// So many of them, each another.
pub fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    [(); COUNT].map(|()| claim_any())
}

/// The same, but for the one above it, which nobody has either.
pub fn free_pair() -> u16 {
    let found = (0..1000).find_map(|_| {
        let first = free_port();
        let second = first.checked_add(1)?;
        (candidates().contains(&second) && claim(second)).then_some(first)
    });
    found.expect("two free ports side by side")
}

/// Those that the kernel gives to no connection; all, where it may give any.
fn candidates() -> Vec<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u16>().ok());
    let (low, high) = (ends.next().unwrap_or(32_768), ends.next().unwrap_or(60_999));
    let beside: Vec<u16> = (FIRST..=LAST).filter(|port| !(low..=high).contains(port)).collect();
    if beside.len() < 1000 { (FIRST..=LAST).collect() } else { beside }
}

fn claim_any() -> u16 {
    let ports = candidates();
    // A random beginning keeps processes that start together apart.
    let (before, after) = ports.split_at(fastrand::usize(..ports.len()));
    after.iter().chain(before).copied().find(|port| claim(*port)).expect("a free port")
}

fn claim(port: u16) -> bool {
    let name = SocketAddr::from_abstract_name(format!("gymrun-test-port-{port}")).expect("a short name");
    let Ok(claim) = UnixListener::bind_addr(&name) else { return false };
    let free = TcpListener::bind(("127.0.0.1", port)).is_ok();
    if free {
        CLAIMS.lock().expect("nobody panics with it").push(claim);
    }
    free
}
