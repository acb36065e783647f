//! Questions to servers of every kind.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::TcpSocket;

use super::{Bad, Effort, Prober, Target, TargetKind};

/// For what must be answered: nothing here takes that long.
const LONG: Duration = Duration::from_mins(1);
/// For what is not.
const SHORT: Duration = Duration::from_millis(100);

/// A server each of whose connections is given to `serve`, on a thread of its own.
fn server_at(address: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(address).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    server_at("127.0.0.1:0", serve)
}

/// Reads one question; `None` if there is none any more.
fn question(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = vec![0; 4096];
    let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
    Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// Answers one question with these bytes and waits for the other side to close.
fn answers(bytes: &'static [u8]) -> impl Fn(TcpStream) + Send + Sync {
    move |mut stream| {
        let _ = question(&mut stream);
        let _ = stream.write_all(bytes);
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

/// Answers each question with the status in its path, and HEAD and all but GET with 405.
fn speaks(mut stream: TcpStream) {
    while let Some(text) = question(&mut stream) {
        let status = text.strip_prefix("GET /").map_or("405", |rest| &rest[..3]).to_owned();
        let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\nno");
    }
}

fn prober(kind: TargetKind, request_timeout: Duration) -> Prober {
    Prober::new(Target { kind, request_timeout })
}

fn http(host: &str, port: u16, paths: &[&str]) -> TargetKind {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    TargetKind::Http { host: host.into(), port, paths, statuses: vec![(200, 299)] }
}

async fn ask(kind: TargetKind, limit: Duration) -> Result<Option<SocketAddr>, String> {
    prober(kind, limit).ask().await.map_err(|bad| bad.text)
}

#[tokio::test]
async fn the_first_path_that_is_there_decides() {
    let port = server(speaks);
    let good = Ok(Some(SocketAddr::from(([127, 0, 0, 1], port))));
    for (paths, expected) in [
        (&["/204"] as &[&str], good.clone()),
        (&["/404", "/405", "/200"], good),
        (&["/404", "/503", "/200"], Err("503 at /503".into())),
        (&["/404"], Err("404 at /404".into())),
        (&["/429"], Err("429 at /429".into())),
        (&["/404 not found"], Err("404 at /404 not found".into())),
        (&[], Err("there is no path to ask".into())),
    ] {
        assert_eq!(ask(http("127.0.0.1", port, paths), LONG).await, expected, "{paths:?}");
    }
    let kind =
        TargetKind::Http { host: "127.0.0.1".into(), port, paths: vec!["/404".into()], statuses: vec![(100, 599)] };
    assert!(ask(kind, LONG).await.is_ok());
}

#[tokio::test]
async fn the_head_of_an_answer_decides_whatever_comes_behind_it() {
    for (bytes, expected) in [
        (b"HTTP/1.1 204 No Content\r\n\r\n" as &[u8], Ok(())),
        (b"HTTP/1.0 200 OK\r\n\r\n", Ok(())),
        (b"HTTP/1.1 200\r\n\r\n", Ok(())),
        // A body that does not come, and chunks that are none.
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx", Ok(())),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nno chunk", Ok(())),
        (b"HTTP/1.1 503 X\r\nContent-Length: -1\r\n\r\n", Err("503 at /health")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Ok(())),
        (
            b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1/health/?token=s3cret#s3cret\r\n\r\n",
            Err("307 at /health, to http://127.0.0.1/health/"),
        ),
        (b"220 mail.example ESMTP\r\n", Err("the answer is no HTTP")),
        (b"\x15\x03\x03\x00\x02\x02\x50", Err("the answer is TLS, and the question was plain HTTP")),
        (b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", Err("the answer is HTTP/2, and the question was HTTP/1.1")),
        (b"\x00\x00\x00", Err("the answer is no HTTP")),
    ] {
        let answer = ask(http("127.0.0.1", server(answers(bytes)), &["/health"]), LONG).await;
        let expected = expected.map_err(str::to_owned);
        assert_eq!(answer.map(drop), expected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[tokio::test]
async fn servers_that_do_not_behave_are_told_apart() {
    let endless = |mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    };
    let no_end_of_head = |mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"A: b\r\n").is_ok() {}
    };
    let closes = |mut stream: TcpStream| drop(question(&mut stream));
    let cut = |mut stream: TcpStream| {
        let _ = question(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConte");
    };
    let resets = |mut stream: TcpStream| {
        let _ = question(&mut stream);
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&stream.as_fd(), sockopt::Linger, &linger).expect("a socket");
    };
    let early = |mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
    };
    let silent = |mut stream: TcpStream| drop(stream.read_to_end(&mut Vec::new()));
    for (port, limit, expected) in [
        (server(endless), LONG, Ok(())),
        (server(early), LONG, Ok(())),
        (server(no_end_of_head), LONG, Err("the answer is no HTTP")),
        (server(closes), LONG, Err("connection closed without an answer")),
        (server(cut), LONG, Err("connection closed within the answer")),
        (server(resets), LONG, Err("connection reset")),
        (server(silent), SHORT, Err("no answer within 0.1 s")),
    ] {
        let answer = ask(http("127.0.0.1", port, &["/health"]), limit).await;
        assert_eq!(answer.map(drop), expected.map_err(str::to_owned));
    }
}

#[tokio::test]
async fn a_connection_is_kept_while_answers_are_bad_and_a_good_one_counts_on_a_new_one() {
    let connections = Arc::new(AtomicUsize::new(0));
    let asked = Arc::new(AtomicUsize::new(0));
    let port = {
        let (connections, asked) = (Arc::clone(&connections), Arc::clone(&asked));
        server(move |mut stream| {
            connections.fetch_add(1, Ordering::SeqCst);
            while question(&mut stream).is_some() {
                let status = if asked.fetch_add(1, Ordering::SeqCst) < 3 { 503 } else { 200 };
                let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
            }
        })
    };
    let mut prober = prober(http("127.0.0.1", port, &["/health"]), LONG);
    for _ in 0..3 {
        let bad = prober.ask().await.expect_err("it is loading");
        assert_eq!((bad.text.as_str(), bad.effort), ("503 at /health", Effort::Little));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    assert!(prober.ask().await.is_ok());
    assert_eq!((connections.load(Ordering::SeqCst), asked.load(Ordering::SeqCst)), (2, 5));
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_not_used_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let port = {
        let asked = Arc::clone(&asked);
        server(move |mut stream| {
            let _ = question(&mut stream);
            let status = if asked.fetch_add(1, Ordering::SeqCst) < 2 { 503 } else { 200 };
            // Not said beforehand: closed all the same.
            let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        })
    };
    let mut prober = prober(http("127.0.0.1", port, &["/health"]), LONG);
    let answers = [prober.ask().await.is_ok(), prober.ask().await.is_ok(), prober.ask().await.is_ok()];
    assert_eq!(answers, [false, false, true]);
}

#[tokio::test]
async fn every_address_of_a_name_is_asked_at_once() {
    let both = |v4: Option<fn(TcpStream)>, v6: Option<fn(TcpStream)>| {
        // A port that is free in both families.
        (0..100).find_map(|_| {
            let (first, port) = hold("127.0.0.1:0")?;
            let (second, _) = hold(&format!("[::1]:{port}"))?;
            for (held, serve) in [(first, v4), (second, v6)] {
                match serve {
                    Some(serve) => {
                        let listener = listen(held);
                        std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
                    }
                    // Nobody else gets it.
                    None => std::mem::forget(held),
                }
            }
            Some(port)
        })
    };
    if TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let good: fn(TcpStream) = answers_200;
    let silent: fn(TcpStream) = std::mem::forget;
    let loading: fn(TcpStream) = |mut stream| {
        let _ = question(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 503 X\r\n\r\n");
    };
    for (v4, v6, expected) in [
        (Some(good), None, Ok("127.0.0.1")),
        (None, Some(good), Ok("::1")),
        (Some(silent), Some(good), Ok("::1")),
        (Some(good), Some(silent), Ok("127.0.0.1")),
        (Some(loading), Some(good), Ok("::1")),
        (Some(loading), None, Err("503 at /health")),
        (None, Some(loading), Err("503 at /health")),
        (None, None, Err("connection refused")),
    ] {
        let port = both(v4, v6).expect("a free port");
        let answer = ask(http("LOCALHOST", port, &["/health"]), LONG).await;
        let answer = answer.map(|address| address.expect("it has one").ip().to_string());
        assert_eq!(answer.as_deref().map_err(String::as_str), expected, "{port}");
        if expected.is_ok() {
            assert!(ask(TargetKind::Tcp { host: "localhost".into(), port }, LONG).await.is_ok());
        }
    }
    let unknown = ask(http("no-such-host.invalid", 1, &["/health"]), LONG).await;
    assert!(unknown.expect_err("there is none").starts_with("`no-such-host.invalid` has no address"));
}

/// A port that nobody listens on, and nobody else can.
fn hold(address: &str) -> Option<(TcpSocket, u16)> {
    let address: SocketAddr = address.parse().expect("an address");
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.ok()?;
    socket.bind(address).ok()?;
    let port = socket.local_addr().ok()?.port();
    Some((socket, port))
}

/// Somebody listens on it at last.
fn listen(held: TcpSocket) -> TcpListener {
    let listener = held.listen(64).and_then(tokio::net::TcpListener::into_std).expect("it is held");
    listener.set_nonblocking(false).expect("a socket");
    listener
}

fn answers_200(mut stream: TcpStream) {
    let _ = question(&mut stream);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

#[tokio::test]
async fn nobody_is_disturbed_by_a_refused_question() {
    let (held, port) = hold("127.0.0.1:0").expect("a free port");
    let grpc = TargetKind::Grpc { host: "127.0.0.1".into(), port, service: String::new() };
    for kind in [http("127.0.0.1", port, &["/"]), TargetKind::Tcp { host: "127.0.0.1".into(), port }, grpc] {
        let refused = Bad { text: "connection refused".into(), effort: Effort::None, refused: true };
        let mut prober = prober(kind, LONG);
        assert_eq!([prober.ask().await, prober.ask().await], [Err(refused.clone()), Err(refused)]);
    }
    // Somebody comes at last.
    let mut prober = prober(http("localhost", port, &["/200"]), LONG);
    assert!(prober.ask().await.is_err() && prober.ask().await.is_err());
    let listener = listen(held);
    std::thread::spawn(move || listener.incoming().flatten().for_each(speaks));
    assert!(prober.ask().await.is_ok());
}

#[tokio::test]
async fn grpc_tells_serving_from_not_serving() {
    let (reporter, service) = tonic_health::server::health_reporter();
    reporter.set_service_status("up", tonic_health::ServingStatus::Serving).await;
    reporter.set_service_status("down", tonic_health::ServingStatus::NotServing).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let port = listener.local_addr().expect("it is bound").port();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    let question = |service: &str| TargetKind::Grpc { host: "localhost".into(), port, service: service.into() };
    assert!(ask(question("up"), LONG).await.is_ok());
    for (service, answer) in [("down", "NOT_SERVING"), ("nope", "the server knows no service `nope`")] {
        let mut prober = prober(question(service), LONG);
        for _ in 0..2 {
            let bad = Bad { text: answer.into(), effort: Effort::Much, refused: false };
            assert_eq!(prober.ask().await, Err(bad));
        }
    }
    // A server of another kind.
    let kind = TargetKind::Grpc { host: "127.0.0.1".into(), port: server(speaks), service: String::new() };
    assert!(ask(kind, LONG).await.is_err());
}
