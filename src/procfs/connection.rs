//! Which user holds the other end of a connection within this machine.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;

use super::identity::Proc;
use super::listener::address;

/// State `ESTABLISHED` in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

impl Proc {
    /// The user who holds the socket of a connection from `local`, an address of this network namespace, to a `port` of it.
    /// `None` if nobody is known to: a socket that was closed belongs to nobody, and the kernel then says root.
    #[must_use]
    pub fn user_of_connection(&self, local: SocketAddr, port: u16) -> Option<u32> {
        let local_ip = local.ip().to_canonical();
        let user = |line: &str| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (here, there) = (address(fields.next()?)?, address(fields.next()?)?);
            let is_it = here.port() == local.port() && here.ip().to_canonical() == local_ip && there.port() == port;
            (is_it && fields.next()? == ESTABLISHED).then(|| fields.nth(3)?.parse().ok()).flatten()
        };
        let table = |name: &str| {
            let reader = BufReader::with_capacity(64 << 10, File::open(self.global(name)).ok()?);
            reader.lines().map_while(Result::ok).find_map(|line| user(&line))
        };
        ["net/tcp", "net/tcp6"].into_iter().find_map(table)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::Proc;

    #[test]
    fn an_end_of_a_connection_is_its_holder_s_until_it_is_closed() {
        let own = nix::unistd::geteuid().as_raw();
        for (listening, host) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            let Ok(listener) = TcpListener::bind(listening) else { continue };
            let port = listener.local_addr().expect("it is bound").port();
            let client = TcpStream::connect((host, port)).expect("connects");
            let (server, peer) = listener.accept().expect("takes");
            let proc = Proc::default();
            // As the server sees it, which may be in the other family.
            for from in [client.local_addr().expect("it is bound"), peer] {
                assert_eq!(proc.user_of_connection(from, port), Some(own), "{listening}");
                assert_eq!(proc.user_of_connection(from, 1), None, "{listening}");
            }
            drop(client);
            assert_eq!(proc.user_of_connection(peer, port), None, "{listening}: closed");
            drop(server);
        }
    }
}
