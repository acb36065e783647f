//! One POST.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Url};
use tokio::time::Instant;

use super::super::sending::{Compression, Outcome, PartialSuccess, Transport};
use super::answer;
use super::client::words;
use crate::collector::component::Refusal;
use crate::collector::config::secrets::Secrets;
use crate::collector::net::encoding::{Encoding, Unreadable};
use crate::collector::own::{Label, Labels, labels};
use crate::otlp::{Payload, Signal};

/// How much of an answer is read.
const ANSWER_LIMIT: usize = 64 << 10;

/// How often a request is sent on to another place.
const MOST_REDIRECTS: usize = 10;

/// The way of one signal's requests.
pub(super) struct Http {
    pub signal: Signal,
    pub client: Client,
    pub url: Url,
    pub headers: HeaderMap,
    pub compression: Compression,
    pub json: bool,
    /// Of one try; zero is none.
    pub timeout: Duration,
    /// What is kept out of texts.
    pub secrets: Secrets,
}

impl Transport for Http {
    fn encode(&self, payload: Payload) -> std::io::Result<Bytes> {
        let plain = if self.json {
            let mut text = Vec::new();
            payload.write_json(&mut text);
            vec![text.into()]
        } else {
            payload.into_parts()
        };
        // A configured Content-Encoding says that what is sent is what was given.
        let sent_as_given = self.headers.contains_key(CONTENT_ENCODING);
        let packed = if sent_as_given { plain.concat() } else { self.compression.pack(plain)? };
        Ok(packed.into())
    }

    fn endpoint(&self) -> Labels {
        let mut labels = labels([("server.address", self.url.host_str().unwrap_or_default())]);
        if !matches!(self.url.path(), "" | "/") {
            labels.push(("url.path".into(), Label::from(self.url.path())));
        }
        labels.extend(self.url.port().map(|port| ("server.port".into(), Label::Integer(port.into()))));
        labels
    }

    fn attempt(&self, request: Bytes) -> BoxFuture<'_, Outcome> {
        Box::pin(self.post(request))
    }
}

impl Http {
    async fn post(&self, body: Bytes) -> Outcome {
        let content_type = if self.json { "application/json" } else { "application/x-protobuf" };
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if !self.compression.name.is_empty() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(self.compression.name));
        }
        // Configured headers win.
        headers.extend(self.headers.clone());
        let begin = Instant::now();
        let mut url = self.url.clone();
        for _ in 0..MOST_REDIRECTS {
            let answer = match self.send(&url, &headers, &body, begin).await {
                Ok(answer) => answer,
                Err(error) => return self.not_answered(&error),
            };
            match next(&url, &answer) {
                Some(next) => url = next,
                None => return self.read(answer).await,
            }
        }
        let mut refusal = Refusal::permanent("redirects", format!("more than {MOST_REDIRECTS} redirects"));
        refusal.of_sender = true;
        Outcome::Never(refusal)
    }

    /// One request of a try that began at `begin`.
    async fn send(
        &self,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
        begin: Instant,
    ) -> Result<reqwest::Response, reqwest::Error> {
        let mut request = self.client.post(url.clone()).headers(headers.clone()).body(body.clone());
        if !self.timeout.is_zero() {
            request = request.timeout(self.timeout.saturating_sub(begin.elapsed()));
        }
        request.send().await
    }

    async fn read(&self, mut answer: reqwest::Response) -> Outcome {
        let status = answer.status().as_u16();
        let text =
            |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
        let (content_type, retry_after) = (text(CONTENT_TYPE), text(RETRY_AFTER));
        let is_packed = text(CONTENT_ENCODING).is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_success = (200..300).contains(&status);
        let mut body = Vec::new();
        while body.len() <= ANSWER_LIMIT {
            match answer.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                // The status is what counts: what was taken is not sent again, however the answer goes on.
                Err(_) if is_success => return accepted("(the answer broke off)"),
                Ok(None) | Err(_) => break,
            }
        }
        if is_success && body.len() > ANSWER_LIMIT {
            return accepted("(more than is read)");
        }
        body.truncate(ANSWER_LIMIT);
        // Some do that unasked.
        if is_packed && !body.is_empty() {
            body = match Encoding::Gzip.decode(body.into(), ANSWER_LIMIT) {
                Ok(plain) => plain.into(),
                Err(Unreadable::TooLarge) if is_success => return accepted("(more than is read)"),
                Err(Unreadable::Broken(_)) if is_success => return accepted("(the answer cannot be decompressed)"),
                Err(_) => Vec::new(),
            };
        }
        answer::read(self.signal, status, content_type.as_deref(), retry_after.as_deref(), &body, &self.secrets)
    }

    fn not_answered(&self, error: &reqwest::Error) -> Outcome {
        let reason = if error.is_timeout() { "timeout" } else { "connection" };
        Outcome::not_answered(reason, &words(error), &self.secrets)
    }
}

/// What a success is whose words are not known.
fn accepted(message: &str) -> Outcome {
    Outcome::Accepted(PartialSuccess { rejected: 0, message: message.to_owned() })
}

/// Where an answer sends the request on to, as it is: another place of the same host. Data and credentials go to no host
/// that nobody named, and from TLS not into the clear.
fn next(from: &Url, answer: &reqwest::Response) -> Option<Url> {
    if !matches!(answer.status().as_u16(), 307 | 308) {
        return None;
    }
    redirected(from, answer.headers().get(LOCATION)?.to_str().ok()?)
}

fn redirected(from: &Url, location: &str) -> Option<Url> {
    let mut to = from.join(location).ok()?;
    if to.host() != from.host()
        || !matches!((from.scheme(), to.scheme()), ("http", "http" | "https") | ("https", "https"))
    {
        return None;
    }
    if to.username().is_empty() && to.password().is_none() {
        // They cannot fail: it has a host.
        let _ = to.set_username(from.username());
        let _ = to.set_password(from.password());
    }
    Some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_sent_on_within_their_host_and_never_into_the_clear() {
        for (from, location, wanted) in [
            ("http://a:1/v1/traces", "/x?y=1", Some("http://a:1/x?y=1")),
            ("http://a:1/v1/traces", "x", Some("http://a:1/v1/x")),
            ("http://a/v1/traces", "https://a/v1/traces", Some("https://a/v1/traces")),
            ("http://me:secret@a:1/x", "//A:2/x", Some("http://me:secret@a:2/x")),
            ("https://a/x", "https://a:8443/x", Some("https://a:8443/x")),
            ("https://a/x", "http://a/x", None),
            ("http://a/x", "http://b/x", None),
            ("http://a/x", "http://a.b/x", None),
            ("http://127.0.0.1/x", "http://localhost/x", None),
            ("http://a/x", "ftp://a/x", None),
            ("http://a/x", "http://[", None),
        ] {
            let from = Url::parse(from).expect("a URL");
            assert_eq!(redirected(&from, location).as_ref().map(Url::as_str), wanted, "{from} {location}");
        }
    }
}
