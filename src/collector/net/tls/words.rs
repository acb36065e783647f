//! What went wrong on a connection, for people.
//!
//! Errors of the libraries are chains: reqwest or tonic, hyper, an `io::Error`, rustls. What the innermost known one means is
//! said here in words of ours; an error of the system keeps the system's.

use std::error::Error;
use std::io;

use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError};

use super::chain::{Refusal, Why};
use super::trust::is_authority;
use crate::diag::counted;

/// How the settings of TLS are named where the connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Whom to trust.
    pub authority: &'static str,
    /// Our own certificate and its key.
    pub identity: &'static str,
    /// The name that the certificate must have; empty if there is no such setting.
    pub server_name: &'static str,
}

/// What a failed connection or a broken answer means.
#[must_use]
pub fn connection_words(error: &(dyn Error + 'static), keys: &Keys) -> String {
    let chain = chain(error);
    if let Some(tls) = chain.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
        return tls_words(tls, keys);
    }
    let broke_off = "the connection was closed before the whole answer was there";
    for cause in chain.iter().rev() {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            match error.kind() {
                // Libraries put words of their own into this one.
                io::ErrorKind::UnexpectedEof => return broke_off.into(),
                io::ErrorKind::TimedOut if error.raw_os_error().is_none() => return "timed out".into(),
                _ => {}
            }
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            if error.is_incomplete_message() {
                return broke_off.into();
            }
            if error.is_parse() {
                return "what it answers is no HTTP: look at the port, and whether it is `http://` or `https://`"
                    .into();
            }
        }
    }
    let innermost = chain.last().map_or_else(String::new, ToString::to_string);
    match innermost.split("https://docs.rs").next().unwrap_or_default().trim_end_matches([' ', ':']) {
        "" => "the request failed".into(),
        words => words.to_owned(),
    }
}

/// The error and its causes. An `io::Error` hides the one that it was made of from `source`.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut chain = vec![error];
    let mut next = Some(error);
    while let Some(error) = next.filter(|_| chain.len() < 32) {
        let hidden = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = hidden.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
        chain.extend(next);
    }
    chain
}

fn tls_words(error: &rustls::Error, keys: &Keys) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => certificate_words(error, keys),
        rustls::Error::AlertReceived(alert) => alert_words(*alert, keys),
        rustls::Error::InvalidMessage(_) | rustls::Error::InappropriateMessage { .. } => {
            "it does not speak TLS: look at the port, and whether it is `http://` or `https://`".into()
        }
        rustls::Error::PeerIncompatible(_) => {
            "TLS: no version or cipher that both sides have; this collector has TLS 1.2 and 1.3".into()
        }
        rustls::Error::NoApplicationProtocol => "TLS: it speaks another protocol on this port".into(),
        rustls::Error::NoCertificatesPresented => "TLS: it shows no certificate".into(),
        other => format!("TLS: it breaks the protocol ({})", in_words(&kind(other))),
    }
}

fn certificate_words(error: &CertificateError, keys: &Keys) -> String {
    let Keys { authority, server_name, .. } = keys;
    let why = match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            return format!("its certificate expired on {}: it needs a new one", date(*not_after));
        }
        CertificateError::Expired => return "its certificate has expired: it needs a new one".into(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            return format!("its certificate is not valid before {}: look at the clocks", date(*not_before));
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            return name_words(expected, presented, server_name);
        }
        CertificateError::UnknownIssuer => {
            return format!(
                "its certificate is signed by nobody who is trusted: put its authority's, or itself, into `{authority}`"
            );
        }
        CertificateError::Other(other) if let Some(refusal) = other.0.downcast_ref::<Refusal>() => {
            return refusal_words(refusal, keys);
        }
        CertificateError::Other(other) if is_authority(other) => {
            return format!("its certificate is an authority's, and it is not in `{authority}` itself: put it there");
        }
        CertificateError::Revoked => "it was revoked",
        CertificateError::BadEncoding => "it cannot be read",
        CertificateError::BadSignature => "its signature is wrong",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not for servers (extended key usage)"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "it is signed in a way, or by a key of a kind or size, that this collector does not take"
        }
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::NameConstraintViolation) => {
                "its authority may not sign for such names (nameConstraints)"
            }
            Some(webpki::Error::EndEntityUsedAsCa) => "what signed it is no authority's certificate (basicConstraints)",
            _ => return format!("its certificate cannot be used: {}", in_words(&kind(&other.0))),
        },
        other => return format!("its certificate cannot be used: {}", in_words(&kind(other))),
    };
    format!("its certificate cannot be used: {why}")
}

