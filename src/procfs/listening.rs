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
const SIZE: usize = 72;

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
        // The kernel has answered before it returned. No more than the head of it matters.
        let mut answer = [0; 128];
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
fn message(address: SocketAddr, sequence: u32) -> [u8; SIZE] {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let number = |number: libc::c_int| u8::try_from(number).unwrap_or_default();
    // It is asked often: on the stack.
    let mut message = [0; SIZE];
    let mut put = |at: usize, bytes: &[u8]| message[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &u32::try_from(SIZE).unwrap_or_default().to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(16, &[number(family), number(libc::IPPROTO_TCP)]);
    put(20, &LISTEN.to_ne_bytes());
    // Its own port and address; the other side's and the interface are none, the cookie is any.
    put(24, &address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) => put(28, &ip.octets()),
        IpAddr::V6(ip) => put(28, &ip.octets()),
    }
    put(64, &[0xff; 8]);
    message
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::ListenerQuery;

    #[test]
    fn listeners_are_found_at_every_address_that_reaches_them() {
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
