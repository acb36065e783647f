//! Certificates and keys as files have them.
//!
//! A bundle may hold anything between its certificates, and bundles that people put together have certificates that are
//! damaged, or whose first line stands at the end of the former one's last. Each is read by itself, so that one that cannot
//! be read is known by its number, and takes none of the others with it.

use memchr::{memchr2, memmem};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

const BEGIN: &[u8] = b"-----BEGIN ";

/// The certificates of a bundle in their order; `None` where one cannot be read.
pub fn certificates(pem: &[u8]) -> Vec<Option<CertificateDer<'static>>> {
    let begins: Vec<usize> = memmem::find_iter(pem, BEGIN).filter(|place| is_certificate(pem, *place)).collect();
    let ends = begins.iter().skip(1).copied().chain([pem.len()]);
    begins.iter().zip(ends).map(|(begin, end)| CertificateDer::from_pem_slice(&pem[*begin..end]).ok()).collect()
}

/// Whether a certificate begins at this `BEGIN`: it is at the start of a line, or behind the end of another one, and not in
/// a comment. Certificates of other kinds (`TRUSTED CERTIFICATE`) count, as some that cannot be read.
fn is_certificate(pem: &[u8], place: usize) -> bool {
    let before = &pem[..place];
    let before = before.strip_prefix(b"\xef\xbb\xbf").unwrap_or(before);
    let blanks = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let before = &before[..before.len() - blanks];
    let label = &pem[place + BEGIN.len()..];
    let label = &label[..memchr2(b'\n', b'\r', label).unwrap_or(label.len())];
    (before.is_empty() || before.ends_with(b"\n") || before.ends_with(b"\r") || before.ends_with(b"-----"))
        && label.trim_ascii_end().ends_with(b"CERTIFICATE-----")
}

/// Our own certificate with those between it and its authority.
///
/// # Errors
/// What is wrong, in words that follow the name of the setting.
pub fn own_chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Option<Vec<_>> = certificates(pem).into_iter().collect();
    let chain = chain.ok_or("the own certificate cannot be read")?;
    if chain.is_empty() {
        Err("where the own certificate should be is none (`BEGIN CERTIFICATE`)".into())
    } else {
        Ok(chain)
    }
}

/// Our own key.
///
/// # Errors
/// What is wrong, in words that follow the name of the setting.
pub fn own_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
        if pem.windows(9).any(|window| window == b"ENCRYPTED") {
            "the own key has a passphrase, which is not supported".into()
        } else {
            "where the own key should be is none (`BEGIN PRIVATE KEY`)".into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = include_str!("../../../../tests/data/collector/tls/ca.pem");
    const OTHER: &str = include_str!("../../../../tests/data/collector/tls/own-plain.pem");

    /// Which certificates are there: the first, the other, or one that cannot be read.
    fn found(pem: &[u8]) -> String {
        let one = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        let name = |found: &Option<CertificateDer<'_>>| match found {
            Some(found) if *found == one(ONE) => '1',
            Some(found) if *found == one(OTHER) => '2',
            Some(_) => '?',
            None => '-',
        };
        certificates(pem).iter().map(name).collect()
    }

    #[test]
    fn none_is_lost_and_none_takes_others_with_it() {
        let (one, other) = (ONE.trim_end(), OTHER.trim_end());
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA";
        let end = "-----END CERTIFICATE-----";
        let key = include_str!("../../../../tests/data/collector/tls/key.pem");
        for (pem, wanted) in [
            (String::new(), ""),
            (key.to_owned(), ""),
            (format!("{one}\n{other}"), "12"),
            (format!("Root\n====\n{one}\nthe other\n\n{other}\n\nend"), "12"),
            (format!("{one}\n{key}{other}"), "12"),
            (format!("{one}{other}"), "12"),
            (format!("{one} {other}"), "12"),
            (format!("\u{feff}{one}\n{other}"), "12"),
            (format!("{one}\n{other}").replace('\n', "\r\n"), "12"),
            (format!("{one}\n{other}").replace('\n', "\r"), "12"),
            (format!("{damaged}!\n{end}\n{one}"), "-1"),
            (format!("{one}\n{damaged}"), "1-"),
            (format!("{damaged}\n{one}\n{other}"), "-12"),
            (format!("{one}\n{damaged}\n{key}{other}"), "1-2"),
            (one.replace("CERTIFICATE", "TRUSTED CERTIFICATE") + "\n" + other, "-2"),
            (one.replacen("-----\n", "-----\nName: x\n\n", 1) + "\n" + other, "-2"),
            (one.replace('\n', "\n  ") + "\n" + other, "-2"),
            (format!("  {}\n{other}", one.replace('\n', "\n  ")), "-2"),
            (format!("# {}\n{other}", one.replace('\n', "\n# ")), "2"),
            (format!("#{one}\n{other}"), "2"),
            ("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----".into(), ""),
        ] {
            assert_eq!(found(pem.as_bytes()), wanted, "{pem}");
        }
        // Names of authorities in another encoding.
        assert_eq!(found(&[b"Soci\xe9t\xe9\n", ONE.as_bytes()].concat()), "1");
    }
}
