//! Which gymrun has which port: names that every process of one network has in common.
//!
//! A port belongs to a network namespace, and so do abstract names of Unix sockets: whoever could bind the port sees the
//! name, whatever its user, its container or its `/tmp`. There is no file that is left behind, and the kernel gives the
//! name back when its holder ends, however that happens.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket, sockopt,
};

/// A name that is taken until this is dropped.
pub(super) type Claim = OwnedFd;

fn name(port: u16) -> Result<UnixAddr, Errno> {
    UnixAddr::new_abstract(format!("gymrun/port/{port}").as_bytes())
}

fn open() -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
}

/// Takes a port's name; `None` where the system has no such names, so that nothing but bound sockets guards the port.
///
/// # Errors
/// `EADDRINUSE` if another gymrun has it.
pub(super) fn claim(port: u16) -> Result<Option<Claim>, Errno> {
    let socket = match open() {
        Ok(socket) => socket,
        Err(Errno::EAFNOSUPPORT | Errno::EPERM | Errno::EACCES) => return Ok(None),
        Err(error) => return Err(error),
    };
    match bind(socket.as_raw_fd(), &name(port)?) {
        Ok(()) => {}
        Err(Errno::EPERM | Errno::EACCES | Errno::EINVAL) => return Ok(None),
        Err(error) => return Err(error),
    }
    // Whoever finds it taken connects, and so is told by the kernel whose it is. Nobody accepts.
    listen(&socket, Backlog::MAXCONN)?;
    Ok(Some(socket))
}

/// Who has a port's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claimant {
    Nobody,
    Process(i32),
    /// Its process has no pid here.
    Unseen,
}

/// Asks the kernel whose a port's name is.
pub(super) fn claimant(port: u16) -> Claimant {
    let (Ok(socket), Ok(name)) = (open(), name(port)) else { return Claimant::Nobody };
    match connect(socket.as_raw_fd(), &name) {
        Ok(()) => {}
        // Many have asked before.
        Err(Errno::EAGAIN) => return Claimant::Unseen,
        Err(_) => return Claimant::Nobody,
    }
    match getsockopt(&socket, sockopt::PeerCredentials).map(|holder| holder.pid()) {
        Ok(pid @ 1..) => Claimant::Process(pid),
        _ => Claimant::Unseen,
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::{Claimant, claim, claimant};

    #[test]
    fn a_name_is_taken_once_and_tells_whose_it_is() {
        // No port: nobody else claims it.
        let port = 1;
        let held = claim(port).expect("it is free").expect("Linux has such names");
        assert_eq!(claim(port).map(|claim| claim.is_some()), Err(Errno::EADDRINUSE));
        assert_eq!(claimant(port), Claimant::Process(nix::unistd::getpid().as_raw()));
        drop(held);
        assert_eq!(claimant(port), Claimant::Nobody);
    }
}
