//! What a certificate says about itself, as far as it matters for trust and rustls does not tell it.

use std::time::Duration;

use rustls::pki_types::UnixTime;
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::asn1::{ObjectIdentifier, UintRef};
use x509_cert::der::{Decode as _, Reader as _, SliceReader};
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

/// What a certificate says about itself.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The common name of its owner, or all of the owner's name where there is none. For people.
    pub owner: String,
    /// The first second in which it is valid.
    pub begin: UnixTime,
    /// The last second in which it is valid.
    pub end: UnixTime,
    /// Whether its owner may sign certificates, if it is trusted.
    pub may_sign: bool,
    /// How many other authorities may be between its owner and a server; `None` is any number.
    pub depth: Option<u8>,
    /// Whether what it says about purposes (extended key usage) leaves room for servers.
    pub for_servers: bool,
    /// An extension that has to be understood, and is not, as an object identifier.
    pub unknown_extension: Option<String>,
    /// The size of its RSA key; `None` for keys of other kinds.
    pub rsa_bits: Option<usize>,
}

/// `serverAuth` and `anyExtendedKeyUsage`.
const FOR_SERVERS: [ObjectIdentifier; 2] =
    [ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1"), ObjectIdentifier::new_unwrap("2.5.29.37.0")];
/// RSA, for every kind of signature and for PSS alone.
const RSA: [ObjectIdentifier; 2] =
    [ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1"), ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10")];
/// The extensions that the reference understands: identifiers of keys, key usage, names, basic constraints, constraints of
/// names, where lists of revoked certificates are, four about policies, extended key usage, and where to find the issuer.
const UNDERSTOOD: [ObjectIdentifier; 13] = [
    ObjectIdentifier::new_unwrap("2.5.29.14"),
    ObjectIdentifier::new_unwrap("2.5.29.15"),
    ObjectIdentifier::new_unwrap("2.5.29.17"),
    ObjectIdentifier::new_unwrap("2.5.29.19"),
    ObjectIdentifier::new_unwrap("2.5.29.30"),
    ObjectIdentifier::new_unwrap("2.5.29.31"),
    ObjectIdentifier::new_unwrap("2.5.29.32"),
    ObjectIdentifier::new_unwrap("2.5.29.33"),
    ObjectIdentifier::new_unwrap("2.5.29.35"),
    ObjectIdentifier::new_unwrap("2.5.29.36"),
    ObjectIdentifier::new_unwrap("2.5.29.37"),
    ObjectIdentifier::new_unwrap("2.5.29.54"),
    ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.1"),
];

impl Statement {
    /// Reads a certificate (DER); `None` if it cannot be read.
    pub fn read(certificate: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let body = certificate.tbs_certificate();
        let constraints = body.get_extension::<BasicConstraints>().ok()?.map(|(_, constraints)| constraints);
        let usage = body.get_extension::<KeyUsage>().ok()?.map(|(_, usage)| usage);
        let purposes = body.get_extension::<ExtendedKeyUsage>().ok()?.map(|(_, purposes)| purposes);
        // Certificates of the first versions cannot say whether they are an authority's.
        let is_authority = constraints.as_ref().map_or(body.version() != Version::V3, |constraints| constraints.ca);
        let unknown =
            body.extensions().into_iter().flatten().find(|it| it.critical && !UNDERSTOOD.contains(&it.extn_id));
        let time = |since: Duration| UnixTime::since_unix_epoch(since);
        Some(Self {
            owner: owner(&certificate),
            begin: time(body.validity().not_before.to_unix_duration()),
            end: time(body.validity().not_after.to_unix_duration()),
            // A usage without anything in it says nothing.
            may_sign: is_authority && usage.is_none_or(|usage| usage.0.is_empty() || usage.key_cert_sign()),
            depth: constraints.and_then(|constraints| constraints.path_len_constraint),
            for_servers: purposes.is_none_or(|purposes| purposes.0.iter().any(|purpose| FOR_SERVERS.contains(purpose))),
            unknown_extension: unknown.map(|extension| extension.extn_id.to_string()),
            rsa_bits: rsa_bits(body.subject_public_key_info()),
        })
    }
}

fn owner(certificate: &Certificate) -> String {
    let subject = certificate.tbs_certificate().subject();
    let common = subject.common_name().ok().flatten().map(|name| name.value().into_owned());
    let name = common.unwrap_or_else(|| subject.to_string());
    // Whoever made the certificate chose it.
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).take(100).collect()
}

fn rsa_bits(key: &SubjectPublicKeyInfoOwned) -> Option<usize> {
    if !RSA.contains(&key.algorithm.oid) {
        return None;
    }
    let mut reader = SliceReader::new(key.subject_public_key.as_bytes()?).ok()?;
    let modulus = reader.sequence(|reader| {
        let modulus = UintRef::decode(reader)?;
        UintRef::decode(reader).map(|_| modulus)
    });
    let bytes = modulus.ok()?.as_bytes();
    let first = bytes.first()?;
    Some(bytes.len() * 8 - usize::try_from(first.leading_zeros()).ok()?)
}
