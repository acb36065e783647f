//! One POST.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Url};

use super::super::sending::{Compression, Outcome, Transport};
use super::answer;
use super::client::words;
use crate::collector::component::Refusal;
use crate::collector::own::{Label, Labels, labels};
use crate::collector::secrets::Secrets;
use crate::otlp::{Payload, Signal};

/// How much of an answer is read.
const ANSWER_LIMIT: usize = 64 << 10;

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
    fn encode(&self, payload: &Payload) -> std::io::Result<Bytes> {
        let plain = if self.json {
            let mut text = Vec::new();
            payload.write_json(&mut text);
            vec![text.into()]
        } else {
            payload.encode_parts()
        };
        // A configured Content-Encoding says that what is sent is what was given.
        let sent_as_given = self.headers.contains_key(CONTENT_ENCODING);
        let packed = if sent_as_given { plain.concat() } else { self.compression.pack(&plain)? };
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
        answer::read(self.signal, status, content_type.as_deref(), retry_after.as_deref(), &body, &self.secrets)
    }

    fn not_answered(&self, error: &reqwest::Error) -> Outcome {
        let reason = if error.is_timeout() { "timeout" } else { "connection" };
        let words = self.secrets.mask(&words(error));
        Outcome::Later { refusal: Refusal::retryable(reason, words), pause: None }
    }
}
