//! The scrape loops: one task a target.
//!
//! The first scrape comes soon after the start, at a moment of the first second that depends on the target, so that
//! many targets do not answer at once; then a steady grid of the monotonic clock. A tick that comes while a scrape is
//! still under way is left out. Timestamps are of the wall clock when a scrape begins. At the stop a scrape under way
//! is given up, one more is made if the configuration says so, and no series is said to be gone: the targets may well
//! live on.

use std::cell::OnceCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, join_all};
use reqwest::Url;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::super::config::TargetSettings;
use super::super::record::{Memory, Times};
use super::fetch::Fetcher;
use crate::collector::component::{Context, Next, Outputs, Receiver, Running};
use crate::collector::controls::ScrapeNow;
use crate::collector::counters::Tally;
use crate::collector::deadline::Deadline;
use crate::diag::{Problem, excerpt};
use crate::otlp::Signal;

/// The first scrape is not later than this.
const FIRST_WITHIN: Duration = Duration::from_secs(1);

/// Of what a page says so many characters are shown.
const LONGEST_LINE: usize = 400;

/// A target that is down for one reason after the other is not heard of after so many.
const REASONS_SAID: usize = 10;

/// A checked receiver.
pub struct PrometheusReceiver {
    /// All targets of all jobs.
    pub targets: Vec<TargetSettings>,
}

impl Receiver for PrometheusReceiver {
    fn start(
        self: Box<Self>,
        context: Context,
        outputs: Outputs,
    ) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>> {
        Box::pin(std::future::ready(
            self.begin(&context, &outputs).map(|running| Box::new(running) as Box<dyn Running>),
        ))
    }
}

/// A forced scrape.
struct Request {
    /// No scrape comes after it by itself.
    last: bool,
    done: oneshot::Sender<()>,
}

impl PrometheusReceiver {
    pub(super) fn begin(self, context: &Context, outputs: &Outputs) -> Result<Scraping, Problem> {
        let stop = CancellationToken::new();
        let mut scraping = Scraping { stop: stop.clone(), tasks: Vec::new() };
        let Some(next) = outputs.get(Signal::Metrics) else { return Ok(scraping) };
        let mut clients = Vec::new();
        let mut requests = Vec::new();
        for target in self.targets {
            let fetcher = Fetcher::new(&target.request.client, &mut clients)
                .map_err(|why| Problem::new(format!("the HTTP client cannot be set up: {why}")))?;
            let (request, requested) = mpsc::unbounded_channel();
            requests.push(request);
            let (context, next) = (context.clone(), next.clone());
            let scraper = Scraper { target, fetcher, context, next, memory: Memory::default(), said: Vec::new() };
            scraping.tasks.push(tokio::spawn(scraper.run(requested, stop.clone())));
        }
        context.controls.add_scraper(Arc::new(Forced { requests }));
        Ok(scraping)
    }
}

/// The scrape loops of one receiver, running.
pub(super) struct Scraping {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Running for Scraping {
    fn shutdown(self: Box<Self>, deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Self { stop, mut tasks } = *self;
            stop.cancel();
            if deadline.until(join_all(tasks.iter_mut())).await.is_none() {
                tasks.iter().for_each(JoinHandle::abort);
            }
        })
    }
}

/// Forced scrapes of all targets of a receiver.
struct Forced {
    requests: Vec<mpsc::UnboundedSender<Request>>,
}

impl ScrapeNow for Forced {
    fn scrape_now(&self, last: bool) -> BoxFuture<'_, ()> {
        let answers = self.requests.iter().map(|target| {
            let (done, answer) = oneshot::channel();
            // A target whose loop has ended answers at once: the request is dropped with its queue.
            let _ = target.send(Request { last, done });
            answer
        });
        let all = join_all(answers.collect::<Vec<_>>());
        Box::pin(async move { drop(all.await) })
    }
}

/// One target.
struct Scraper {
    target: TargetSettings,
    fetcher: Fetcher,
    context: Context,
    next: Next,
    memory: Memory,
    /// Why it has been down since it was last up, as it was said; none if it is up.
    said: Vec<String>,
}

