//! Whether a chain of certificates may be trusted: what rustls leaves open.
//!
//! rustls builds the chain from the server's certificate to one that is trusted, and looks at signatures, at the dates and
//! purposes of what the server shows, and at constraints of names. For it a trusted certificate is a name and a key: what
//! else it says, it does not look at, and key usage nowhere. So every chain that it finds is looked at once more here, by
//! the rules of the reference (crypto/x509 of Go): all authorities must be allowed to sign, and those that are trusted be
//! valid now, for servers, at this depth, and without extensions that nobody understands. A chain that is refused leaves
//! the others: one good one is enough.

use std::cell::RefCell;
use std::fmt;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};

use super::statement::Statement;

/// Why a certificate of the chain is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its owner may not sign certificates.
    MayNotSign,
    /// It expired then.
    Expired(UnixTime),
    /// It is not valid before.
    NotYetValid(UnixTime),
    /// So many other authorities may be below its owner, and so many are.
    TooDeep(u8, usize),
    /// It is for other purposes.
    NotForServers,
    /// It has an extension that has to be understood, and is not.
    UnknownExtension(String),
    /// It cannot be read.
    Unreadable,
    /// Its RSA key has so many bits, which is too few or too many.
    KeySize(usize),
}

/// Which certificate of the chain is not accepted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The name of its owner; `None` for the server.
    pub authority: Option<String>,
    /// What is wrong with it.
    pub why: Why,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // People get the words of `words`.
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Refusal {}

/// The sizes of RSA keys that can be used, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Those who are trusted: what rustls knows of each, and what its certificate says.
#[derive(Clone, Copy, Debug)]
pub struct Anchors<'a> {
    /// For rustls.
    pub anchors: &'a [TrustAnchor<'static>],
    /// In the same order.
    pub statements: &'a [Statement],
}

/// What a server shows: its certificate, and those that should lead to one that is trusted.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its own.
    pub server: &'a CertificateDer<'a>,
    /// The others.
    pub others: &'a [CertificateDer<'a>],
}

impl Anchors<'_> {
    /// Whether one of the chains of `shown` may be trusted at `now`.
    ///
    /// # Errors
    /// What is wrong with the first chain; what the library says where it finds no chain at all.
    pub fn check(
        &self,
        shown: Shown<'_>,
        algorithms: &WebPkiSupportedAlgorithms,
        now: UnixTime,
    ) -> Result<(), Result<Refusal, webpki::Error>> {
        let first = RefCell::new(None);
        let judge = |path: &VerifiedPath<'_>| {
            self.judge(path, now).map_err(|refusal| {
                first.borrow_mut().get_or_insert(refusal);
                webpki::Error::UnknownIssuer
            })
        };
        let server = EndEntityCert::try_from(shown.server).map_err(Err)?;
        let usage = KeyUsage::server_auth();
        match server.verify_for_usage(algorithms.all, self.anchors, shown.others, now, usage, None, Some(&judge)) {
            Ok(_) => Ok(()),
            Err(error) => Err(first.take().ok_or(error)),
        }
    }

    fn judge(&self, path: &VerifiedPath<'_>, now: UnixTime) -> Result<(), Refusal> {
        let mut between = 0;
        for certificate in path.intermediate_certificates() {
            between += 1;
            let unreadable = || Refusal { authority: Some(String::new()), why: Why::Unreadable };
            let statement = Statement::read(&certificate.der()).ok_or_else(unreadable)?;
            if !statement.may_sign {
                return Err(Refusal { authority: Some(statement.owner), why: Why::MayNotSign });
            }
        }
        // Several certificates may have one name and one key, such as an expired one and the one that renews it.
        let same = self.anchors.iter().zip(self.statements).filter(|(anchor, _)| *anchor == path.anchor());
        let mut refusal = Refusal { authority: Some(String::new()), why: Why::Unreadable };
        for (place, (_, statement)) in same.enumerate() {
            match as_authority(statement, between, now) {
                Ok(()) => return Ok(()),
                Err(why) if place == 0 => refusal = Refusal { authority: Some(statement.owner.clone()), why },
                Err(_) => {}
            }
        }
        Err(refusal)
    }

    /// The key of a wrong size that is why a signature could not be checked, if it is one of an authority's.
    pub fn wrong_key(&self, shown: Shown<'_>) -> Option<Refusal> {
        let all: Vec<&CertificateDer<'_>> = std::iter::once(shown.server).chain(shown.others).collect();
        let read: Vec<EndEntityCert<'_>> = all.iter().filter_map(|der| EndEntityCert::try_from(*der).ok()).collect();
        let signs = |subject: &[u8]| read.iter().any(|certificate| certificate.issuer() == subject);
        let trusted = self.anchors.iter().zip(self.statements);
        let trusted = trusted.filter(|(anchor, _)| signs(&anchor.subject)).map(|(_, statement)| statement.clone());
        let others = read.iter().skip(1).filter(|certificate| signs(certificate.subject()));
        let others = others.filter_map(|certificate| Statement::read(&certificate.der()));
        trusted.chain(others).find_map(|it| wrong_size(&it).map(|why| Refusal { authority: Some(it.owner), why }))
    }
}

/// Whether the key of a server has a size that cannot be used.
pub fn wrong_key_of_server(certificate: &CertificateDer<'_>) -> Option<Refusal> {
    let why = wrong_size(&Statement::read(certificate)?)?;
    Some(Refusal { authority: None, why })
}

fn wrong_size(statement: &Statement) -> Option<Why> {
    statement.rsa_bits.filter(|bits| !RSA_BITS.contains(bits)).map(Why::KeySize)
}

/// Whether a trusted certificate may be at the end of a chain, with so many authorities between it and the server.
fn as_authority(statement: &Statement, between: usize, now: UnixTime) -> Result<(), Why> {
    if !statement.may_sign {
        return Err(Why::MayNotSign);
    }
    alone(statement, now)?;
    match statement.depth {
        Some(depth) if between > usize::from(depth) => Err(Why::TooDeep(depth, between)),
        _ => Ok(()),
    }
}

/// Whether a certificate is right by itself: when it is valid, what it is for, and nothing in it that nobody understands.
/// All that is asked of a server's certificate that is trusted as it is, but for its name.
pub fn alone(statement: &Statement, now: UnixTime) -> Result<(), Why> {
    if let Some(extension) = &statement.unknown_extension {
        return Err(Why::UnknownExtension(extension.clone()));
    }
    if now < statement.begin {
        return Err(Why::NotYetValid(statement.begin));
    }
    if now > statement.end {
        return Err(Why::Expired(statement.end));
    }
    if statement.for_servers { Ok(()) } else { Err(Why::NotForServers) }
}
