//! Fetches a page: one GET, within the timeout, past any proxy.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};

use super::super::config::TargetSettings;
use super::super::record::{Failure, Page};
use super::client::{ClientSettings, Clients, cause};
use super::credentials::{Authorization, Secret, header_value};
use crate::collector::config::duration::about;
use crate::collector::config::secrets::Secrets;
use crate::collector::net::encoding::{Encoding, Unreadable};

/// A page larger than this (after decompression) is no metric page.
const LARGEST_PAGE: usize = 256 * 1024 * 1024;

/// What goes along with each request of a job.
#[derive(Clone, Debug)]
pub struct Request {
    /// Headers that never change.
    pub headers: HeaderMap,
    /// Headers of the configuration.
    pub own_headers: Vec<(HeaderName, Secret)>,
    /// Who asks.
    pub authorization: Option<Authorization>,
    /// Which client sends it.
    pub client: ClientSettings,
    /// The page must be smaller than this, in bytes after decompression.
    pub body_limit: Option<usize>,
}

impl Request {
    /// What of it no text may show, as it is now: a target may quote what it was asked with.
    pub fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let of_authorization: Vec<&Secret> = match &self.authorization {
            Some(Authorization::Basic { username, password }) => [username, password].into_iter().flatten().collect(),
            Some(Authorization::Other { credentials, .. }) => credentials.iter().collect(),
            None => Vec::new(),
        };
        let own = self.own_headers.iter().map(|(_, value)| value);
        for text in of_authorization.into_iter().chain(own).filter_map(|secret| secret.read().ok()) {
            secrets.add(&text);
        }
        if let Some(Ok(header)) = self.authorization.as_ref().map(Authorization::header) {
            secrets.add(&String::from_utf8_lossy(header.as_bytes()));
        }
        secrets
    }
}

/// Fetches pages of one target.
#[derive(Clone, Debug)]
pub struct Fetcher {
    clients: Arc<Clients>,
}

impl Fetcher {
    /// A fetcher that shares its connections with others of the same settings.
    ///
    /// # Errors
    /// The HTTP client cannot be made.
    pub fn new(settings: &ClientSettings, known: &mut Vec<Arc<Clients>>) -> Result<Self, String> {
        if let Some(clients) = known.iter().find(|clients| clients.settings() == settings) {
            return Ok(Self { clients: Arc::clone(clients) });
        }
        let clients = Arc::new(Clients::new(settings.clone())?);
        known.push(Arc::clone(&clients));
        Ok(Self { clients })
    }

    /// The page of a target, or in short why there is none.
    ///
    /// # Errors
    /// The reason, without the URL: it may hold secrets.
    pub async fn fetch(&self, target: &TargetSettings) -> Result<Page, Failure> {
        if let Some(reason) = &target.forced_failure {
            return Err(reason.clone().into());
        }
        match tokio::time::timeout(target.timeout, self.get(target)).await {
            Ok(page) => page,
            Err(_) => Err(format!("no complete answer within {}", about(target.timeout)).into()),
        }
    }

