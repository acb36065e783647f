//! HTTP probes: a GET on a connection of its own, straight to the address, past any proxy.

use std::net::SocketAddr;

use http_body_util::Empty;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::ask::{addresses, words};

/// Asks each path in turn until one is not answered 404 or 405.
pub(super) async fn ask(host: &str, port: u16, paths: &[String], statuses: &[(u16, u16)]) -> Result<(), String> {
    let mut last = "there is no path to ask".to_owned();
    for path in paths {
        let answer = get(host, port, path, statuses).await?;
        let accepted = statuses.iter().any(|(low, high)| (*low..=*high).contains(&answer.as_u16()));
        if accepted {
            return Ok(());
        }
        last = format!("{} at {path}", answer.as_u16());
        if !matches!(answer, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
            break;
        }
    }
    Err(last)
}

/// The status at the first address with an accepted one, else at the first that answers at all.
async fn get(host: &str, port: u16, path: &str, statuses: &[(u16, u16)]) -> Result<StatusCode, String> {
    let mut answered = None;
    let mut last = "the host has no address".to_owned();
    for address in addresses(host, port).await? {
        match get_from(address, host, path).await {
            Ok(status) if statuses.iter().any(|(low, high)| (*low..=*high).contains(&status.as_u16())) => {
                return Ok(status);
            }
            Ok(status) => answered = answered.or(Some(status)),
            Err(error) => last = error,
        }
    }
    answered.ok_or(last)
}

async fn get_from(address: SocketAddr, host: &str, path: &str) -> Result<StatusCode, String> {
    let stream = TcpStream::connect(address).await.map_err(|e| words(&e))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| describe(&e))?;
    let bracketed = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    let request = Request::get(path)
        .header(header::HOST, format!("{bracketed}:{}", address.port()))
        .header(header::USER_AGENT, concat!("gymrun/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "*/*")
        .header(header::CONNECTION, "close")
        .body(Empty::<bytes::Bytes>::new())
        .map_err(|error| format!("`{path}` is no path of HTTP: {error}"))?;
    let mut connection = std::pin::pin!(connection);
    let mut response = std::pin::pin!(sender.send_request(request));
    // The status is all that counts: the connection ends with this function, the body unread.
    let answer = tokio::select! {
        biased;
        answer = &mut response => answer,
        ended = &mut connection => match ended {
            // A server that closes right away: its answer is here already.
            Ok(()) => response.await,
            Err(error) => Err(error),
        },
    };
    answer.map(|response| response.status()).map_err(|error| describe(&error))
}

fn describe(error: &hyper::Error) -> String {
    if error.is_parse() {
        return "the answer is no HTTP".into();
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "connection closed without an answer".into();
    }
    let source = std::error::Error::source(error).and_then(|s| s.downcast_ref::<std::io::Error>());
    source.map_or_else(|| error.to_string(), words)
}
