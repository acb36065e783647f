//! Paths of requests as the reference's server compares them: clean of `//`, `.` and `..`, then decoded.

use crate::collector::text::percent;

/// The path with its `%XX` decoded; as it is where that is not UTF-8.
pub(super) fn decode(path: &str) -> String {
    String::from_utf8(percent::decode(path)).unwrap_or_else(|_| path.to_owned())
}

/// Whether a `%` is not followed by two hexadecimal digits: no URL then.
pub(super) fn has_bad_escape(path: &str) -> bool {
    let is_bad = |rest: &str| !rest.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    path.split('%').skip(1).any(is_bad)
}

/// The shortest path that means the same; a slash at the end stays.
pub(super) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut clean = format!("/{}", parts.join("/"));
    if path.ends_with('/') && !clean.ends_with('/') {
        clean.push('/');
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clean_stays() {
        for (path, wanted) in [
            ("/v1/traces", "/v1/traces"),
            ("//v1/traces", "/v1/traces"),
            ("/v1//traces/", "/v1/traces/"),
            ("/a/../v1/./traces", "/v1/traces"),
            ("/..", "/"),
            ("", "/"),
            ("/", "/"),
        ] {
            assert_eq!(clean(path), wanted);
        }
        assert_eq!(decode("/v1/%74races%zz%"), "/v1/traces%zz%");
        for (path, bad) in [("/v1/%74races", false), ("/", false), ("/%zz", true), ("/%7", true), ("/%41%", true)] {
            assert_eq!(has_bad_escape(path), bad, "{path}");
        }
    }
}
