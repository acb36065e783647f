//! A compiled pattern, with the names of its groups.

use regex::{CaptureMatches, Captures, Regex, RegexBuilder};

use super::translate::translate;

/// The most memory that a pattern may take, in bytes.
const LARGEST: usize = 16 * 1024 * 1024;

/// A pattern of Go.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// By group, from the first one on.
    names: Vec<Option<String>>,
}

/// Compiles a pattern; what is wrong with it.
pub fn compile(pattern: &str) -> Result<Pattern, String> {
    let (translated, names) = translate(pattern)?;
    let regex = RegexBuilder::new(&translated).size_limit(LARGEST).build().map_err(|error| match error {
        regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        regex::Error::CompiledTooBig(limit) => format!("it takes more than {limit} bytes of memory"),
        other => other.to_string(),
    })?;
    Ok(Pattern { regex, names })
}

impl Pattern {
    /// Whether it matches somewhere.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The first match.
    #[must_use]
    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex.captures(text)
    }

    /// All matches, one after the other.
    #[must_use]
    pub fn captures_iter<'r, 't>(&'r self, text: &'t str) -> CaptureMatches<'r, 't> {
        self.regex.captures_iter(text)
    }

    /// How many groups there are.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.names.len()
    }

    /// The groups that have names; a name may come twice.
    pub fn named(&self) -> impl Iterator<Item = (usize, &str)> {
        self.names.iter().enumerate().filter_map(|(place, name)| Some((place + 1, name.as_deref()?)))
    }

    /// What each named group has found, nothing where it did not take part.
    pub fn found<'a, 't>(&'a self, found: &'a Captures<'t>) -> impl Iterator<Item = (&'a str, &'t str)> {
        self.named().map(|(group, name)| (name, found.get(group).map_or("", |group| group.as_str())))
    }

    /// Fills in a replacement: `$1`, `${1}`, `$name`, `${name}`, `$$`. A name is as long as it can be; one that no group
    /// has is nothing; a `$` without a name stays.
    #[must_use]
    pub fn expand(&self, template: &str, found: &Captures<'_>) -> String {
        let mut out = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(place) = rest.find('$') {
            out.push_str(&rest[..place]);
            rest = &rest[place + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                out.push('$');
                rest = after;
                continue;
            }
            let (braces, inner) = rest.strip_prefix('{').map_or((0, rest), |inner| (1, inner));
            let length = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
            let (name, after) = inner.split_at(length);
            if name.is_empty() || (braces == 1 && !after.starts_with('}')) {
                out.push('$');
                continue;
            }
            out.push_str(self.group(name, found));
            rest = &after[braces..];
        }
        out.push_str(rest);
        out
    }

    /// What a reference means: a number, or the first group of the name that took part.
    fn group<'t>(&self, name: &str, found: &Captures<'t>) -> &'t str {
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
        let group = if is_number {
            name.parse().ok().and_then(|number| found.get(number))
        } else {
            self.named().filter(|(_, known)| *known == name).find_map(|(group, _)| found.get(group))
        };
        group.map_or("", |group| group.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern).expect(pattern).is_match(text)
    }

    #[test]
    fn replacements_are_filled_in() {
        let pattern = compile("(?P<first>a)(b)?").expect("compiles");
        let found = pattern.captures("a").expect("matches");
        for (template, expected) in [
            ("$1-${1}-$first-${first}", "a-a-a-a"),
            ("$2|$3|$1x|$nope|$0|$01", "||||a|"),
            ("$$1 $ ${ ${a-b} $", "$1 $ ${ ${a-b} $"),
        ] {
            assert_eq!(pattern.expand(template, &found), expected, "{template}");
        }
        let twice = compile("(?P<1x>a)?(?P<1x>b)").expect("compiles");
        let found = twice.captures("b").expect("matches");
        assert_eq!((twice.expand("${1x}", &found), twice.groups()), ("b".to_owned(), 2));
        assert_eq!(twice.found(&found).collect::<Vec<_>>(), [("1x", ""), ("1x", "b")]);
    }

    #[test]
    fn classes_are_ascii_and_brackets_mean_themselves() {
        assert!(matches(r"^\d+$", "123") && !matches(r"^\d+$", "١٢٣"));
        assert!(matches(r"^[\w.]+$", "a.b_9") && !matches(r"^\w$", "é"));
        assert!(matches(r"^[[a]+$", "[a") && matches(r"^[]a]+$", "]a") && matches(r"^[^]a]$", "b"));
        assert!(matches(r"^[a&&b]+$", "&a") && matches(r"^[a-]+$", "a-") && matches(r"^[[:alpha:]_]+$", "a_"));
        assert!(matches(r"\bx\b", "a x b") && matches(r"^[^\d]$", "x") && matches(r"^[\d-z]+$", "1-z"));
        assert!(matches(r"^[--a]$", "Z") && matches(r"^[\pL\]]+$", "é]") && matches(r"^\P{^Greek}$", "α"));
    }

    #[test]
    fn signs_that_mean_themselves() {
        for (pattern, text) in [
            ("^{$", "{"),
            ("^a{,2}$", "a{,2}"),
            ("^a{01}$", "a{01}"),
            (r"^\Qa.*\E+$", "a.**"),
            (r"^\Q[", "["),
            (r"^\<\>\_\-$", "<>_-"),
            (r"^\101\x41\x{e9}\n$", "AA\u{e9}\n"),
            (r"^a{2}?b{1,}$", "aabb"),
            (r"(?i)^É(?-i:x)(?s:.)$", "éx\n"),
            (r"^\b{start}$", "x{start}"),
        ] {
            assert!(compile(pattern).is_ok(), "{pattern}");
            assert!(pattern.contains("start") || matches(pattern, text), "{pattern}");
        }
    }

    #[test]
    fn what_is_no_pattern() {
        for pattern in [
            "(",
            ")",
            "*",
            "a**",
            "a{2}{3}",
            "a|*",
            "(?:+)",
            "a{1001}",
            "a{2,1}",
            "(?x)a",
            "(?=a)",
            "(?P<a b>c)",
            "(?P<>a)",
            "(?P<a",
            "[",
            "[a",
            "[z-a]",
            "[[:nope:]]",
            r"[a-\d]",
            r"\1",
            r"\u0041",
            r"\Z",
            r"\h",
            r"\é",
            r"\C",
            r"\p{Nope}",
            r"\pé",
            r"\x{110000}",
            r"\x4",
            "a\\",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
