//! Servers at addresses of every kind: steps of the child, and listeners of the test itself.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, socket, sockopt,
};

/// The names of addresses, the address, and whether a socket there leaves IPv4 alone.
const PLACES: [(&str, &str, bool); 7] = [
    ("own4", "127.0.0.1", false),
    ("other4", "127.0.0.2", false),
    ("any4", "0.0.0.0", false),
    ("own6", "::1", true),
    ("any6", "::", true),
    ("dual", "::", false),
    ("mapped", "::ffff:127.0.0.1", false),
];

/// Listens at a place. Options: `share` its port with others who want to, `bare` of `SO_REUSEADDR`.
pub fn listener(place: &str, port: u16, options: &[&str]) -> Result<TcpListener, Errno> {
    let (_, address, only6) = PLACES.iter().find(|(name, ..)| *name == place).expect("a place of the list");
    let address: IpAddr = address.parse().expect("an address");
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::ReuseAddr, &!options.contains(&"bare"))?;
    setsockopt(&socket, sockopt::ReusePort, &options.contains(&"share"))?;
    if address.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6V6Only, only6)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(address, port)))?;
    listen(&socket, Backlog::new(64)?)?;
    Ok(socket.into())
}

/// Whether this machine has IPv6.
pub fn has_ipv6() -> bool {
    listener("own6", 0, &[]).is_ok()
}

/// `listen:PLACE:PORT[:STATUS[:OPTION...]]`: answers with a status there, never if that is `mute`, and only `GET PATH` if it
/// is `PATH=STATUS` (others get 404, or 405). Further options: `patient` waits until the port is free, `closes=FILE` goes
/// away when the file comes, `turns=FILE` has no page any more then.
pub fn step(fields: &[&str]) {
    let port = fields[1].parse().expect("a port");
    let status = fields.get(2).copied().unwrap_or("200").to_owned();
    let options = fields.get(3..).unwrap_or_default();
    let end = Instant::now() + Duration::from_mins(5);
    let listener = loop {
        match listener(fields[0], port, options) {
            Ok(listener) => break listener,
            Err(Errno::EADDRINUSE) if options.contains(&"patient") && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => {
                eprintln!("cannot bind {port}: {error}");
                #[expect(clippy::exit, reason = "a server that ends when it cannot listen")]
                std::process::exit(1)
            }
        }
    };
    if status == "mute" {
        return std::mem::forget(listener);
    }
    let file = |name: &str| options.iter().find_map(|option| option.strip_prefix(name)).map(PathBuf::from);
    let (closes, turns) = (file("closes="), file("turns="));
    std::thread::spawn(move || serve(&listener, &status, closes.as_deref(), turns.as_deref()));
}

fn serve(listener: &TcpListener, status: &str, closes: Option<&Path>, turns: Option<&Path>) {
    listener.set_nonblocking(closes.is_some()).expect("a socket");
    while !closes.is_some_and(Path::exists) {
        match listener.accept() {
            Ok((stream, _)) => answer(stream, if turns.is_some_and(Path::exists) { "404" } else { status }),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Answers one request.
pub fn answer(mut stream: TcpStream, status: &str) {
    let _ = stream.set_nonblocking(false);
    let mut request = [0; 4096];
    let count = stream.read(&mut request).unwrap_or_default();
    let status = match status.split_once('=') {
        None => status,
        Some((path, status)) => {
            let request = String::from_utf8_lossy(&request[..count]);
            let mut words = request.split_ascii_whitespace();
            match (words.next(), words.next()) {
                (Some("GET"), Some(asked)) if asked == path => status,
                (Some("GET"), _) => "404",
                _ => "405",
            }
        }
    };
    let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}
