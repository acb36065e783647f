//! Small HTTP requests to the job's own collector, on loopback and past any proxy.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// One request; the body as text if the status is 200 to 299.
pub async fn request(
    method: &str,
    address: &str,
    path: &str,
    largest: usize,
    limit: Duration,
) -> Result<String, String> {
    tokio::time::timeout(limit, exchange(method, address, path, largest))
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} s", limit.as_secs_f64())))
}

async fn exchange(method: &str, address: &str, path: &str, largest: usize) -> Result<String, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let driven = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address)
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), largest).collect().await.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        if status.is_success() { Ok(text) } else { Err(format!("answered {}", status.as_u16())) }
    };
    let answer = answer.await;
    driven.abort();
    answer
}
