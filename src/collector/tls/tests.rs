//! Whom it trusts; the certificates are made by `make.sh` beside them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::trust::{Roots, Trust};
use super::words::{Keys, connection_words};

const KEYS: Keys = Keys { authority: "ca", identity: "`cert` and `key`", server_name: "name" };

fn certificates(name: &str) -> Vec<CertificateDer<'static>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/collector/tls/chains");
    let pem = std::fs::read(folder.join(format!("{name}.pem"))).expect("a file of certificates");
    CertificateDer::pem_slice_iter(&pem).map(|certificate| certificate.expect("a certificate")).collect()
}

/// Whether what is in one file is trusted where those in other files are, on the first day of 2030.
fn verify(shown: &str, trusted: &[&str]) -> Result<(), String> {
    let mut roots = Roots::none();
    for certificate in trusted.iter().flat_map(|name| certificates(name)) {
        roots.add(&certificate).expect("a certificate that can be read");
    }
    let trust = Trust::new(roots, None, &Arc::new(default_provider())).expect("a verifier");
    let shown = certificates(shown);
    let now = UnixTime::since_unix_epoch(Duration::from_hours(525_960));
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let verdict = trust.verify_server_cert(&shown[0], &shown[1..], &name, &[], now);
    verdict.map(drop).map_err(|error| connection_words(&error, &KEYS))
}

/// The trusted ones of the same name.
fn pair(name: &str) -> Result<(), String> {
    verify(name, &[&format!("{name}-ca")])
}

#[test]
fn authorities_that_may_sign_are_trusted() {
    for name in [
        "good",
        "no-key-usage",
        "any-purpose",
        "for-servers",
        "policies",
        "old-version",
        "between",
        "depth-0",
        "depth-1",
        "depth-1-between",
    ] {
        assert_eq!(pair(name), Ok(()), "{name}");
    }
    // The one between may be trusted itself, whatever it is between.
    assert_eq!(verify("between", &["between"]), Ok(()));
}

#[test]
fn what_an_authority_says_about_itself_counts() {
    for (name, wanted) in [
        ("says-no", "its authority `says-no` does not allow to sign others"),
        ("says-nothing", "its authority `says-nothing` does not allow to sign others"),
        ("may-not-sign", "its authority `may-not-sign` does not allow to sign others"),
        ("between-may-not-sign", "its authority `between-may-not-sign` does not allow to sign others"),
        ("for-clients", "its authority `for-clients` is not for servers (extended key usage)"),
        ("for-others", "its authority `for-others` is not for servers"),
        ("critical", "its authority `critical` has a critical extension that is not known here (1.2.3.4)"),
        ("expired", "its authority `expired` expired on 2021-01-01T00:00:00Z: it needs a new one, here in `ca`"),
        ("expired-between", "its authority `expired-between` expired on 2021-01-01T00:00:00Z"),
        ("future", "its authority `future` is not valid before 2090-01-01T00:00:00Z: look at the clocks"),
        (
            "depth-0-between",
            "its authority `depth-0` allows 0 authorities between itself and the server, and there are 1",
        ),
        (
            "for-other-names",
            "its certificate cannot be used: its authority may not sign for such names (nameConstraints)",
        ),
    ] {
        let said = pair(name).expect_err(name);
        assert!(said.contains(wanted), "{name}: {said}");
    }
}

#[test]
fn one_good_chain_is_enough() {
    for trusted in [["expired-ca", "renewed-ca"], ["renewed-ca", "expired-ca"]] {
        assert_eq!(verify("expired", &trusted), Ok(()), "{trusted:?}");
    }
    assert_eq!(verify("depth-0-between", &["depth-0-ca", "depth-0-between"]), Ok(()));
    // Nobody shows that one: it is only trusted.
    assert!(verify("expired-between", &["expired-between-ca", "good-ca"]).is_err());
}

/// The certificate of `good` is not its authority's.
#[test]
fn one_that_is_trusted_as_it_is_makes_no_others_trusted() {
    assert_eq!(verify("good", &["good"]), Ok(()));
    assert_eq!(verify("own-any-purpose", &["own-any-purpose"]), Ok(()));
    for (own, wanted) in [
        ("own-for-clients", "its certificate cannot be used: it is not for servers (extended key usage)"),
        ("own-critical", "its certificate cannot be used: unsupported critical extension"),
    ] {
        let said = verify(own, &[own]).expect_err(own);
        assert!(said.contains(wanted), "{own}: {said}");
    }
    let said = verify("own-any-purpose", &["good-ca"]).expect_err("not trusted");
    assert!(said.contains("it is not in `ca` itself"), "{said}");
}

#[test]
fn a_key_of_a_wrong_size_is_named() {
    let said = pair("small").expect_err("a small key");
    assert!(said.contains("its authority `small` has an RSA key of 1024 bits"), "{said}");
}
