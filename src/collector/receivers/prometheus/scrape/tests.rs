//! Tests of the scrape loops against a small HTTP server on loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{Instant, sleep};

use super::receiver::Scraping;
use super::{Authorization, ClientSettings, PrometheusReceiver, Request, Secret, Tls};
use crate::collector::component::{Context, Next, Outputs, Running as _, Shared};
use crate::collector::controls::Controls;
use crate::collector::counters::{Counters, Tally};
use crate::collector::deadline::Deadline;
use crate::collector::log::{Level, Log};
use crate::collector::receivers::prometheus::config::TargetSettings;
use crate::collector::receivers::prometheus::record::{Labels, Rules};
use crate::collector::testing::Keeper;
use crate::otlp::{Items, Signal};

mod server;

use server::{answer, pages, serve};

/// Whether the n-th payload has a metric of this name.
fn has(kept: &Keeper, place: usize, name: &str) -> bool {
    let kept = kept.payloads.lock().expect("lock");
    let scopes = kept[place].resources.iter().flat_map(|of| &of.scopes);
    scopes.into_iter().any(|scope| match &scope.items {
        Items::Metrics(metrics) => metrics.iter().any(|metric| metric.name == *name),
        Items::Records(_) => false,
    })
}

struct Run {
    context: Context,
    kept: Keeper,
    lines: Arc<Mutex<Vec<String>>>,
    scraping: Scraping,
}

impl Run {
    fn start(targets: Vec<TargetSettings>) -> Self {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = lines.clone();
        let log = Log::new(Arc::new(move |line: &str| sink.lock().expect("lock").push(line.to_owned())), Level::Info);
        let context = Context {
            name: "receivers/prometheus".into(),
            log,
            counters: Arc::new(Counters::default()),
            controls: Arc::new(Controls::default()),
            shared: Shared::default(),
        };
        let kept = Keeper::default();
        let outputs = Outputs::default().with(Signal::Metrics, Next::to(kept.clone()));
        let scraping = PrometheusReceiver { targets }.begin(&context, &outputs).expect("started");
        Self { context, kept, lines, scraping }
    }

    fn lines(&self, word: &str) -> Vec<String> {
        self.lines.lock().expect("lock").iter().filter(|line| line.contains(word)).cloned().collect()
    }

