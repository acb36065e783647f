//! The configuration of a client.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use super::trust::{Anything, Roots, Trust};
use crate::collector::section::Section;
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

    /// Says at `max_version` of a section what is wrong with the two versions that it has.
    pub fn check(section: &mut Section<'_>, oldest: Option<Self>, newest: Option<Self>) {
        if oldest.zip(newest).is_some_and(|(oldest, newest)| oldest > newest) {
            section.problem("max_version", Problem::new("`max_version` is older than `min_version`"));
        }
        if newest.is_some_and(|newest| newest < Self::V12) {
            section.problem("max_version", Problem::new("this collector does not support TLS below 1.2"));
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
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(config)
    }

    fn roots(&self) -> Result<Roots, String> {
        let mut roots = Roots::none();
        if let Some(pem) = self.authorities {
            for (place, certificate) in certificates(pem).enumerate() {
                let wrong = || format!("certificate {} of the authorities cannot be read", place + 1);
                roots.add(&certificate.map_err(|_| wrong())?).map_err(|()| wrong())?;
            }
            if roots.is_empty() {
                return Err("among the authorities is no certificate".into());
            }
        }
        if self.authorities.is_none() || self.with_system {
            // What cannot be read there is nobody's mistake here; who is not trusted is said at the first connection.
            for certificate in &rustls_native_certs::load_native_certs().certs {
                let _ = roots.add(certificate);
            }
        }
        Ok(roots)
    }
}

/// Whether the server is told this name when a connection begins: addresses are not.
#[must_use]
pub fn is_name(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_err()
}

fn certificates(pem: &[u8]) -> impl Iterator<Item = Result<CertificateDer<'static>, rustls::pki_types::pem::Error>> {
    CertificateDer::pem_slice_iter(pem)
}

fn own_chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = certificates(pem).collect();
    let chain = chain.map_err(|_| "the own certificate cannot be read".to_owned())?;
    if chain.is_empty() {
        Err("where the own certificate should be is none (`BEGIN CERTIFICATE`)".into())
    } else {
        Ok(chain)
    }
}

fn own_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
        if pem.windows(9).any(|window| window == b"ENCRYPTED") {
            "the own key has a passphrase, which is not supported".into()
        } else {
            "where the own key should be is none (`BEGIN PRIVATE KEY`)".into()
        }
    })
}
