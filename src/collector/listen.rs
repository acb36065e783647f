//! Binding the address of an `endpoint`, for receivers and extensions alike.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::diag::Problem;

/// Listens on `host:port`; without a host on all addresses, of both families where the kernel has both. The address is
/// the real one (port 0 takes a free port). A problem names the address and says why.
pub async fn listen(endpoint: &str) -> Result<(TcpListener, SocketAddr), Problem> {
    let bound = match endpoint.strip_prefix(':') {
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                TcpListener::bind(format!("0.0.0.0:{port}")).await
            }
            bound => bound,
        },
        None => TcpListener::bind(endpoint).await,
    };
    let listener = bound.map_err(|error| refused(endpoint, &error))?;
    let address = listener.local_addr().map_err(|error| refused(endpoint, &error))?;
    Ok((listener, address))
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
}