    async fn get(&self, target: &TargetSettings) -> Result<Page, Failure> {
        let mut response = self.send(target).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("the target answered HTTP {}", response.status()).into());
        }
        let limit = target.request.body_limit;
        let content_type = header(&response, CONTENT_TYPE);
        let gzip = header(&response, CONTENT_ENCODING).as_deref() == Some("gzip");
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| explain(&error))? {
            body.extend_from_slice(&chunk);
            check_size(body.len(), if gzip { None } else { limit })?;
        }
        if gzip {
            body = decompress(body, limit)?;
        }
        Ok(Page { body, content_type })
    }

    async fn send(&self, target: &TargetSettings) -> Result<Response, String> {
        let mut url = target.url.clone()?;
        let request = &target.request;
        let mut headers = request.headers.clone();
        let seconds = format!("{}", target.timeout.as_secs_f64());
        if let Ok(value) = HeaderValue::try_from(seconds) {
            headers.insert("x-prometheus-scrape-timeout-seconds", value);
        }
        if let Some(authorization) = &request.authorization {
            headers.insert(AUTHORIZATION, authorization.header()?);
        }
        for (name, value) in &request.own_headers {
            headers.append(name.clone(), header_value(&value.read()?)?);
        }
        let client = if url.scheme() == "https" { self.clients.secure()? } else { self.clients.plain() };
        if let (Some(name), true) = (request.client.tls.told_name(), url.scheme() == "https") {
            if let Ok(host) = HeaderValue::try_from(authority(&url)) {
                headers.insert(HOST, host);
            }
            url.set_host(Some(name)).map_err(|_| format!("`{name}` is no name of a host"))?;
        }
        let plain = url.scheme() == "http";
        let sent = client.get(url.clone()).headers(headers.clone()).send().await;
        match sent {
            // The client without certificates was sent on to where they are needed.
            Err(error) if plain && error.url().is_some_and(|at| at.scheme() == "https") => {
                let Some(there) = error.url().cloned() else { return Err(explain(&error)) };
                if there.host_str() != url.host_str() {
                    headers.remove(AUTHORIZATION);
                }
                let again = self.clients.secure()?.get(there).headers(headers).send().await;
                again.map_err(|error| explain(&error))
            }
            sent => sent.map_err(|error| explain(&error)),
        }
    }
}

/// `host:port`, as the URL has it.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn header(response: &Response, name: HeaderName) -> Option<String> {
    response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A page as large as its limit is too large, as in the reference.
fn check_size(size: usize, limit: Option<usize>) -> Result<(), Failure> {
    let fits = limit.is_none_or(|limit| size < limit) && size <= LARGEST_PAGE;
    if fits { Ok(()) } else { Err(too_large(limit)) }
}

fn too_large(limit: Option<usize>) -> Failure {
    match limit {
        Some(limit) if limit <= LARGEST_PAGE => {
            let reason = format!("the page is not smaller than `body_size_limit` ({limit} bytes)");
            Failure { reason, too_large: true }
        }
        _ => format!("the page is larger than {LARGEST_PAGE} bytes").into(),
    }
}

/// The page in a gzip body.
fn decompress(body: Vec<u8>, limit: Option<usize>) -> Result<Vec<u8>, Failure> {
    let most = limit.map_or(LARGEST_PAGE, |limit| limit.saturating_sub(1).min(LARGEST_PAGE));
    match Encoding::Gzip.decode(body.into(), most) {
        Ok(page) => Ok(page.into()),
        Err(Unreadable::TooLarge) => Err(too_large(limit)),
        Err(Unreadable::Broken(why)) => Err(format!("gzip: {why}").into()),
    }
}

fn explain(error: &reqwest::Error) -> String {
    let what = if error.is_connect() {
        "cannot connect"
    } else if error.is_redirect() {
        "too many redirects"
    } else if error.is_body() || error.is_decode() {
        "the answer broke off"
    } else {
        "no valid answer"
    };
    format!("{what}: {}", cause(error))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::{LARGEST_PAGE, check_size, decompress};

    #[test]
    fn the_largest_page() {
        assert!(check_size(256 << 20, None).is_ok() && check_size((256 << 20) + 1, None).is_err());
        let above = check_size(LARGEST_PAGE + 1, Some(usize::MAX)).expect_err("too large");
        assert!(above.reason.contains("larger than 268435456 bytes") && !above.too_large, "{above:?}");
    }

    #[test]
    fn gzip_in_one_part_or_several_and_nothing_else() {
        let pack = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).expect("write");
            encoder.finish().expect("finish")
        };
        let both = [pack("a 1\n"), pack("b 2\n")].concat();
        assert_eq!(decompress(both.clone(), None).as_deref(), Ok(&b"a 1\nb 2\n"[..]));
        assert!(decompress(b"a 1\n".to_vec(), None).is_err());
        assert!(decompress(both[..both.len() - 3].to_vec(), None).is_err());
        // The limit is for what comes out.
        assert!(decompress(both.clone(), Some(9)).is_ok());
        assert!(decompress(both.clone(), Some(8)).is_err_and(|failure| failure.too_large));
    }
}
