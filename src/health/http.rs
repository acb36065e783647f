//! HTTP probes: GET, straight to an address, past any proxy.
//!
//! The head of an answer decides. Its body is read as far as it comes at once: then the connection can be kept for the
//! next question, and the server sees an orderly end. A good answer counts on a new connection only, since that is what
//! everybody else will open.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::ask::{Bad, connect, words};

/// A head that is longer is none; of a body no more is read.
const LARGEST: usize = 64 << 10;
/// How long the rest of a body may take.
const BODY: Duration = Duration::from_millis(20);
const HEADERS: usize = 256;

/// Asks each path in turn until one is not answered 404 or 405. What is left `open` may be used for the next question.
pub(super) async fn ask(
    address: SocketAddr,
    host: &str,
    paths: &[String],
    statuses: &[(u16, u16)],
    open: &mut Option<TcpStream>,
) -> Result<(), Bad> {
    let mut last = Bad::answer("there is no path to ask");
    for path in paths {
        let request = request(host, address.port(), path);
        let good = |answer: &Answer| statuses.iter().any(|(low, high)| (*low..=*high).contains(&answer.status));
        let former = match open.take() {
            Some(mut stream) => {
                // One that was closed meanwhile says nothing.
                let answer = exchange(&mut stream, &request).await.ok().filter(|(answer, _)| !good(answer));
                answer.map(|(answer, whole)| (answer, whole.then_some(stream)))
            }
            None => None,
        };
        let (answer, kept) = if let Some(answered) = former {
            answered
        } else {
            let mut stream = connect(address).await?;
            let (answer, whole) = exchange(&mut stream, &request).await?;
            (answer, whole.then_some(stream))
        };
        if good(&answer) {
            return Ok(());
        }
        *open = kept;
        let to = answer.location.map(|location| format!(", to {location}")).unwrap_or_default();
        last = Bad::answer(format!("{} at {path}{to}", answer.status));
        if !matches!(answer.status, 404 | 405) {
            break;
        }
    }
    Err(last)
}

fn request(host: &str, port: u16, path: &str) -> Vec<u8> {
    let bracketed = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    let agent = concat!("gymrun/", env!("CARGO_PKG_VERSION"));
    let path: String = path.bytes().map(path_byte).collect();
    format!("GET {path} HTTP/1.1\r\nHost: {bracketed}:{port}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n\r\n")
        .into_bytes()
}

/// What HTTP does not take in a path is written as `%XX`.
fn path_byte(byte: u8) -> String {
    if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

/// The head of an answer.
struct Answer {
    status: u16,
    /// Where a redirect leads, without a query, which may hold secrets.
    location: Option<String>,
    body: Body,
}

/// Where its body ends.
#[derive(Clone, Copy)]
enum Body {
    Length(usize),
    Chunked,
    /// With the connection.
    Open,
}

/// The answer, and whether it was read to its end on a connection that stays open.
async fn exchange(stream: &mut TcpStream, request: &[u8]) -> Result<(Answer, bool), Bad> {
    let written = stream.write_all(request).await;
    let mut seen = Vec::with_capacity(1024);
    let answer = loop {
        if let Some(answer) = parse(&mut seen)? {
            break answer;
        }
        if seen.len() > LARGEST {
            return Err(Bad::answer("the head of the answer does not end"));
        }
        match (stream.read_buf(&mut seen).await, &written) {
            (Ok(1..), _) => {}
            (_, Err(error)) if seen.is_empty() => return Err(Bad::answer(words(error))),
            (Err(error), _) if seen.is_empty() => return Err(Bad::answer(words(&error))),
            (Ok(0), _) if seen.is_empty() => return Err(Bad::answer("connection closed without an answer")),
            _ => return Err(Bad::answer("connection closed within the answer")),
        }
    };
    let rest = async {
        loop {
            match answer.body {
                Body::Length(length) if seen.len() >= length => return true,
                Body::Chunked if seen.ends_with(b"0\r\n\r\n") => return true,
                _ => {}
            }
            if seen.len() > LARGEST || !matches!(stream.read_buf(&mut seen).await, Ok(1..)) {
                return false;
            }
        }
    };
    let whole = timeout(BODY, rest).await.unwrap_or(false);
    Ok((answer, whole))
}

/// Takes the head off `seen` if it is complete; `100 Continue` and its like are passed over.
fn parse(seen: &mut Vec<u8>) -> Result<Option<Answer>, Bad> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(seen) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Bad::answer(other_protocol(seen))),
        };
        let status = response.code.unwrap_or_default();
        let answer = answer(status, response.version == Some(1), response.headers);
        seen.drain(..length);
        if !(100..200).contains(&status) || status == 101 {
            return Ok(Some(answer));
        }
    }
}

fn answer(status: u16, stays_open: bool, headers: &[httparse::Header<'_>]) -> Answer {
    let header = |name: &str| {
        let found = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| String::from_utf8_lossy(header.value))
    };
    let names = |name: &str, word: &str| header(name).is_some_and(|value| value.to_ascii_lowercase().contains(word));
    let length = header("content-length").and_then(|value| value.trim().parse().ok());
    let body = match length {
        _ if !stays_open || names("connection", "close") => Body::Open,
        _ if matches!(status, 204 | 304) => Body::Length(0),
        _ if names("transfer-encoding", "chunked") => Body::Chunked,
        Some(length) => Body::Length(length),
        None => Body::Open,
    };
    let location = (300..400).contains(&status).then(|| header("location")).flatten();
    let location = location.map(|to| to.split(['?', '#']).next().unwrap_or_default().to_owned());
    Answer { status, location, body }
}

/// What somebody speaks who does not speak HTTP/1.
fn other_protocol(seen: &[u8]) -> &'static str {
    match seen {
        [0x14..=0x17, 3, ..] => "the answer is TLS, and the question was plain HTTP",
        // The frame of settings with which every HTTP/2 server begins.
        [0, _, _, 4, ..] => "the answer is HTTP/2, and the question was HTTP/1.1",
        _ => "the answer is no HTTP",
    }
}
