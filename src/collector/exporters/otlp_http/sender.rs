//! One signal's way to the endpoint: encode once, try until it is decided.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Url};
use tokio_util::sync::CancellationToken;

use super::answer::{self, Outcome};
use super::backoff::{Backoff, Retry};
use super::client::words;
use crate::collector::component::{Context, Refusal, items_word};
use crate::collector::counters::Tally;
use crate::otlp::{Payload, Signal};

/// How much of an answer is read.
const ANSWER_LIMIT: usize = 64 << 10;

/// The two stages of a stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    /// Pauses end at once, and the try after that is the last.
    pub last_try: CancellationToken,
    /// What is under way is given up.
    pub abandon: CancellationToken,
}

/// Sends the payloads of one signal.
pub(super) struct Sender {
    pub signal: Signal,
    pub client: Client,
    pub url: Url,
    pub headers: HeaderMap,
    pub gzip: bool,
    pub json: bool,
    pub timeout: Duration,
    pub retry: Option<Retry>,
    pub context: Context,
    pub stop: Stop,
}

impl Sender {
    /// Sends it and counts what was accepted; what was not is for the caller to count.
    pub async fn send(self: Arc<Self>, payload: Payload) -> Result<(), Refusal> {
        let items = payload.item_count();
        let body = self.encode(&payload);
        drop(payload);
        let begin = Instant::now();
        let mut backoff = self.retry.map(Backoff::new);
        loop {
            let last = self.stop.last_try.is_cancelled();
            let outcome = tokio::select! {
                outcome = self.attempt(body.clone()) => outcome,
                () = self.stop.abandon.cancelled() => return Err(given_up()),
            };
            let (refusal, pause) = match outcome {
                Outcome::Accepted { rejected, message } => {
                    self.accepted(items, rejected, &message);
                    return Ok(());
                }
                Outcome::Never(refusal) => return Err(refusal),
                Outcome::Later { refusal, pause } => (refusal, pause),
            };
            let Some(backoff) = backoff.as_mut().filter(|_| !last) else { return Err(refusal) };
            let Some(pause) = backoff.next(begin.elapsed(), pause, fastrand::f64()) else {
                let message =
                    format!("no more tries after {:.0} s: {}", begin.elapsed().as_secs_f64(), refusal.message);
                return Err(Refusal { message, ..refusal });
            };
            self.context.failed(&format!(
                "{}; {items} {} are tried again in {:.1} s",
                refusal.message,
                items_word(self.signal),
                pause.as_secs_f64()
            ));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.last_try.cancelled() => {}
            }
        }
    }

    fn accepted(&self, items: usize, rejected: u64, message: &str) {
        let rejected = usize::try_from(rejected).unwrap_or(usize::MAX).min(items);
        self.context.count(self.signal, Tally::Sent, items - rejected);
        self.context.count(self.signal, Tally::Rejected, rejected);
        if rejected > 0 {
            self.context.failed(&format!("{rejected} {} rejected: {message}", items_word(self.signal)));
        } else if !message.is_empty() {
            self.context.log.limited(&format!("the endpoint accepted everything and says: {message}"));
        }
    }

    async fn attempt(&self, body: Bytes) -> Outcome {
        let content_type = if self.json { "application/json" } else { "application/x-protobuf" };
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if self.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        // Configured headers win.
        headers.extend(self.headers.clone());
        let mut request = self.client.post(self.url.clone()).headers(headers).body(body);
        if !self.timeout.is_zero() {
            request = request.timeout(self.timeout);
        }
        match request.send().await {
            Ok(answer) => self.read(answer).await,
            Err(error) => self.not_answered(&error),
        }
    }

    async fn read(&self, mut answer: reqwest::Response) -> Outcome {
        let status = answer.status().as_u16();
        let text =
            |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
        let (content_type, retry_after) = (text(CONTENT_TYPE), text(RETRY_AFTER));
        let mut body = Vec::new();
        while body.len() < ANSWER_LIMIT {
            match answer.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                // A status that says no is an answer, however its body ends.
                Err(_) if !(200..300).contains(&status) => break,
                Err(error) => return self.not_answered(&error),
            }
        }
        body.truncate(ANSWER_LIMIT);
        answer::read(
            self.signal,
            status,
            content_type.as_deref(),
            retry_after.as_deref(),
            &body,
            self.context.log.secrets(),
        )
    }

    fn not_answered(&self, error: &reqwest::Error) -> Outcome {
        let reason = if error.is_timeout() { "timeout" } else { "connection" };
        let words = self.context.log.secrets().mask(&words(error));
        Outcome::Later { refusal: Refusal::retryable(reason, words), pause: None }
    }

    /// The body as it is sent, made once for all tries.
    fn encode(&self, payload: &Payload) -> Bytes {
        let plain = if self.json {
            let mut text = Vec::new();
            payload.write_json(&mut text);
            text
        } else {
            payload.encode()
        };
        if !self.gzip {
            return plain.into();
        }
        // The fastest level: the others take several times as long for a few per cent.
        let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
        // Writing to memory cannot fail.
        let written = encoder.write_all(&plain);
        written.and_then(|()| encoder.finish()).unwrap_or_default().into()
    }
}

/// The refusal of what a stop did not leave time for.
pub(super) fn given_up() -> Refusal {
    Refusal::retryable("shutdown", "the collector stopped before it could be sent")
}
