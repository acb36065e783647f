//! A target with 5,000 series in the manner of vLLM's page.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

/// Series of a page.
pub const SERIES: usize = 5_000;
const BUCKETS: [&str; 18] = [
    "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "20.0", "40.0", "60.0",
    "120.0", "300.0", "600.0", "+Inf",
];
/// A histogram is its buckets, its sum and its count.
const HISTOGRAMS: usize = 200;

/// An HTTP server on a thread of its own, for as long as the program runs.
pub struct Target {
    pub port: u16,
    served: Arc<AtomicU64>,
}

impl Target {
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("non-blocking");
        let port = listener.local_addr().expect("an address").port();
        let served = Arc::new(AtomicU64::new(0));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&served));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, router).await.expect("serves");
            });
        });
        Self { port, served }
    }

    /// How many pages were asked for.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }
}

async fn serve(State(served): State<Arc<AtomicU64>>) -> impl IntoResponse {
    let number = served.fetch_add(1, Ordering::Relaxed);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page(number))
}

/// The page with this number: counters grow from one to the next.
pub fn page(number: u64) -> String {
    let mut page = String::new();
    for index in 0..HISTOGRAMS {
        let labels = format!("model_name=\"tiny-chat\",engine=\"{index}\",finished_reason=\"stop\"");
        let name = format!("vllm:request_time_{}_seconds", index % 20);
        if index < 20 {
            let _ = write!(page, "# HELP {name} Histogram of the time in seconds.\n# TYPE {name} histogram\n");
        }
        for (position, bucket) in (1_u64..).zip(BUCKETS) {
            let count = (number + 1) * position;
            let _ = writeln!(page, "{name}_bucket{{{labels},le=\"{bucket}\"}} {count}.0");
        }
        let _ = writeln!(page, "{name}_sum{{{labels}}} {:.6}", (number + 1) as f64 * 1.234_567);
        let _ = writeln!(page, "{name}_count{{{labels}}} {}.0", (number + 1) * 18);
    }
    let kinds = [("counter", "vllm:prompt_tokens_total"), ("gauge", "vllm:gpu_cache_usage_perc")];
    for (kind, name) in kinds {
        let _ = write!(page, "# HELP {name} A {kind} of each engine.\n# TYPE {name} {kind}\n");
        for index in 0..(SERIES - HISTOGRAMS * (BUCKETS.len() + 2)) / kinds.len() {
            let value = (number + 1) as f64 * (index as f64 + 0.5);
            let _ =
                writeln!(page, "{name}{{model_name=\"tiny-chat\",engine=\"{index}\",rank=\"{}\"}} {value}", index % 8);
        }
    }
    page
}
