//! Whether the other side is who it should be.
//!
//! rustls decides, and after it `chain`, which looks at what rustls does not. In one thing the reference (crypto/x509 of Go)
//! is followed against rustls: a certificate that stands among those that are trusted is trusted as it is, whoever signed
//! it. So a server's self-signed certificate may be its own `ca_file`, also if it says that it is an authority's (as
//! `openssl req -x509` makes them). Its name, its dates and its purposes are checked as those of any other; and only if it
//! is an authority's, others that it signed are trusted too.

use std::collections::HashSet;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

use super::chain::{self, Anchors, Refusal, Shown, Why};
use super::statement::Statement;

/// The certificates that are trusted.
#[derive(Debug)]
pub struct Roots {
    store: RootCertStore,
    /// What each of `store` says about itself, in the same order.
    statements: Vec<Statement>,
    /// The SHA-256 of each: who is trusted as it is.
    known: HashSet<[u8; 32]>,
}

impl Roots {
    /// None yet.
    pub fn none() -> Self {
        Self { store: RootCertStore::empty(), statements: Vec::new(), known: HashSet::new() }
    }

    /// One more; an error if it cannot be read.
    pub fn add(&mut self, certificate: &CertificateDer<'static>) -> Result<(), ()> {
        let statement = Statement::read(certificate).ok_or(())?;
        self.store.add(certificate.clone()).map_err(drop)?;
        self.statements.push(statement);
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
    /// rustls's own decision; `None` where nobody is trusted.
    inner: Option<Arc<WebPkiServerVerifier>>,
    anchors: Arc<RootCertStore>,
    statements: Vec<Statement>,
    known: HashSet<[u8; 32]>,
    name: Option<ServerName<'static>>,
    /// The signatures that can be checked.
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    /// Trusts these. `name` is what a certificate must have, instead of the host's.
    pub fn new(
        roots: Roots,
        name: Option<ServerName<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let anchors = Arc::new(roots.store);
        let inner = (!anchors.is_empty()).then(|| {
            let builder = WebPkiServerVerifier::builder_with_provider(anchors.clone(), provider.clone());
            builder.build().map_err(|_| "the certificates of the authorities cannot be used".to_owned())
        });
        Ok(Self {
            inner: inner.transpose()?,
            anchors,
            statements: roots.statements,
            known: roots.known,
            name,
            algorithms: provider.signature_verification_algorithms,
        })
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
        if self.known.contains(&fingerprint(end_entity)) {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let statement = Statement::read(end_entity).ok_or(CertificateError::BadEncoding)?;
            chain::alone(&statement, now).map_err(|why| of_server(why, now))?;
            verify_server_name(&certificate, host)?;
            return Ok(ServerCertVerified::assertion());
        }
        let anchors = Anchors { anchors: &self.anchors.roots, statements: &self.statements };
        let shown = Shown { server: end_entity, others: intermediates };
        match inner.verify_server_cert(end_entity, intermediates, host, ocsp_response, now) {
            Ok(verified) => match anchors.check(shown, &self.algorithms, now) {
                Ok(()) => Ok(verified),
                Err(Ok(refusal)) => Err(refused(refusal)),
                Err(Err(library)) => Err(CertificateError::Other(OtherError(Arc::new(library))).into()),
            },
            Err(error) => Err(instead(error, || anchors.wrong_key(shown))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
            .map_err(|error| instead(error, || chain::wrong_key_of_server(certificate)))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
            .map_err(|error| instead(error, || chain::wrong_key_of_server(certificate)))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn refused(refusal: Refusal) -> Error {
    CertificateError::Other(OtherError(Arc::new(refusal))).into()
}

/// What is wrong with the server's own certificate, as rustls says it, which tells the server too.
fn of_server(why: Why, time: UnixTime) -> Error {
    match why {
        Why::Expired(not_after) => CertificateError::ExpiredContext { time, not_after }.into(),
        Why::NotYetValid(not_before) => CertificateError::NotValidYetContext { time, not_before }.into(),
        Why::NotForServers => CertificateError::InvalidPurpose.into(),
        why => refused(Refusal { authority: None, why }),
    }
}

/// A signature that is wrong may be one by a key that cannot be used.
fn instead(error: Error, wrong_key: impl FnOnce() -> Option<Refusal>) -> Error {
    match error {
        Error::InvalidCertificate(CertificateError::BadSignature) => wrong_key().map_or(error, refused),
        error => error,
    }
}

/// Whether a server shows the certificate of an authority.
pub(super) fn is_authority(error: &OtherError) -> bool {
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
