//! Whether the other side is who it should be.
//!
//! rustls decides, but for one thing, in which the reference (crypto/x509 of Go) is followed: a certificate that stands among
//! those that are trusted is trusted as it is, whatever it is for and whoever signed it. So a server's self-signed
//! certificate may be its own `ca_file`, also if it says that it is an authority's (as `openssl req -x509` makes them). Its
//! name and its dates are checked as those of any other.

use std::collections::HashSet;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// The certificates that are trusted.
#[derive(Debug)]
pub struct Roots {
    store: RootCertStore,
    /// The SHA-256 of each: who is trusted as it is.
    known: HashSet<[u8; 32]>,
}

impl Roots {
    /// None yet.
    pub fn none() -> Self {
        Self { store: RootCertStore::empty(), known: HashSet::new() }
    }

    /// One more; an error if it cannot be read.
    pub fn add(&mut self, certificate: &CertificateDer<'static>) -> Result<(), ()> {
        self.store.add(certificate.clone()).map_err(drop)?;
        self.known.insert(fingerprint(certificate));
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, certificate);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// Checks certificates.
#[derive(Debug)]
pub struct Trust {
    /// `None` where nobody is trusted.
    inner: Option<Arc<WebPkiServerVerifier>>,
    known: HashSet<[u8; 32]>,
    name: Option<ServerName<'static>>,
    /// Checks signatures of the handshake where nobody is trusted.
    provider: Arc<CryptoProvider>,
}

impl Trust {
    /// Trusts these. `name` is what a certificate must have, instead of the host's.
    pub fn new(
        roots: Roots,
        name: Option<ServerName<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let inner = (!roots.is_empty()).then(|| {
            let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots.store), provider.clone());
            builder.build().map_err(|_| "the certificates of the authorities cannot be used".to_owned())
        });
        Ok(Self { inner: inner.transpose()?, known: roots.known, name, provider: provider.clone() })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let host = self.name.as_ref().unwrap_or(host);
        let Some(inner) = &self.inner else { return Err(CertificateError::UnknownIssuer.into()) };
        let verdict = inner.verify_server_cert(end_entity, intermediates, host, ocsp_response, now);
        match verdict {
            Err(Error::InvalidCertificate(error))
                if self.known.contains(&fingerprint(end_entity)) && is_about_the_chain(&error) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, host)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether it says who may have signed what, and not something about the certificate alone. The dates come first in rustls:
/// who fails here has passed them.
fn is_about_the_chain(error: &CertificateError) -> bool {
    match error {
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => true,
        CertificateError::Other(other) => is_authority(other),
        _ => false,
    }
}

/// Whether a server shows the certificate of an authority.
pub(super) fn is_authority(error: &rustls::OtherError) -> bool {
    matches!(error.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Takes every certificate, as `insecure_skip_verify` wants it.
#[derive(Debug)]
pub struct Anything {
    schemes: Vec<SignatureScheme>,
}

impl Anything {
    /// One that knows the signatures of `provider`.
    pub fn new(provider: &CryptoProvider) -> Self {
        Self { schemes: provider.signature_verification_algorithms.supported_schemes() }
    }
}

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _host: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
