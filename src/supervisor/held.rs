//! Sockets that hold ports, and who holds a port that is ours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt};

use crate::plan::PROCESS_MARK;
use crate::process;
use crate::procfs::Proc;

/// How long one that is killed is waited for.
const DEATH: Duration = Duration::from_millis(100);

/// A bound socket that does not listen, and is in the way of all others; `::` is every address of both families. Ports
/// whose old connections linger (`TIME_WAIT`) count as free, as they are for servers that set `SO_REUSEADDR`.
pub(super) fn hold(address: IpAddr, port: u16) -> Result<OwnedFd, Errno> {
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

/// Kills what holds a port though its process is over, if that is this job's: it has left its tree and its group, nothing
/// marks it, and only its parent tells where it comes from, which is gymrun. Who that was.
pub(super) fn end_left(port: u16) -> Option<String> {
    let proc = Proc::default();
    let own = nix::unistd::getpid().as_raw();
    let orphans = proc.descendants(&process::adopted());
    let owners = proc.owners_of(&proc.listeners(port), Some(&orphans));
    let marked = |pid: i32| proc.variable(pid, PROCESS_MARK).is_some();
    // Those that a mark tells of belong to another unit that runs.
    let lost = |pid: i32| !proc.ancestors(pid).into_iter().take_while(|above| *above != own).any(marked);
    let left = owners.into_values().flatten().filter(|pid| lost(*pid)).filter_map(|pid| proc.identity(pid));
    let killed: Vec<String> = left
        .filter_map(|process| {
            let named = format!("`{}` (pid {})", proc.command(process.pid), process.pid);
            process::send_signal(process, None).then_some(named)
        })
        .collect();
    (!killed.is_empty()).then(|| killed.join(", "))
}

/// Holds a port whose holder has just been killed, if that dies at once.
pub(super) fn hold_soon(address: IpAddr, port: u16) -> Option<OwnedFd> {
    let end = Instant::now() + DEATH;
    loop {
        match hold(Ipv6Addr::UNSPECIFIED.into(), port).or_else(|_| hold(address, port)) {
            Ok(socket) => return Some(socket),
            Err(_) if Instant::now() >= end => return None,
            Err(_) => std::thread::sleep(DEATH / 50),
        }
    }
}

/// To be called before the socket is closed, so that a server may have the port: another child that is just being executed
/// may still have a copy of it, which with `SO_REUSEADDR` is not in the server's way.
pub(super) fn let_go(socket: &OwnedFd) {
    let _ = setsockopt(socket, sockopt::ReuseAddr, &true);
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
                let_go(&held);
                drop(held);
                let server = serve(port);
                assert!(server.is_some(), "{address}, {kind}");
                drop(copy);
                assert!(hold(address, port).is_err(), "{address}, {kind}");
            }
        }
    }
}
