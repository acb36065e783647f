//! Fetches a page: one GET, within the timeout, past any proxy.

use std::error::Error;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};

use super::config::TargetSettings;
use super::target::Page;

/// A page larger than this (after decompression) is no metric page.
const LARGEST_PAGE: usize = 256 * 1024 * 1024;

/// The clients of one receiver: their connections are kept from scrape to scrape.
#[derive(Clone, Debug)]
pub struct Fetcher {
    client: Client,
}

impl Fetcher {
    /// A fetcher that follows redirects (up to ten) or does not.
    ///
    /// # Errors
    /// The TLS part could not be set up.
    pub fn new(follow_redirects: bool) -> Result<Self, String> {
        let redirects = if follow_redirects { Policy::limited(10) } else { Policy::none() };
        // Targets are named by their addresses: a proxy for the way out has no business between.
        let client = Client::builder().no_proxy().no_gzip().redirect(redirects).pool_max_idle_per_host(1).build();
        client.map(|client| Self { client }).map_err(|error| cause(&error))
    }

    /// The page of a target, or in short why there is none.
    ///
    /// # Errors
    /// The reason, without the URL: it may hold secrets.
    pub async fn fetch(&self, target: &TargetSettings) -> Result<Page, String> {
        match tokio::time::timeout(target.timeout, self.get(target)).await {
            Ok(page) => page,
            Err(_) => Err(format!("no complete answer within {:?}", target.timeout)),
        }
    }

    async fn get(&self, target: &TargetSettings) -> Result<Page, String> {
        let request = self.client.get(target.url.clone()).headers(target.headers.clone());
        let mut response = request.send().await.map_err(|error| explain(&error))?;
        if response.status() != StatusCode::OK {
            return Err(format!("the target answered HTTP {}", response.status()));
        }
        let content_type = header(&response, CONTENT_TYPE);
        let gzip = header(&response, CONTENT_ENCODING).as_deref() == Some("gzip");
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| explain(&error))? {
            if body.len() + chunk.len() > LARGEST_PAGE {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        if gzip {
            body = decompress(&body)?;
        }
        Ok(Page { body, content_type })
    }
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> Option<String> {
    response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn too_large() -> String {
    format!("the page is larger than {LARGEST_PAGE} bytes")
}

fn decompress(body: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::with_capacity(body.len() * 4);
    let mut reader = MultiGzDecoder::new(body).take(LARGEST_PAGE as u64 + 1);
    reader.read_to_end(&mut plain).map_err(|error| format!("the page is said to be gzip and is not: {error}"))?;
    if plain.len() > LARGEST_PAGE { Err(too_large()) } else { Ok(plain) }
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

/// The innermost cause: what the system or the protocol said.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::decompress;

    #[test]
    fn gzip_in_one_part_or_several_and_nothing_else() {
        let pack = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).expect("write");
            encoder.finish().expect("finish")
        };
        let both = [pack("a 1\n"), pack("b 2\n")].concat();
        assert_eq!(decompress(&both).as_deref(), Ok(&b"a 1\nb 2\n"[..]));
        assert!(decompress(b"a 1\n").is_err());
        assert!(decompress(&both[..both.len() - 3]).is_err());
    }
}