/// What is wrong with a certificate of the chain.
fn refusal_words(refusal: &Refusal, keys: &Keys) -> String {
    let whose = match &refusal.authority {
        None => "its certificate".to_owned(),
        Some(name) if name.is_empty() => "a certificate of its authorities".into(),
        Some(name) => format!("the certificate of its authority `{name}`"),
    };
    let replace = match refusal.authority {
        None => "it needs a new one".to_owned(),
        Some(_) => format!("it needs a new one, here in `{}` or at the server", keys.authority),
    };
    match &refusal.why {
        Why::MayNotSign => format!(
            "{whose} does not allow to sign others (basicConstraints, keyUsage): put one that does, or the server's own, \
             into `{}`",
            keys.authority
        ),
        Why::Expired(end) => format!("{whose} expired on {}: {replace}", date(*end)),
        Why::NotYetValid(begin) => format!("{whose} is not valid before {}: look at the clocks", date(*begin)),
        Why::TooDeep(depth, found) => format!(
            "{whose} allows {} between itself and the server, not {found} (pathLenConstraint): the server needs a \
             certificate of another one",
            counted(*depth, "authority", "authorities")
        ),
        Why::NotForServers => format!("{whose} is not for servers (extended key usage): {replace}"),
        Why::UnknownExtension(extension) => {
            format!("{whose} has a critical extension that is not known here ({extension}): {replace}")
        }
        Why::Unreadable => format!("{whose} cannot be read: {replace}"),
        Why::KeySize(bits) => {
            format!("{whose} has an RSA key of {bits} bits, and this collector takes 2048 to 8192: it needs a new one")
        }
    }
}

fn name_words(expected: &ServerName<'_>, presented: &[String], server_name: &str) -> String {
    let is_address = matches!(expected, ServerName::IpAddress(_));
    let expected = expected.to_str();
    // As rustls writes them: `DnsName("a.test")`, `IpAddress(127.0.0.1)`, and others that no host has.
    let plain = |name: &String, kind: &str| {
        let inner = name.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.trim_matches('"').to_owned())
    };
    let hosts: Vec<String> = presented.iter().filter_map(|name| plain(name, "DnsName")).collect();
    if is_address && hosts.iter().any(|host| *host == expected) {
        return format!(
            "its certificate has `{expected}` as the name of a host (DNS in subjectAltName), not as an address (IP): it \
             needs a new one"
        );
    }
    let is_broad = hosts.iter().any(|host| host.strip_prefix("*.").is_some_and(|zone| !zone.contains('.')));
    let addresses = presented.iter().filter_map(|name| plain(name, "IpAddress"));
    let names: Vec<String> = hosts.into_iter().chain(addresses).take(8).map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        let none = if presented.is_empty() { "no names" } else { "no names of hosts" };
        return format!(
            "its certificate has {none} (subjectAltName), so it is not for `{expected}`: it needs a new one"
        );
    }
    let how = if server_name.is_empty() { String::new() } else { format!(", or set `{server_name}`") };
    let broad = if is_broad { " (a `*` in front of a single word stands for no host here)" } else { "" };
    format!("its certificate is for {}{broad}, not for `{expected}`: reach it by such a name{how}", names.join(", "))
}

fn alert_words(alert: AlertDescription, keys: &Keys) -> String {
    let name = in_words(&kind(&alert));
    let hint = match alert {
        AlertDescription::CertificateRequired
        | AlertDescription::BadCertificate
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::UnsupportedCertificate => {
            format!(": it does not accept our certificate, or the lack of one: look at {}", keys.identity)
        }
        AlertDescription::HandshakeFailure => {
            format!(
                ": no cipher that both sides have (none with CBC here), or it wants a certificate ({})",
                keys.identity
            )
        }
        AlertDescription::ProtocolVersion => ": this collector has TLS 1.2 and 1.3".into(),
        AlertDescription::UnrecognisedName => ": it does not know the name of the host".into(),
        _ => String::new(),
    };
    format!("TLS: it ended the connection ({name}){hint}")
}

/// The name of a variant, without what is in it.
fn kind(error: &dyn std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let inner = text.rsplit_once('(').map_or(text.as_str(), |(_, inner)| inner);
    inner.chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// `CertificateRequired` as words.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    let mut former_is_upper = true;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !former_is_upper {
            words.push(' ');
        }
        former_is_upper = letter.is_ascii_uppercase();
        words.push(letter.to_ascii_lowercase());
    }
    if words.is_empty() { "no reason given".into() } else { words }
}

