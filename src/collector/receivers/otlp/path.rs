//! Paths of requests as the reference's server compares them: clean of `//`, `.` and `..`, then decoded.

use crate::collector::text::percent;
use crate::otlp::Signal;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A signal.
    Of(Signal),
    /// Nothing, and a signal at the same path with a slash behind it.
    Below,
    /// Nothing.
    Nowhere,
}

/// What stands at a clean path. A signal whose own ends with a slash has everything below it that no other one has.
pub(super) fn find(paths: &[(String, Signal)], takes: impl Fn(Signal) -> bool, path: &str) -> Place {
    let known = || paths.iter().filter(|(_, signal)| takes(*signal));
    if let Some((_, signal)) = known().find(|(known, _)| known == path) {
        return Place::Of(*signal);
    }
    if known().any(|(known, _)| known.strip_suffix('/') == Some(path) && !path.is_empty()) {
        return Place::Below;
    }
    let above = known().filter(|(known, _)| known.ends_with('/') && path.starts_with(known.as_str()));
    above.max_by_key(|(known, _)| known.len()).map_or(Place::Nowhere, |(_, signal)| Place::Of(*signal))
}

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
    fn who_ends_with_a_slash_has_what_is_below() {
        let paths =
            |traces: &str, logs: &str| vec![(traces.to_owned(), Signal::Traces), (logs.to_owned(), Signal::Logs)];
        let (traces, logs) = (Place::Of(Signal::Traces), Place::Of(Signal::Logs));
        for (one, other, path, wanted) in [
            ("/v1/traces", "/v1/logs", "/v1/logs", logs),
            ("/v1/traces", "/v1/logs", "/v1/logs/", Place::Nowhere),
            ("/v1/traces", "/v1/logs", "/", Place::Nowhere),
            ("/", "/v1/logs", "/v1/traces", traces),
            ("/", "/v1/logs", "/v1/logs", logs),
            ("/", "/v1/logs/", "/v1/logs", Place::Below),
            ("/", "/v1/logs/", "/v1/logs/a/b", logs),
            ("/x/", "/x", "/x", logs),
            ("/x/", "/x", "/x/", traces),
            ("/x/", "/v1/logs", "/xy", Place::Nowhere),
            ("/", "/v1/logs", "", Place::Nowhere),
        ] {
            assert_eq!(find(&paths(one, other), |_| true, path), wanted, "{one} {other} {path}");
        }
        let paths = paths("/x", "/x/");
        assert_eq!(find(&paths, |signal| signal == Signal::Logs, "/x"), Place::Below);
    }

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