impl Scraper {
    async fn run(mut self, mut requested: mpsc::UnboundedReceiver<Request>, stop: CancellationToken) {
        let first = Instant::now() + self.target.offset + self.offset();
        let mut grid = interval_at(first, self.target.interval);
        grid.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut last = self.context.controls.scraped_last();
        loop {
            let mut requests = Vec::new();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(request) = requested.recv() => requests.push(request),
                _ = grid.tick(), if !last => {}
            }
            // Requests that came meanwhile are met by the scrape that begins now.
            while let Ok(request) = requested.try_recv() {
                requests.push(request);
            }
            if !self.scrape(&stop).await {
                break;
            }
            for request in requests {
                last |= request.last;
                let _ = request.done.send(());
            }
        }
        if self.target.at_stop && !last {
            self.scrape(&CancellationToken::new()).await;
        }
    }

    /// Where in the first interval (at most a second of it) this target has its place.
    fn offset(&self) -> Duration {
        let mut hasher = DefaultHasher::new();
        self.target.url.as_ref().map(Url::as_str).hash(&mut hasher);
        self.target.rules.target.hash(&mut hasher);
        let within = self.target.interval.min(FIRST_WITHIN).as_micros();
        let within = u64::try_from(within).unwrap_or(u64::MAX).max(1);
        Duration::from_micros(hasher.finish() % within)
    }

    /// One scrape, handed on; false if it was given up for the stop.
    async fn scrape(&mut self, stop: &CancellationToken) -> bool {
        let (start_ms, began) = (now_ms(), Instant::now());
        let page = tokio::select! {
            biased;
            () = stop.cancelled() => return false,
            page = self.fetcher.fetch(&self.target) => page,
        };
        let times = Times { start_ms, seconds: began.elapsed().as_secs_f64() };
        let record = self.memory.record(&self.target.rules, page.as_ref(), times);
        self.say(record.error.as_deref(), &record.warnings);
        let points = record.payload.item_count();
        if record.broken_points > 0 {
            // These never come to the pipelines, where the others are counted.
            self.context.count(Signal::Metrics, Tally::Received, record.broken_points);
            self.context.count(Signal::Metrics, Tally::Dropped("contradictory".into()), record.broken_points);
        }
        let owed = self.context.owe(Signal::Metrics, points);
        let result = self.next.consume(record.payload).await;
        owed.settled();
        if let Err(refusal) = result {
            self.context.count_dropped(Signal::Metrics, points, &refusal);
        }
        true
    }

    /// A line when the target goes down, is down for another reason, or comes back, and for what was left out.
    fn say(&mut self, error: Option<&str>, warnings: &[String]) {
        let log = &self.context.log;
        let name = self.name();
        // Those that stand in files are not known to the log.
        let secrets = OnceCell::new();
        let shown = |text: &str| {
            let secrets = secrets.get_or_init(|| self.target.request.secrets());
            excerpt(&log.secrets().mask(&secrets.mask(text)), LONGEST_LINE)
        };
        match error {
            Some(reason) if self.said.len() < REASONS_SAID => {
                let reason = shown(reason);
                if !self.said.contains(&kind(&reason)) {
                    let still = if self.said.is_empty() { "" } else { "still " };
                    log.warn(&format!("{name} is {still}down: {reason}"));
                    self.said.push(kind(&reason));
                }
            }
            None if !self.said.is_empty() => {
                log.info(&format!("{name} is up again"));
                self.said.clear();
            }
            _ => {}
        }
        for warning in warnings {
            log.warn(&format!("{name}: {}", shown(warning)));
        }
    }

    /// The target for people; parameters are left out, since they may be secret.
    fn name(&self) -> String {
        let job = self.target.rules.target.get("job");
        let Ok(url) = &self.target.url else { return format!("a target of job {job}") };
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("target {}://{host}{port}{} of job {job}", url.scheme(), url.path())
    }
}

/// A reason without its numbers (a line, a size), which may change from scrape to scrape while the reason does not; but with
/// those of three digits, which are statuses.
fn kind(reason: &str) -> String {
    let mut kind = String::new();
    let mut digits = String::new();
    for letter in reason.chars().chain(['\n']) {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        if !digits.is_empty() {
            kind.push_str(if digits.len() == 3 { &digits } else { "#" });
            digits.clear();
        }
        kind.push(letter);
    }
    kind
}

/// Milliseconds since the epoch.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