/// A day and time in UTC.
fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "an unknown day".into(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys = Keys { authority: "ca", identity: "`cert` and `key`", server_name: "name" };

    fn words(error: impl Error + Send + Sync + 'static) -> String {
        // As it comes: within errors that hide it.
        connection_words(&io::Error::other(io::Error::other(error)), &KEYS)
    }

    #[test]
    fn no_word_is_the_library_s() {
        let name = |name: &str| ServerName::try_from(name.to_owned()).expect("a name");
        let not_for = |presented: &[&str]| CertificateError::NotValidForNameContext {
            expected: name("127.0.0.1"),
            presented: presented.iter().map(|name| (*name).to_owned()).collect(),
        };
        let day = UnixTime::since_unix_epoch(std::time::Duration::from_hours(24));
        let authority = rustls::OtherError(std::sync::Arc::new(webpki::Error::CaUsedAsEndEntity));
        let extension = rustls::OtherError(std::sync::Arc::new(webpki::Error::UnsupportedCriticalExtension));
        let certificate = |error| rustls::Error::InvalidCertificate(error);
        let alert = rustls::Error::AlertReceived;
        for (error, wanted) in [
            (
                certificate(CertificateError::ExpiredContext { time: day, not_after: day }),
                "expired on 1970-01-02T00:00:00Z",
            ),
            (
                certificate(CertificateError::NotValidYetContext { time: day, not_before: day }),
                "not valid before 1970-01-02",
            ),
            (
                certificate(not_for(&["DnsName(\"a.test\")", "IpAddress(10.0.0.1)"])),
                "is for `a.test`, `10.0.0.1`, not for `127.0.0.1`",
            ),
            (certificate(not_for(&[])), "no names (subjectAltName)"),
            (
                certificate(not_for(&[
                    "Unsupported(0x01)",
                    "DirectoryName",
                    "UniformResourceIdentifier(\"http://x\")",
                ])),
                "no names of hosts (subjectAltName), so it is not for `127.0.0.1`",
            ),
            (
                certificate(not_for(&["Unsupported(0x01)", "DnsName(\"a.test\")"])),
                "is for `a.test`, not for `127.0.0.1`",
            ),
            (
                certificate(not_for(&["DnsName(\"127.0.0.1\")"])),
                "has `127.0.0.1` as the name of a host (DNS in subjectAltName), not as an address (IP)",
            ),
            (certificate(CertificateError::UnknownIssuer), "into `ca`"),
            (certificate(CertificateError::Other(authority)), "an authority's"),
            (certificate(CertificateError::Other(extension)), "unsupported critical extension"),
            (certificate(CertificateError::InvalidPurpose), "not for servers"),
            (certificate(CertificateError::ApplicationVerificationFailure), "application verification failure"),
            (
                alert(AlertDescription::CertificateRequired),
                "(certificate required): it does not accept our certificate",
            ),
            (alert(AlertDescription::UnknownCA), "(unknown ca)"),
            (alert(AlertDescription::InternalError), "it ended the connection (internal error)"),
            (rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "does not speak TLS"),
            (rustls::Error::PeerIncompatible(rustls::PeerIncompatible::NoCipherSuitesInCommon), "no version or cipher"),
            (
                rustls::Error::PeerMisbehaved(rustls::PeerMisbehaved::TooManyEmptyFragments),
                "(too many empty fragments)",
            ),
            (rustls::Error::DecryptError, "(decrypt error)"),
            (rustls::Error::General("x".into()), "breaks the protocol"),
        ] {
            let library = error.to_string();
            let said = words(error);
            assert!(said.contains(wanted), "{library}: {said}");
            for word in ["peer", "rustls", "docs.rs", "DnsName", "invalid peer", "received"] {
                assert!(!said.contains(word), "{word}: {said}");
            }
        }
    }

    #[test]
    fn links_to_manuals_are_left_out_and_the_system_s_words_stay() {
        let closed = "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/x";
        assert!(words(io::Error::new(io::ErrorKind::UnexpectedEof, closed)).contains("was closed before"));
        assert_eq!(words(io::Error::other("some cause: https://docs.rs/x")), "some cause");
        assert_eq!(words(io::Error::from_raw_os_error(111)), "Connection refused (os error 111)");
        assert_eq!(words(io::Error::other("")), "the request failed");
    }
}
