//! Whatever an endpoint does, the report adds up: what was received is written, and sent, rejected, stored or dropped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::Collector;
use crate::{config, log, point, spans};

/// What an endpoint does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Take,
    /// Takes it, but for one item.
    TakeInPart,
    Busy(u16),
    Refuse(u16),
    Reset,
    BreakOff,
    Hang,
}

const DEEDS: [Deed; 12] = [
    Deed::Take,
    Deed::Take,
    Deed::Take,
    Deed::TakeInPart,
    Deed::Busy(429),
    Deed::Busy(503),
    Deed::Busy(502),
    Deed::Refuse(400),
    Deed::Refuse(500),
    Deed::Reset,
    Deed::BreakOff,
    Deed::Hang,
];

/// An endpoint that does anything; how many items it took, by path.
struct Moody {
    port: u16,
    taken: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Moody {
    async fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (taken, state) = (Arc::<Mutex<BTreeMap<String, u64>>>::default(), Arc::new(AtomicU64::new(seed)));
        let kept = taken.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, kept.clone(), state.clone()));
            }
        });
        Self { port, taken }
    }

    fn taken(&self, path: &str) -> u64 {
        self.taken.lock().expect("lock").get(path).copied().unwrap_or(0)
    }
}

/// Splitmix: the same deeds for the same seed, in whatever order requests come.
fn next(state: &AtomicU64) -> u64 {
    let mut z = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Each request has its own connection.
async fn answer(mut stream: TcpStream, taken: Arc<Mutex<BTreeMap<String, u64>>>, state: Arc<AtomicU64>) {
    let mut request = Vec::new();
    let Some((path, body)) = read(&mut stream, &mut request).await else { return };
    let items = items(&path, &body);
    let partial: &[u8] = &[10, 2, 8, 1];
    let deed = DEEDS[usize::try_from(next(&state) % DEEDS.len() as u64).expect("small")];
    let (status, answer, count) = match deed {
        Deed::Take => (200, &[][..], items),
        Deed::TakeInPart => (200, partial, items - 1),
        Deed::Busy(status) | Deed::Refuse(status) => (status, &b"not now"[..], 0),
        Deed::Reset => {
            stream.set_zero_linger().expect("a socket");
            return;
        }
        Deed::BreakOff => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").await;
            return;
        }
        Deed::Hang => return std::future::pending().await,
    };
    *taken.lock().expect("lock").entry(path).or_default() += count;
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/x-protobuf\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        answer.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), answer].concat()).await;
}

/// Path and body of one request.
async fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let (head, body) = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break bytes.split_at(end + 4);
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
    let mut body = body.to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((head.split(' ').nth(1)?.to_owned(), body))
}

fn items(path: &str, body: &[u8]) -> u64 {
    use gymrun::otlp::{Payload, Signal};
    let signal = Signal::ALL.into_iter().find(|signal| path.ends_with(signal.name())).expect("a signal");
    Payload::decode(signal, body.to_vec()).expect("OTLP").item_count() as u64
}

async fn run(seed: u64, on_disk: bool) {
    let endpoint = Moody::start(seed).await;
    let (storage, extension, used) = if on_disk {
        (
            ", storage: file_storage",
            "  file_storage: {directory: $OUT/queue, create_directory: true}\n",
            ", file_storage",
        )
    } else {
        ("", "", "")
    };
    let exporter = format!(
        "  otlp_http:\n    endpoint: http://127.0.0.1:{}\n    compression: none\n    timeout: 1s\n\
         \x20   sending_queue: {{queue_size: 6, num_consumers: 3{storage}}}\n\
         \x20   retry_on_failure: {{initial_interval: 20ms, max_interval: 100ms, max_elapsed_time: 700ms}}\n",
        endpoint.port
    );
    let text = config("  batch: {timeout: 5ms}", "batch", &exporter, "file, otlp_http");
    let text = text.replace("processors:\n", &format!("{extension}processors:\n"));
    let text = text.replace("extensions: [health_check]", &format!("extensions: [health_check{used}]"));
    // Two pipelines for each signal, as in a job: one to the file, one to the endpoint.
    let text = ["traces", "metrics", "logs"].iter().fold(text, |text, signal| {
        let line = |name: &str, exporter: &str| {
            format!("    {name}: {{receivers: [otlp], processors: [batch], exporters: [{exporter}]}}\n")
        };
        let both = line(signal, "file, otlp_http");
        assert!(text.contains(&both), "{text}");
        text.replace(&both, &(line(signal, "otlp_http") + &line(&format!("{signal}/local"), "file")))
    });
    let mut collector = Collector::start(&text, &[]).await;
    for round in 0..30_usize {
        for (path, request) in [("/v1/traces", spans(round % 5 + 2)), ("/v1/metrics", point()), ("/v1/logs", log())] {
            assert_eq!(collector.post(path, &request).await.0, 200, "no client hears of it");
        }
        tokio::time::sleep(Duration::from_millis(next(&AtomicU64::new(seed + round as u64)) % 40)).await;
    }
    assert_eq!(collector.admin("/-/stop?seconds=4").await.0, 200);
    assert_eq!(collector.stop().await, 0);
    adds_up(&collector.delivery(), &endpoint, on_disk, &format!("seed {seed}, on disk: {on_disk}"));
    let last = collector.stderr().lines().last().expect("a line").to_owned();
    assert!(last.contains("received") && last.contains("sent"), "{last}");
}

fn adds_up(delivery: &Value, endpoint: &Moody, on_disk: bool, what: &str) {
    for signal in ["traces", "metrics", "logs"] {
        let counts = &delivery[signal];
        let count = |key: &str| counts[key].as_u64().unwrap_or(0);
        let dropped: u64 = counts["dropped"].as_object().expect("a map").values().filter_map(Value::as_u64).sum();
        let received = count("received");
        assert!(received > 10, "{what}: {delivery}");
        assert_eq!(count("refused"), 0, "{what}: {delivery}");
        assert_eq!(received, count("written"), "{what}, {signal}: {delivery}");
        let fates = count("sent") + count("rejected") + count("stored") + dropped;
        assert_eq!(received, fates, "{what}, {signal}: {delivery}");
        assert!(count("stored") == 0 || on_disk, "{what}: {delivery}");
        // What the endpoint took at the very end may not have been heard any more.
        assert!(endpoint.taken(&format!("/v1/{signal}")) >= count("sent"), "{what}, {signal}: {delivery}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_received_is_accounted_for() {
    tokio::join!(run(1, false), run(2, false), run(3, true), run(4, true));
}
