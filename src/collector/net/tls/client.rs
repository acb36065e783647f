//! The configuration of a client.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::ServerName;

use super::pem::{certificates, own_chain, own_key};
use super::trust::{Anything, Roots, Trust};
use crate::collector::config::section::Section;
use crate::collector::net::host::bare;
use crate::diag::Problem;

/// A version of TLS, as configurations name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.0, which this collector does not have.
    V10,
    /// TLS 1.1, which this collector does not have.
    V11,
    /// TLS 1.2.
    V12,
    /// TLS 1.3.
    V13,
}

impl Version {
    /// The one that a configuration means by `name`; `names` are its names, the oldest first.
    #[must_use]
    pub fn named(name: &str, names: [&str; 4]) -> Option<Self> {
        let all = [Self::V10, Self::V11, Self::V12, Self::V13];
        names.into_iter().zip(all).find_map(|(known, version)| (known == name).then_some(version))
    }

    /// Says at `max_version` and `min_version` of a section what is wrong with the two that it has.
    pub fn check(section: &mut Section<'_>, oldest: Option<Self>, newest: Option<Self>) {
        if oldest.zip(newest).is_some_and(|(oldest, newest)| oldest > newest) {
            section.problem("max_version", Problem::new("`max_version` is older than `min_version`"));
        }
        if newest.is_some_and(|newest| newest < Self::V12) {
            section.problem("max_version", Problem::new("this collector does not support TLS below 1.2"));
        } else if oldest.is_some_and(|oldest| oldest < Self::V12) {
            let problem = Problem::warning("this collector does not support TLS below 1.2: that is the oldest version");
            section.problem("min_version", problem);
        }
    }
}

/// What a client's TLS is made of; certificates and keys are PEM.
#[derive(Debug, Default)]
pub struct Material<'a> {
    /// Whom to trust, instead of the system's authorities.
    pub authorities: Option<&'a [u8]>,
    /// The system's authorities too.
    pub with_system: bool,
    /// Our own certificate with those between it and its authority, and its key.
    pub identity: Option<(&'a [u8], &'a [u8])>,
    /// The name or address that the other side's certificate must have, instead of the host's.
    pub server_name: Option<&'a str>,
    /// The other side's certificate is not looked at.
    pub skip_verify: bool,
    /// The oldest version.
    pub oldest: Option<Version>,
    /// The newest version.
    pub newest: Option<Version>,
}

impl Material<'_> {
    /// The configuration; `protocols` are offered in this order.
    ///
    /// # Errors
    /// What is wrong, in words that follow the name of the setting.
    pub fn configure(&self, protocols: &[&str]) -> Result<ClientConfig, String> {
        let provider = Arc::new(default_provider());
        let allowed = |version| self.oldest <= Some(version) && self.newest.is_none_or(|newest| version <= newest);
        let versions = [(Version::V13, &rustls::version::TLS13), (Version::V12, &rustls::version::TLS12)];
        let versions: Vec<_> =
            versions.into_iter().filter(|(version, _)| allowed(*version)).map(|(_, version)| version).collect();
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|_| "this collector has none of the versions of TLS that are allowed".to_owned())?
            .dangerous();
        let name = self
            .server_name
            .map(|name| ServerName::try_from(name.to_owned()).map_err(|_| format!("`{name}` is no name of a host")));
        let name = name.transpose()?;
        let builder = if self.skip_verify {
            builder.with_custom_certificate_verifier(Arc::new(Anything::new(&provider)))
        } else {
            builder.with_custom_certificate_verifier(Arc::new(Trust::new(self.roots()?, name, &provider)?))
        };
        let mut config = match self.identity {
            Some((certificate, key)) => {
                let (chain, key) = (own_chain(certificate)?, own_key(key)?);
                builder.with_client_auth_cert(chain, key).map_err(|error| match error {
                    rustls::Error::InconsistentKeys(_) => "the own certificate and its key do not match".to_owned(),
                    _ => "the own certificate or its key is of a kind that this collector cannot use".to_owned(),
                })?
            }
            None => builder.with_no_client_auth(),
        };
        // An address that the certificate must have is no name to ask for, and the host's would be another one.
        config.enable_sni = self.server_name.is_none_or(is_name);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(config)
    }

    /// What is said about authorities that cannot be read and are left out, while others can; it follows the name of the
    /// setting.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let (_, unreadable) = listed(self.authorities?).ok()?;
        let numbers: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
        match numbers.as_slice() {
            [] => None,
            [number] => Some(format!("certificate {number} cannot be read and is left out")),
            numbers => Some(format!("certificates {} cannot be read and are left out", numbers.join(", "))),
        }
    }

    fn roots(&self) -> Result<Roots, String> {
        let mut roots =
            self.authorities.map_or_else(|| Ok(Roots::none()), |pem| listed(pem).map(|(roots, _)| roots))?;
        if self.authorities.is_none() || self.with_system {
            // What cannot be read there is nobody's mistake here; who is not trusted is said at the first connection.
            for certificate in &rustls_native_certs::load_native_certs().certs {
                let _ = roots.add(certificate);
            }
        }
        Ok(roots)
    }
}

/// The authorities of a bundle, and the numbers of its certificates that cannot be read, from 1.
fn listed(pem: &[u8]) -> Result<(Roots, Vec<usize>), String> {
    let mut roots = Roots::none();
    let mut unreadable = Vec::new();
    let certificates = certificates(pem);
    for (place, certificate) in certificates.iter().enumerate() {
        if certificate.as_ref().is_none_or(|certificate| roots.add(certificate).is_err()) {
            unreadable.push(place + 1);
        }
    }
    match certificates.len() {
        0 => Err("among the authorities is no certificate".into()),
        1 if roots.is_empty() => Err("the certificate of the authority cannot be read".into()),
        count if roots.is_empty() => Err(format!("none of the {count} certificates of the authorities can be read")),
        _ => Ok((roots, unreadable)),
    }
}

/// Whether the server is told this name when a connection begins: addresses are not.
#[must_use]
pub fn is_name(host: &str) -> bool {
    bare(host).parse::<IpAddr>().is_err()
}
