//! OTLP/HTTP by hand: whole requests that were made before, written into a connection that is kept.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use bytes::Bytes;

use super::load::{CONNECTIONS, Turn};

/// Sends the bodies in turn over all connections.
pub fn send(port: u16, bodies: &[Bytes], turn: &Turn<'_>) {
    let requests: Vec<Vec<u8>> = bodies.iter().map(|body| request(body)).collect();
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| connection(port, &requests, turn));
        }
    });
}

fn request(body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

fn connection(port: u16, requests: &[Vec<u8>], turn: &Turn<'_>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    while let Some((index, wait)) = turn.next() {
        std::thread::sleep(wait);
        loop {
            stream.write_all(&requests[index]).expect("writes");
            match answer(&mut stream) {
                200 => {
                    turn.accepted();
                    break;
                }
                429 | 503 => std::thread::sleep(turn.refused()),
                status => panic!("a request was answered with {status}"),
            }
        }
    }
}

/// Reads one answer whole; its status.
fn answer(stream: &mut TcpStream) -> u16 {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).expect("reads");
        assert!(read > 0, "the connection was closed in an answer: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(status) = whole(&bytes) {
            return status;
        }
    }
}

/// The status, when head and body are there.
fn whole(bytes: &[u8]) -> Option<u16> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).expect("text").to_ascii_lowercase();
    let body = &bytes[end + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let done = match length {
        Some(length) => body.len() >= length.trim().parse::<usize>().expect("a length"),
        None => !head.contains("transfer-encoding: chunked") || body.ends_with(b"0\r\n\r\n"),
    };
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    done.then_some(status)
}
