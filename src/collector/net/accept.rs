//! Taking connections, one after the other, whatever the system says meanwhile.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::collector::component::Context;

/// After an error that is not about one connection alone, such as too many open files: trying again at once would take a
/// processor and give nothing.
const PAUSE: Duration = Duration::from_millis(100);

/// The connections that come to an address. Errors are said, a few in ten seconds; they never end it.
pub struct Connections {
    listener: TcpListener,
    context: Context,
    /// What an error was about: the address, for people.
    address: SocketAddr,
}

impl Connections {
    /// Those that `listener` takes on `address`.
    #[must_use]
    pub fn new(listener: TcpListener, address: SocketAddr, context: Context) -> Self {
        Self { listener, context, address }
    }

    /// The next one, and where it comes from.
    pub async fn next(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // Failing to set it costs some milliseconds, nothing else.
                    let _ = stream.set_nodelay(true);
                    return (stream, peer);
                }
                Err(error) if went_away(&error) => {}
                Err(error) => {
                    self.context.failed(&format!("cannot take a connection to {}: {error}", self.address));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Whether it is about one connection, which is gone.
fn went_away(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