    async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !done(self) {
            assert!(Instant::now() < deadline, "waiting for {what}: {:?}", self.lines(""));
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn stop(self) {
        Box::new(self.scraping).shutdown(Deadline::fixed(Instant::now() + Duration::from_secs(5))).await;
    }
}

fn target(port: u16, path: &str, interval_ms: u64) -> TargetSettings {
    let labels = [("job", "j"), ("instance", "i")];
    let labels = Labels::new(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("accept-encoding", reqwest::header::HeaderValue::from_static("gzip"));
    let client = ClientSettings { follow_redirects: true, http2: true, tls: Tls::default(), named_host: None };
    let rules = Rules { target: labels, scheme: "http".into(), honor_timestamps: true, ..Rules::default() };
    TargetSettings {
        url: Ok(format!("http://127.0.0.1:{port}{path}").parse().expect("url")),
        request: Request { headers, own_headers: Vec::new(), authorization: None, client, body_limit: None }.into(),
        interval: Duration::from_millis(interval_ms),
        // As long as a loaded machine may need.
        timeout: Duration::from_mins(1),
        offset: Duration::ZERO,
        at_stop: false,
        forced_failure: None,
        rules: rules.into(),
    }
}

/// The target with another request.
fn asking(mut target: TargetSettings, change: impl FnOnce(&mut Request)) -> TargetSettings {
    change(Arc::make_mut(&mut target.request));
    target
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_come_packed_redirected_and_plain() {
    let port = serve(pages).await;
    for path in ["/gzip", "/metrics", "/plain"] {
        let run = Run::start(vec![target(port, path, 60_000)]);
        run.until("a scrape", |run| run.kept.counts().len() == 1).await;
        assert!(has(&run.kept, 0, "a"), "{path}: {:?}", run.lines(""));
        assert!(run.lines("").is_empty());
        run.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_says_why() {
    let port = serve(pages).await;
    let unfollowed = asking(target(port, "/metrics", 60_000), |request| request.client.follow_redirects = false);
    let large = asking(target(port, "/plain", 60_000), |request| request.body_limit = Some(4));
    let secret = Secret::File("/no/secret".into());
    let lost = Authorization::Other { kind: "Bearer".into(), credentials: Some(secret) };
    let unreadable = asking(target(port, "/plain", 60_000), |request| request.authorization = Some(lost));
    let (mut no_url, mut forced) = (target(port, "/plain", 60_000), target(port, "/plain", 60_000));
    no_url.url = Err("no address at all".into());
    forced.forced_failure = Some("too many targets".into());
    let mut slow = target(port, "/never", 60_000);
    slow.timeout = Duration::from_millis(50);
    for (target, reason) in [
        (target(port, "/loop", 60_000), "too many redirects"),
        (target(port, "/short", 60_000), "the answer broke off"),
        (target(port, "/created", 60_000), "HTTP 201"),
        (target(port, "/nothing", 60_000), "HTTP 404"),
        (target(1, "/metrics", 60_000), "cannot connect: "),
        (unfollowed, "HTTP 307"),
        (slow, "no complete answer within 50 ms"),
        (large, "not smaller than `body_size_limit` (4 bytes)"),
        (unreadable, "cannot read /no/secret"),
        (no_url, "no address at all"),
        (forced, "too many targets"),
    ] {
        let run = Run::start(vec![target]);
        run.until("a scrape", |run| run.kept.counts().len() == 1).await;
        assert!(has(&run.kept, 0, "up") && !has(&run.kept, 0, "a"));
        let lines = run.lines("is down");
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(reason), "{lines:?}");
        run.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn up_and_down_are_said_on_change_only_and_others_go_on() {
    let port = serve(pages).await;
    // Nobody else gets the port, and nobody listens on it yet.
    let unused = TcpSocket::new_v4().expect("a socket");
    unused.bind("127.0.0.1:0".parse().expect("an address")).expect("bind");
    let later = unused.local_addr().expect("address");
    let run = Run::start(vec![target(port, "/plain", 20), target(later.port(), "/plain", 20)]);
    run.until("scrapes", |run| run.kept.counts().len() > 20).await;
    let listener = unused.listen(8).expect("listens");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer("200 OK", "", b"b 1\n")).await;
        }
    });
    run.until("the second target", |run| !run.lines("is up again").is_empty()).await;
    assert_eq!(run.lines("").len(), 2, "{:?}", run.lines(""));
    assert!(run.lines("is down")[0].contains("cannot connect"));
    run.stop().await;
}

/// One that is down for another reason is said to be, once for each reason until it is up.
#[tokio::test(flavor = "multi_thread")]
async fn each_reason_is_said_once() {
    let port = serve(pages).await;
    let run = Run::start(vec![target(port, "/turns", 5)]);
    run.until("all turns", |run| run.kept.counts().len() > 14).await;
    let said: Vec<String> =
        run.lines("").iter().map(|line| line.split(" is ").nth(1).expect("a state").into()).collect();
    let wanted = ["down: ", "still down: ", "still down: ", "up again", "down: ", "up again"];
    assert_eq!(said.len(), wanted.len(), "{said:?}");
    for (said, wanted) in said.iter().zip(wanted) {
        assert!(said.starts_with(wanted), "{said:?}");
    }
    for (place, word) in [(0, "500"), (2, "503"), (4, "500")] {
        assert!(said[place].contains(word), "{said:?}");
    }
    run.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_scrape_ends_when_the_points_have_been_handed_on() {
    let port = serve(pages).await;
    let run = Run::start(vec![target(port, "/plain", 3_600_000), target(port, "/gzip", 3_600_000)]);
    run.until("the first scrapes", |run| run.kept.counts().len() == 2).await;
    assert!(run.context.controls.scrape_now(false).await);
    assert_eq!(run.kept.counts().len(), 4);
    let (controls, kept) = (run.context.controls.clone(), run.kept.clone());
    run.stop().await;
    assert!(controls.scrape_now(false).await, "after the stop there is nothing to wait for");
    assert_eq!(kept.counts().len(), 4, "the stop adds nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_a_slow_target() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let mut slow = target(listener.local_addr().expect("address").port(), "/slow", 10);
    slow.timeout = Duration::from_hours(1);
    let run = Run::start(vec![slow]);
    // It has been asked, and does not answer.
    let (mut stream, _) = listener.accept().await.expect("a scrape");
    assert!(stream.read(&mut [0; 1024]).await.expect("a request") > 0);
    let kept = run.kept.clone();
    let stop = Box::new(run.scraping).shutdown(Deadline::fixed(Instant::now() + Duration::from_hours(1)));
    tokio::time::timeout(Duration::from_mins(1), stop).await.expect("the scrape is given up");
    assert_eq!(kept.counts().len(), 0);
}

/// Points that contradict themselves are counted, as received and as dropped.
#[tokio::test(flavor = "multi_thread")]
async fn what_contradicts_itself_is_counted() {
    let port = serve(pages).await;
    let run = Run::start(vec![target(port, "/contradictory", 60_000)]);
    run.until("a scrape", |run| run.kept.counts().len() == 1).await;
    for tally in [Tally::Received, Tally::Dropped("contradictory".into())] {
        assert_eq!(run.context.counters.of("receivers/prometheus", Signal::Metrics, &tally), 1, "{tally:?}");
    }
    run.stop().await;
}

/// What a page says is cut, and none of what it was asked with is in what is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_line_is_said_in_short() {
    let port = serve(pages).await;
    let secret = "t".repeat(600);
    let with_token = |request: &mut Request| {
        let credentials = Some(Secret::Inline(secret.clone()));
        request.authorization = Some(Authorization::Other { kind: "Bearer".into(), credentials });
    };
    let run = Run::start(vec![asking(target(port, "/echo", 60_000), with_token)]);
    run.until("a scrape", |run| run.kept.counts().len() == 1).await;
    let lines = run.lines("is down");
    assert!(lines[0].chars().count() < 600 && lines[0].contains("***") && lines[0].ends_with('…'), "{lines:?}");
    assert!(!lines[0].contains("tttt"), "{lines:?}");
    run.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_may_be_a_last_scrape_at_the_stop() {
    let port = serve(pages).await;
    let mut last = target(port, "/plain", 3_600_000);
    last.at_stop = true;
    let mut late = last.clone();
    late.offset = Duration::from_hours(1);
    for (target, scrapes) in [(last, 2), (late, 1)] {
        let run = Run::start(vec![target]);
        if scrapes == 2 {
            run.until("the first scrape", |run| run.kept.counts().len() == 1).await;
        }
        let kept = run.kept.clone();
        run.stop().await;
        assert_eq!(kept.counts().len(), scrapes);
        assert!(has(&kept, scrapes - 1, "a"));
    }
}

/// A broken line is named, but for what it has of the request's secrets, wherever they come from.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_quotes_its_credentials_is_not_quoted() {
    let port = serve(|_, request| {
        let lines: Vec<&str> =
            request.lines().filter(|line| line.contains("authorization") || line.contains("x-own")).collect();
        answer("200 OK", "", format!("a 1\n{}\n", lines.join(" ")).as_bytes())
    })
    .await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "t0ken-in-a-file\n").expect("writes");
    let in_file = || Some(Secret::File(file.path().to_owned()));
    let bearer = Authorization::Other { kind: "Bearer".into(), credentials: in_file() };
    let basic = Authorization::Basic { username: Some(Secret::Inline("me".into())), password: in_file() };
    for authorization in [bearer, basic] {
        let target = asking(target(port, "/", 3_600_000), |request| {
            request.authorization = Some(authorization.clone());
            let name = reqwest::header::HeaderName::from_static("x-own");
            request.own_headers = vec![(name, Secret::File(file.path().to_owned()))];
        });
        let run = Run::start(vec![target]);
        run.until("a failed scrape", |run| !run.lines("is down").is_empty()).await;
        let lines = run.lines("is down");
        let header = authorization.header().expect("a header");
        let credentials = header.to_str().expect("text").to_lowercase();
        let credentials = credentials.split(' ').nth(1).expect("credentials");
        assert!(
            lines.iter().all(|line| !line.contains("t0ken") && !line.to_lowercase().contains(credentials)),
            "{lines:?}"
        );
        run.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_and_own_headers_go_along() {
    let port = serve(|_, request| {
        let there =
            ["authorization: bearer t0ken", "x-own: one", "x-own: two", "x-prometheus-scrape-timeout-seconds: 60"];
        let status = if there.iter().all(|line| request.contains(line)) { "200 OK" } else { "401 Unauthorized" };
        answer(status, "", b"a 1\n")
    })
    .await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "t0ken\n").expect("writes");
    let own = |value: &str| (reqwest::header::HeaderName::from_static("x-own"), Secret::Inline(value.into()));
    let target = asking(target(port, "/", 3_600_000), |request| {
        let credentials = Some(Secret::File(file.path().to_owned()));
        request.authorization = Some(Authorization::Other { kind: "Bearer".into(), credentials });
        request.own_headers = vec![own("one"), own("two")];
    });
    let run = Run::start(vec![target]);
    run.until("a scrape", |run| run.kept.counts().len() == 1).await;
    assert!(has(&run.kept, 0, "a"), "{:?}", run.lines(""));
    run.stop().await;
}
