//! Whether anybody listens at an address, asked of the kernel in one message.
//!
//! Reading `net/tcp` costs the more the more sockets there are, and a connection that is refused costs four packets. The
//! kernel's socket diagnosis looks one address up in its table of listeners, as it does for a connection.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::OnceLock;

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// `TCP_LISTEN`, as a set of states.
const LISTEN: u32 = 1 << 10;
/// A header, and `inet_diag_req_v2`.
const SIZE: u32 = 72;

/// Asks for listeners.
#[derive(Debug)]
pub struct ListenerQuery {
    socket: OwnedFd,
    sequence: u32,
}

impl ListenerQuery {
    /// `None` where the kernel cannot be asked: it has to find a listener of this process first, since "nobody" is also
    /// what one without this facility says.
    #[must_use]
    pub fn open() -> Option<Self> {
        static WORKS: OnceLock<bool> = OnceLock::new();
        let works = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            let address = listener.as_ref().ok().and_then(|listener| listener.local_addr().ok());
            let mut query = Self::untested();
            address.is_some_and(|address| query.as_mut().and_then(|query| query.listens(address)) == Some(true))
        };
        if *WORKS.get_or_init(works) { Self::untested() } else { None }
    }

    fn untested() -> Option<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Datagram, flags, SockProtocol::NetlinkSockDiag).ok()?;
        Some(Self { socket, sequence: 0 })
    }

    /// Whether anybody would take a connection to an address of this machine; `None` if the kernel does not say.
    pub fn listens(&mut self, address: SocketAddr) -> Option<bool> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = message(address, self.sequence);
        if send(self.socket.as_raw_fd(), &message, MsgFlags::empty()).ok()? != message.len() {
            return None;
        }
        // The kernel has answered before it returned.
        let mut answer = [0; 1024];
        let length = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT).ok()?;
        let answer = &answer[..length];
        let word = |at: usize| answer.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        if word(8).map(u32::from_ne_bytes) != Some(self.sequence) {
            return None;
        }
        let kind = answer.get(4..6).and_then(|bytes| <[u8; 2]>::try_from(bytes).ok()).map(u16::from_ne_bytes)?;
        match (kind, word(16).map(i32::from_ne_bytes)) {
            (BY_FAMILY, _) => Some(true),
            (ERROR, Some(error)) if error == -libc::ENOENT => Some(false),
            _ => None,
        }
    }
}

/// A header and a question for one socket: `struct nlmsghdr`, `struct inet_diag_req_v2`.
fn message(address: SocketAddr, sequence: u32) -> Vec<u8> {
    let (family, ip) = match address.ip() {
        IpAddr::V4(ip) => (libc::AF_INET, [&ip.octets()[..], &[0; 12]].concat()),
        IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec()),
    };
    let number = |number: libc::c_int| u8::try_from(number).unwrap_or_default();
    let mut message = Vec::with_capacity(SIZE as usize);
    message.extend(SIZE.to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend([number(family), number(libc::IPPROTO_TCP), 0, 0]);
    message.extend(LISTEN.to_ne_bytes());
    // Its own port and the other side's, its own address and the other side's, no interface, any cookie.
    message.extend(address.port().to_be_bytes());
    message.extend([0; 2]);
    message.extend(ip);
    message.extend([0; 16]);
    message.extend([0; 4]);
    message.extend([0xff; 8]);
    message
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::{ListenerQuery, SIZE, message};

    #[test]
    fn listeners_are_found_at_every_address_that_reaches_them() {
        let local: SocketAddr = "127.0.0.1:80".parse().expect("an address");
        assert_eq!(message(local, 1).len(), SIZE as usize);
        let Some(mut query) = ListenerQuery::open() else { return };
        for (bound, asked, listens) in [
            ("127.0.0.1:0", "127.0.0.1", true),
            ("0.0.0.0:0", "127.0.0.1", true),
            ("127.0.0.2:0", "127.0.0.1", false),
            ("127.0.0.1:0", "::1", false),
            ("[::1]:0", "::1", true),
            ("[::1]:0", "127.0.0.1", false),
            ("[::]:0", "::1", true),
            // The standard library leaves the system's default, which takes both.
            ("[::]:0", "127.0.0.1", true),
        ] {
            let Ok(listener) = TcpListener::bind(bound) else { continue };
            let port = listener.local_addr().expect("it is bound").port();
            let address = SocketAddr::new(asked.parse().expect("an address"), port);
            let dual = std::fs::read_to_string("/proc/sys/net/ipv6/bindv6only").is_ok_and(|text| text.trim() == "0");
            if bound != "[::]:0" || dual {
                assert_eq!(query.listens(address), Some(listens), "{bound} {asked}");
            }
        }
    }
}
