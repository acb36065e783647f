//! Whom it trusts; the certificates are made by `make.sh` beside them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::client::{Material, Version};
use super::trust::{Roots, Trust};
use super::words::{Keys, connection_words};
use crate::collector::testing::problems_of;

const KEYS: Keys = Keys { authority: "ca", identity: "`cert` and `key`", server_name: "name" };

fn read(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/collector/tls/chains");
    std::fs::read(folder.join(format!("{name}.pem"))).expect("a file of certificates")
}

fn certificates(name: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(&read(name)).map(|certificate| certificate.expect("a certificate")).collect()
}

/// Whether what is in one file is trusted where those in other files are, on the first day of 2030.
fn verify(shown: &str, trusted: &[&str]) -> Result<(), String> {
    verify_name("127.0.0.1", shown, trusted)
}

fn verify_name(name: &'static str, shown: &str, trusted: &[&str]) -> Result<(), String> {
    let mut roots = Roots::none();
    for certificate in trusted.iter().flat_map(|name| certificates(name)) {
        roots.add(&certificate).expect("a certificate that can be read");
    }
    let trust = Trust::new(roots, None, &Arc::new(default_provider())).expect("a verifier");
    let shown = certificates(shown);
    let now = UnixTime::since_unix_epoch(Duration::from_hours(525_960));
    let name = ServerName::try_from(name).expect("a name");
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
            "its authority `depth-0` allows 0 authorities between itself and the server, not 1 (pathLenConstraint)",
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
    // Its own key is first used in the handshake.
    let server = &certificates("small-server")[0];
    let said = super::chain::wrong_key_of_server(server).expect("a small key");
    let said = connection_words(
        &rustls::Error::InvalidCertificate(rustls::CertificateError::Other(rustls::OtherError(Arc::new(said)))),
        &KEYS,
    );
    assert!(said.contains("its certificate has an RSA key of 1024 bits"), "{said}");
    assert!(super::chain::wrong_key_of_server(&certificates("good")[0]).is_none());
}

#[test]
fn names_of_other_kinds_are_told_from_those_of_hosts() {
    for (name, shown, wanted) in [
        ("127.0.0.1", "names-of-others", "its certificate has no names of hosts (subjectAltName)"),
        ("127.0.0.1", "names-as-text", "its certificate has `127.0.0.1` as the name of a host"),
        ("a.test", "names-of-a-zone", "is for `*.test` (a `*` in front of a single word stands for no host here), not"),
        ("a.test", "good", "its certificate is for `sink.test`, `127.0.0.1`, not for `a.test`"),
    ] {
        let said = verify_name(name, shown, &["good-ca"]).expect_err(shown);
        assert!(said.contains(wanted), "{shown}: {said}");
    }
}

#[test]
fn a_bundle_works_without_what_is_damaged_in_it() {
    let damaged = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    let good = read("good-ca");
    for (bundle, wanted) in [
        (good.clone(), Ok(None)),
        (read("damaged-ca"), Ok(Some("certificate 1 cannot be read and is left out"))),
        ([&*good, &*damaged, &*damaged].concat(), Ok(Some("certificates 2, 3 cannot be read and are left out"))),
        (damaged.clone(), Err("the certificate of the authority cannot be read")),
        ([&*damaged, &*damaged].concat(), Err("none of the 2 certificates of the authorities can be read")),
        (Vec::new(), Err("among the authorities is no certificate")),
    ] {
        let material = Material { authorities: Some(&bundle), ..Material::default() };
        let found = material.configure(&[]).map(|_| material.warning());
        assert_eq!(found, wanted.map(|text| text.map(str::to_owned)).map_err(str::to_owned));
    }
}

/// Otherwise the server is told a name that its certificate need not have.
#[test]
fn no_name_is_asked_for_where_an_address_is_wanted() {
    let good = read("good-ca");
    for (server_name, asked) in
        [(None, true), (Some("sink.test"), true), (Some("127.0.0.1"), false), (Some("::1"), false)]
    {
        let material = Material { authorities: Some(&good), server_name, ..Material::default() };
        assert_eq!(material.configure(&[]).expect("a configuration").enable_sni, asked, "{server_name:?}");
    }
}

#[test]
fn old_versions_are_no_use() {
    for (oldest, newest, wanted) in [
        (Some(Version::V12), Some(Version::V13), ""),
        (Some(Version::V10), None, "warning: component.min_version: this collector does not support TLS below 1.2"),
        (Some(Version::V11), Some(Version::V12), "warning: component.min_version"),
        (Some(Version::V10), Some(Version::V11), "error: component.max_version: this collector does not support"),
        (Some(Version::V13), Some(Version::V12), "error: component.max_version: `max_version` is older"),
    ] {
        let said = problems_of("{}", |section| Version::check(section, oldest, newest));
        assert!(said.starts_with(wanted) && said.is_empty() == wanted.is_empty(), "{oldest:?} {newest:?}: {said}");
    }
}
