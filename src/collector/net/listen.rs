//! Binding the address of an `endpoint`, for receivers and extensions alike.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Ipv6V6Only;
use tokio::net::{TcpListener, TcpSocket};

use crate::diag::Problem;

/// How many connections may wait to be taken: what the runtime uses elsewhere.
const WAITING: u32 = 1024;

/// Listens on `host:port`; without a host, at `0.0.0.0` or `[::]`, on all addresses, of both families where the kernel has
/// both, as in the reference. Of the addresses of a name it is the first one of IPv4 if there is one, as there, and no other
/// if that is taken. The address is the real one (port 0 takes a free port). A problem names the address and says why.
pub async fn listen(endpoint: &str) -> Result<(TcpListener, SocketAddr), Problem> {
    let any = endpoint.strip_prefix("0.0.0.0").or(endpoint.strip_prefix("[::]")).unwrap_or(endpoint);
    let bound = match any.strip_prefix(':') {
        Some(port) => match of_both_families(port) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                TcpListener::bind(format!("0.0.0.0:{port}")).await
            }
            bound => bound,
        },
        None => match tokio::net::lookup_host(without_brackets(endpoint)).await.map(preferred) {
            Ok(Some(address)) => TcpListener::bind(address).await,
            Ok(None) => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
            Err(error) => Err(error),
        },
    };
    let listener = bound.map_err(|error| refused(endpoint, &error))?;
    let address = listener.local_addr().map_err(|error| refused(endpoint, &error))?;
    Ok((listener, address))
}

/// All addresses, of IPv4 too where the kernel is told otherwise (`net.ipv6.bindv6only`).
fn of_both_families(port: &str) -> io::Result<TcpListener> {
    let port = port.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let socket = TcpSocket::new_v6()?;
    setsockopt(&socket, Ipv6V6Only, &false)?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv6Addr::UNSPECIFIED, port).into())?;
    socket.listen(WAITING)
}

/// An address of IPv4 without the brackets that may stand around it.
fn without_brackets(endpoint: &str) -> String {
    let parts = endpoint.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match parts.filter(|(host, _)| host.parse::<Ipv4Addr>().is_ok()) {
        Some((host, port)) => format!("{host}{port}"),
        None => endpoint.to_owned(),
    }
}

/// One of a name's addresses.
fn preferred(addresses: impl IntoIterator<Item = SocketAddr>) -> Option<SocketAddr> {
    let addresses: Vec<SocketAddr> = addresses.into_iter().collect();
    addresses.iter().find(|address| address.is_ipv4()).or(addresses.first()).copied()
}

fn refused(endpoint: &str, error: &io::Error) -> Problem {
    let problem = Problem::new(format!("cannot listen on {endpoint}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => problem.hint("another process holds the port: stop it, or change `endpoint`"),
        _ => problem.hint("`endpoint` must be an address of this host and a port that you may use"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_taken_port_is_named() {
        let (_listener, address) = listen("127.0.0.1:0").await.expect("a free port");
        let problem = listen(&address.to_string()).await.expect_err("taken");
        assert!(problem.message.contains(&address.to_string()), "{}", problem.message);
        let (_any, any) = listen(":0").await.expect("a free port");
        assert_ne!(any.port(), 0);
    }

    /// As in the reference; a machine may be without IPv6.
    #[tokio::test]
    async fn any_address_is_one_of_either_family() {
        const BOTH: [&str; 2] = ["127.0.0.1", "::1"];
        let six = TcpListener::bind("[::1]:0").await.is_ok();
        for (endpoint, hosts) in
            [("0.0.0.0:0", BOTH), (":0", BOTH), ("[::]:0", BOTH), ("[127.0.0.1]:0", ["127.0.0.1"; 2])]
        {
            let (_listener, address) = listen(endpoint).await.expect("a free port");
            for host in hosts.into_iter().filter(|host| six || !host.contains(':')) {
                let connected = tokio::net::TcpStream::connect((host, address.port())).await;
                assert!(connected.is_ok(), "{endpoint} {host}: {connected:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_name_whose_address_is_taken_is_not_listened_for_on_another() {
        let (_listener, address) = listen("127.0.0.1:0").await.expect("a free port");
        let name = format!("localhost:{}", address.port());
        let problem = listen(&name).await.expect_err("taken");
        assert!(problem.message.contains(&name), "{}", problem.message);
        let [one, two, six]: [SocketAddr; 3] =
            ["127.0.0.1:1", "127.0.0.2:1", "[::1]:1"].map(|address| address.parse().expect("an address"));
        assert_eq!(preferred([six, two, one]), Some(two));
        assert_eq!(preferred([six]), Some(six));
        assert_eq!(preferred([]), None);
    }
}
