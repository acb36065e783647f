//! `tls` of an exporter.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;

use crate::collector::config::section::Section;
use crate::collector::log::{Level, Log};
use crate::collector::net::tls::{Keys, Material, Version};
use crate::diag::Problem;

/// How the settings are named in what is said about a connection.
pub(in crate::collector::exporters) const TLS_KEYS: Keys = Keys {
    authority: "tls.ca_file",
    identity: "`tls.cert_file` and `tls.key_file`",
    server_name: "tls.server_name_override",
};

/// How the endpoint's certificate is checked, and our own.
#[derive(Clone, Debug, Default)]
pub(in crate::collector::exporters) struct Tls {
    pub authority: Option<Pem>,
    pub certificate: Option<Pem>,
    pub key: Option<Pem>,
    pub server_name: Option<String>,
    pub skip_verify: bool,
    pub with_system_pool: bool,
    pub oldest: Option<Version>,
    pub newest: Option<Version>,
    /// No TLS at all; for gRPC alone: over HTTP the scheme of the endpoint decides.
    pub insecure: bool,
}

/// Certificates or a key.
#[derive(Clone)]
pub(in crate::collector::exporters) enum Pem {
    /// In a file, which this key names.
    File(&'static str, PathBuf),
    /// As they are.
    Text(String),
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(_, path) => write!(f, "<PEM in {}>", path.display()),
            Self::Text(_) => f.write_str("<PEM>"),
        }
    }
}

impl Pem {
    fn read(&self) -> Result<Vec<u8>, Problem> {
        match self {
            Self::File(key, path) => read_file(key, path),
            Self::Text(text) => Ok(text.clone().into_bytes()),
        }
    }

    fn place(&self) -> String {
        match self {
            Self::File(key, path) => format!("`{key}` {}", path.display()),
            Self::Text(_) => "the text in `tls`".into(),
        }
    }
}

impl Tls {
    /// Reads `tls` of a section.
    pub fn read(section: &mut Section<'_>) -> Self {
        section.section("tls", read).unwrap_or_default()
    }

    /// The client's side; `protocols` are offered in this order. A problem names the key and the file, and so does a line of
    /// `log` about what is left out.
    pub fn configure(&self, protocols: &[&str], log: &Log) -> Result<ClientConfig, Problem> {
        let read = |pem: &Option<Pem>| pem.as_ref().map(Pem::read).transpose();
        let (authority, certificate, key) = (read(&self.authority)?, read(&self.certificate)?, read(&self.key)?);
        let material = Material {
            authorities: authority.as_deref(),
            with_system: self.with_system_pool,
            identity: certificate.as_deref().zip(key.as_deref()),
            server_name: self.server_name.as_deref(),
            skip_verify: self.skip_verify,
            oldest: self.oldest,
            newest: self.newest,
        };
        if let (Some(warning), Some(authority)) = (material.warning(), &self.authority) {
            log.warn(&format!("{}: {warning}", authority.place()));
        }
        material.configure(protocols).map_err(|why| {
            let places = [&self.authority, &self.certificate, &self.key];
            let places: Vec<String> = places.into_iter().flatten().map(Pem::place).collect();
            let problem = Problem::new(format!("TLS cannot be set up: {why}"));
            if places.is_empty() { problem } else { problem.hint(format!("look at {}", places.join(", "))) }
        })
    }
}

/// The content of one of the files; a problem names the key and the file.
fn read_file(key: &str, path: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(path).map_err(|error| Problem::new(format!("cannot read `{key}` {}: {error}", path.display())))
}

fn read(section: &mut Section<'_>) -> Tls {
    section.unsupported(&[
        "cipher_suites",
        "reload_interval",
        "curve_preferences",
        "tpm",
        "include_insecure_cipher_suites",
    ]);
    let tls = Tls {
        authority: pem(section, "ca_file", "ca_pem", "tls.ca_file"),
        certificate: pem(section, "cert_file", "cert_pem", "tls.cert_file"),
        key: pem(section, "key_file", "key_pem", "tls.key_file"),
        server_name: section.text("server_name_override").filter(|name| !name.is_empty()),
        skip_verify: section.boolean("insecure_skip_verify").unwrap_or(false),
        with_system_pool: section.boolean("include_system_ca_certs_pool").unwrap_or(false),
        oldest: version(section, "min_version"),
        newest: version(section, "max_version"),
        insecure: section.boolean("insecure").unwrap_or(false),
    };
    if tls.certificate.is_some() != tls.key.is_some() {
        section.problem_here(Problem::new("`cert_file` and `key_file` must be given together"));
    }
    Version::check(section, tls.oldest, tls.newest);
    let given = [&tls.authority, &tls.certificate, &tls.key];
    // Files are read at the start: they may change until then.
    if given.iter().any(|pem| matches!(pem, Some(Pem::Text(_))))
        && !given.iter().any(|pem| matches!(pem, Some(Pem::File(..))))
        && let Err(problem) = tls.configure(&[], &Log::new(Arc::new(|_| ()), Level::Error))
    {
        section.problem_here(problem);
    }
    tls
}

/// A file or a text, at one of two keys.
fn pem(section: &mut Section<'_>, file: &'static str, text: &'static str, name: &'static str) -> Option<Pem> {
    let path = section.text(file).filter(|path| !path.is_empty());
    let inline = section.text(text).filter(|text| !text.is_empty());
    if path.is_some() && inline.is_some() {
        section.problem(text, Problem::new(format!("only one of `{file}` and `{text}` may be there")));
    }
    if text == "key_pem" {
        section.secret(inline.as_deref().unwrap_or_default());
    }
    path.map(|path| Pem::File(name, path.into())).or(inline.map(Pem::Text))
}

fn version(section: &mut Section<'_>, key: &'static str) -> Option<Version> {
    let text = section.text(key).filter(|text| !text.is_empty())?;
    let found = Version::named(&text, ["1.0", "1.1", "1.2", "1.3"]);
    if found.is_none() {
        let problem = Problem::new(format!("`{text}` is no value of `{key}`"));
        section.problem(key, problem.hint("write \"1.2\" or \"1.3\""));
    }
    found
}
