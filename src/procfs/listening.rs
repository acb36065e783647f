//! Whether anybody listens at an address, or who on a port, asked of the kernel in one message.
//!
//! Reading `net/tcp` costs the more the more sockets there are, and milliseconds where there are none, since the kernel walks
//! its whole table of connections; a connection that is refused costs four packets. The kernel's socket diagnosis looks one
//! address up in its table of listeners, as it does for a connection, or lists those of that table that have a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::OnceLock;

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use super::listener::Listener;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `NLM_F_DUMP`, with that.
const LIST: u16 = 0x300 | REQUEST;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// `NLMSG_DONE`.
const DONE: u16 = 3;
/// `TCP_LISTEN`, as a set of states.
const LISTEN: u32 = 1 << 10;
/// A header, and `inet_diag_req_v2`.
const SIZE: usize = 72;
/// As much as the kernel says at once.
const LARGEST: usize = 32 << 10;

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
        self.ask(address, REQUEST)?;
        // No more than the head of it matters.
        let mut answer = [0; 128];
        let answer = self.hear(&mut answer)?;
        if number(answer, 8).map(u32::from_ne_bytes) != Some(self.sequence) {
            return None;
        }
        match number(answer, 4).map(u16::from_ne_bytes)? {
            BY_FAMILY => Some(true),
            ERROR if is_none(answer) => Some(false),
            _ => None,
        }
    }

    /// Everybody who listens on a port, at any address; `None` if the kernel does not say. Good for one question if it does not.
    pub(super) fn listeners(&mut self, port: u16) -> Option<Vec<Listener>> {
        let mut found = Vec::new();
        let mut buffer = vec![0; LARGEST];
        for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
            self.ask((any, port).into(), LIST)?;
            let mut whole = false;
            while !whole {
                let mut answer = self.hear(&mut buffer)?;
                while !answer.is_empty() {
                    let length = usize::try_from(number(answer, 0).map(u32::from_ne_bytes)?).ok()?;
                    let (message, _) = answer.split_at_checked(length.max(HEAD))?;
                    match number(message, 4).map(u16::from_ne_bytes)? {
                        BY_FAMILY => found.extend(listener(message)),
                        DONE => whole = true,
                        // A machine without addresses of that family.
                        ERROR if is_none(message) => whole = true,
                        _ => return None,
                    }
                    answer = answer.get(message.len().next_multiple_of(4)..).unwrap_or_default();
                }
            }
        }
        Some(found)
    }

    fn ask(&mut self, address: SocketAddr, flags: u16) -> Option<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = message(address, self.sequence, flags);
        let sent = send(self.socket.as_raw_fd(), &message, MsgFlags::empty()).ok()?;
        (sent == message.len()).then_some(())
    }

    /// The kernel has answered before the question was sent, or goes on when this is read.
    fn hear<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        let length = recv(self.socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT).ok()?;
        buffer.get(..length)
    }
}

/// The length of `struct nlmsghdr`.
const HEAD: usize = 16;

/// The bytes of a number.
fn number<const N: usize>(message: &[u8], at: usize) -> Option<[u8; N]> {
    message.get(at..at + N)?.try_into().ok()
}

/// Whether an error says that there is none.
fn is_none(message: &[u8]) -> bool {
    number(message, HEAD).map(i32::from_ne_bytes) == Some(-libc::ENOENT)
}

/// What a message of a list tells: `struct inet_diag_msg`.
fn listener(message: &[u8]) -> Option<Listener> {
    let port = u16::from_be_bytes(number(message, 20)?);
    let ip = match i32::from(*message.get(16)?) {
        libc::AF_INET => IpAddr::from(number::<4>(message, 24)?),
        _ => IpAddr::from(number::<16>(message, 24)?),
    };
    let user = u32::from_ne_bytes(number(message, 80)?);
    let inode = u32::from_ne_bytes(number(message, 84)?).into();
    Some(Listener { address: (ip, port).into(), inode, user })
}

/// A header and a question for one socket: `struct nlmsghdr`, `struct inet_diag_req_v2`.
fn message(address: SocketAddr, sequence: u32, flags: u16) -> [u8; SIZE] {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let number = |number: libc::c_int| u8::try_from(number).unwrap_or_default();
    // It is asked often: on the stack.
    let mut message = [0; SIZE];
    let mut put = |at: usize, bytes: &[u8]| message[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &u32::try_from(SIZE).unwrap_or_default().to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &flags.to_ne_bytes());
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
    use crate::procfs::Proc;

    /// Both ways to learn who listens say the same.
    #[test]
    fn a_list_is_what_the_kernel_s_files_say() {
        let Some(mut query) = ListenerQuery::open() else { return };
        let addresses = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "[::1]", "[::]"];
        for address in addresses {
            let Ok(one) = TcpListener::bind(format!("{address}:0")) else { continue };
            let port = one.local_addr().expect("it is bound").port();
            // As many as get the same port.
            let others: Vec<_> =
                addresses.iter().filter_map(|other| TcpListener::bind(format!("{other}:{port}")).ok()).collect();
            let sorted = |mut found: Vec<crate::procfs::Listener>| {
                found.sort_by_key(|listener| listener.inode);
                found
            };
            let listed = sorted(query.listeners(port).expect("the kernel says"));
            assert_eq!(listed.len(), 1 + others.len(), "{address}");
            // A path by which it is not known as the kernel's own.
            assert_eq!(listed, sorted(Proc::at("/proc/self/..").listeners(port)), "{address}");
        }
        let unused = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("loopback").port();
        assert_eq!(query.listeners(unused), Some(Vec::new()));
    }

    #[test]
    fn as_many_as_listen_are_listed() {
        let Some(mut query) = ListenerQuery::open() else { return };
        let first = TcpListener::bind("127.1.0.1:0").expect("loopback");
        let port = first.local_addr().expect("it is bound").port();
        // More than the kernel says at once.
        let others: Vec<_> = (0..=600_u16)
            .filter_map(|number| {
                let [high, low] = number.to_be_bytes();
                TcpListener::bind(SocketAddr::from(([127, 1, 1 + high, low], port))).ok()
            })
            .collect();
        assert_eq!(query.listeners(port).map(|found| found.len()), Some(1 + others.len()));
    }

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
            let dual = std::fs::read_to_string("/proc/sys/net/ipv6/bindv6only").is_ok_and(|text| text.trim() == "0");
            let mut is_so = || {
                let Ok(listener) = TcpListener::bind(bound) else { return true };
                let port = listener.local_addr().expect("it is bound").port();
                query.listens(SocketAddr::new(asked.parse().expect("an address"), port)) == Some(listens)
            };
            if bound != "[::]:0" || dual {
                // Somebody else may listen on the same port of another address.
                assert!((0..if listens { 1 } else { 10 }).any(|_| is_so()), "{bound} {asked}");
            }
        }
    }
}
