//! Loopback ports.

use std::net::TcpListener;

/// A port that nobody has at this moment.
pub fn free_port() -> u16 {
    let [port] = free_ports();
    port
}

/// So many of them, each another.
pub fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let sockets = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    sockets.each_ref().map(|socket| socket.local_addr().expect("an address").port())
}
