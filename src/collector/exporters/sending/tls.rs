//! `tls` of an exporter.

use std::path::{Path, PathBuf};

use crate::collector::section::Section;
use crate::diag::Problem;

/// How the endpoint's certificate is checked, and our own.
#[derive(Clone, Debug, Default)]
pub(in crate::collector::exporters) struct Tls {
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub server_name: Option<String>,
    pub skip_verify: bool,
    pub with_system_pool: bool,
    /// No TLS at all; for gRPC alone: over HTTP the scheme of the endpoint decides.
    pub insecure: bool,
}

impl Tls {
    /// Reads `tls` of a section.
    pub fn read(section: &mut Section<'_>) -> Self {
        section.section("tls", read).unwrap_or_default()
    }
}

/// The content of one of the files; a problem names the key and the file.
pub(in crate::collector::exporters) fn read_file(key: &str, path: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(path).map_err(|error| Problem::new(format!("cannot read `tls.{key}` {}: {error}", path.display())))
}

fn read(section: &mut Section<'_>) -> Tls {
    section.unsupported(&[
        "ca_pem",
        "cert_pem",
        "key_pem",
        "min_version",
        "max_version",
        "cipher_suites",
        "reload_interval",
        "curve_preferences",
        "tpm",
        "include_insecure_cipher_suites",
    ]);
    let tls = Tls {
        ca_file: section.text("ca_file").map(PathBuf::from),
        cert_file: section.text("cert_file").map(PathBuf::from),
        key_file: section.text("key_file").map(PathBuf::from),
        server_name: section.text("server_name_override").filter(|name| !name.is_empty()),
        skip_verify: section.boolean("insecure_skip_verify").unwrap_or(false),
        with_system_pool: section.boolean("include_system_ca_certs_pool").unwrap_or(false),
        insecure: section.boolean("insecure").unwrap_or(false),
    };
    if tls.cert_file.is_some() != tls.key_file.is_some() {
        section.problem_here(Problem::new("`cert_file` and `key_file` must be given together"));
    }
    tls
}
