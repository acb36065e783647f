//! HTTP clients of scrapes: connections are kept from scrape to scrape.
//!
//! A client for `http` alone reads no certificates: that takes time and memory. One with certificates is made when it
//! is first needed, and made anew when the files that it came from have changed.

use std::sync::{Arc, Mutex, PoisonError};

use reqwest::Client;
use reqwest::redirect::Policy;

use super::credentials::Secret;
use crate::collector::net::host::Renamed;
use crate::collector::net::tls::{Keys, Material, Version, connection_words, is_name};

/// How the settings are named in what is said about a scrape.
const KEYS: Keys = Keys {
    authority: "tls_config.ca_file",
    identity: "`tls_config.cert_file` and `tls_config.key_file`",
    server_name: "tls_config.server_name",
};

/// How targets of a job are reached.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSettings {
    /// Whether redirects are followed, up to nine: the tenth request is the last one.
    pub follow_redirects: bool,
    /// Whether HTTP/2 may be used over TLS.
    pub http2: bool,
    /// How certificates are checked.
    pub tls: Tls,
    /// The host that `tls.server_name` stands for.
    pub named_host: Option<String>,
}

/// `tls_config`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tls {
    /// Whom to trust, instead of the system's authorities.
    pub authority: Option<Secret>,
    /// Our own certificate and its key.
    pub identity: Option<(Secret, Secret)>,
    /// The name that the target's certificate must have, instead of the host's.
    pub server_name: Option<String>,
    /// Whether the target's certificate is not checked.
    pub skip_verify: bool,
    /// The oldest version.
    pub oldest: Option<Version>,
    /// The newest version.
    pub newest: Option<Version>,
}

/// The clients for one kind of settings.
#[derive(Debug)]
pub struct Clients {
    settings: ClientSettings,
    plain: Client,
    /// With what its files held when it was made.
    secure: Mutex<Option<(Vec<String>, Client)>>,
}

impl Clients {
    /// Clients of these settings; certificates are read at the first use.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn new(settings: ClientSettings) -> Result<Self, String> {
        let plain = base(&settings).tls_certs_only([]).build().map_err(|error| cause(&error))?;
        Ok(Self { settings, plain, secure: Mutex::new(None) })
    }

    /// What it was made of.
    #[must_use]
    pub fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// The client for `http`.
    #[must_use]
    pub fn plain(&self) -> Client {
        self.plain.clone()
    }

    /// The client for `https`.
    ///
    /// # Errors
    /// A file cannot be read, or does not hold what it should.
    pub fn secure(&self) -> Result<Client, String> {
        let contents = self.settings.tls.contents()?;
        let mut made = self.secure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((former, client)) = made.as_ref()
            && *former == contents
        {
            return Ok(client.clone());
        }
        let client = secure(&self.settings, &contents)?;
        *made = Some((contents, client.clone()));
        Ok(client)
    }
}

impl Tls {
    /// What the secrets hold now: authority, certificate, key.
    fn contents(&self) -> Result<Vec<String>, String> {
        let identity = self.identity.as_ref();
        let secrets = [self.authority.as_ref(), identity.map(|pair| &pair.0), identity.map(|pair| &pair.1)];
        secrets.into_iter().map(|secret| secret.map_or(Ok(String::new()), Secret::read_pem)).collect()
    }

    /// The name that the target is told and must have; an address is only checked.
    #[must_use]
    pub fn told_name(&self) -> Option<&str> {
        self.server_name.as_deref().filter(|name| is_name(name))
    }

    /// Checks that certificates and keys can be read and used; what is said about authorities that cannot be.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self) -> Result<Option<String>, String> {
        let contents = self.contents()?;
        let settings = ClientSettings { follow_redirects: true, http2: true, tls: self.clone(), named_host: None };
        secure(&settings, &contents)?;
        Ok(self.material(&contents)?.warning())
    }

    fn material<'a>(&'a self, contents: &'a [String]) -> Result<Material<'a>, String> {
        let [authority, certificate, key] = contents else { return Err("no certificates".into()) };
        Ok(Material {
            authorities: self.authority.as_ref().map(|_| authority.as_bytes()),
            with_system: false,
            identity: self.identity.as_ref().map(|_| (certificate.as_bytes(), key.as_bytes())),
            server_name: self.server_name.as_deref(),
            skip_verify: self.skip_verify,
            oldest: self.oldest,
            newest: self.newest,
        })
    }
}

fn base(settings: &ClientSettings) -> reqwest::ClientBuilder {
    let redirects = if settings.follow_redirects { Policy::limited(9) } else { Policy::none() };
    // Proxies are for the way out, and targets are named by their addresses: none without `proxy_url`.
    let builder = Client::builder().no_proxy().no_gzip().redirect(redirects).pool_max_idle_per_host(1);
    if has_http2(settings) { builder } else { builder.http1_only() }
}

fn secure(settings: &ClientSettings, contents: &[String]) -> Result<Client, String> {
    let tls = &settings.tls;
    let material = tls.material(contents)?;
    let protocols: &[&str] = if has_http2(settings) { &["h2", "http/1.1"] } else { &["http/1.1"] };
    let mut builder = base(settings).tls_backend_preconfigured(material.configure(protocols)?);
    if let (Some(name), Some(host)) = (tls.told_name(), &settings.named_host) {
        builder = builder.dns_resolver(Arc::new(Renamed { name: name.to_owned(), host: host.clone() }));
    }
    builder.build().map_err(|error| cause(&error))
}

/// Whether HTTP/2 may be used. Where the URL has another name than the host's, only HTTP/1.1 can say which host is meant.
fn has_http2(settings: &ClientSettings) -> bool {
    settings.http2 && settings.named_host.is_none()
}

/// What went wrong, without the URL: it may hold secrets.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| "the request failed".into(), |source| connection_words(source, &KEYS))
}
