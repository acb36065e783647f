//! The small HTTP server: what it answers depends on the path.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::{Compression, write::GzEncoder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Answers by the path of the request (and the whole request, in lower case).
pub(super) type Answers = fn(&str, &str) -> Vec<u8>;

pub(super) async fn serve(answers: Answers) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = listener.local_addr().expect("address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read_exact(&mut byte).await.is_err() {
                        return;
                    }
                    request.push(byte[0]);
                }
                let request = String::from_utf8_lossy(&request).to_lowercase();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                if path == "/never" {
                    std::future::pending::<()>().await;
                }
                let _ = stream.write_all(&answers(&path, &request)).await;
            });
        }
    });
    port
}

pub(super) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(super) fn pages(path: &str, request: &str) -> Vec<u8> {
    match path {
        "/gzip" if request.contains("accept-encoding: gzip") => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(b"a 1\n").expect("write");
            answer("200 OK", "content-encoding: gzip\r\n", &encoder.finish().expect("finish"))
        }
        "/metrics" => answer("307 Temporary Redirect", "location: /metrics/\r\n", b""),
        "/loop" => answer("302 Found", "location: /loop\r\n", b""),
        "/metrics/" | "/plain" => answer("200 OK", "content-type: text/plain\r\n", b"a 1\n"),
        "/turns" => {
            static TURN: AtomicUsize = AtomicUsize::new(0);
            match TURN.fetch_add(1, Ordering::SeqCst) {
                0..3 | 7 | 9 | 11 => answer("500 Internal Server Error", "", b""),
                // The same reason with other numbers, and each of them again.
                turn @ 3..6 => answer("200 OK", "", format!("a b {turn}\n").as_bytes()),
                6 | 8 => answer("503 Service Unavailable", "", b""),
                10 | 12.. => answer("200 OK", "", b"a 1\n"),
            }
        }
        "/echo" => {
            let token = request.split("bearer ").nth(1).and_then(|rest| rest.split_whitespace().next());
            let padding = "x".repeat(300);
            answer("200 OK", "", format!("a{{b=\"c\"}} {padding}{}{padding} 1\n", token.unwrap_or_default()).as_bytes())
        }
        "/contradictory" => answer("200 OK", "", b"# TYPE h histogram\nh_bucket{le=\"1\"} 5\nh_count 1\n"),
        "/short" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\na 1\n".to_vec(),
        "/created" => answer("201 Created", "", b"a 1\n"),
        _ => answer("404 Not Found", "", b""),
    }
}
