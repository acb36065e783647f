//! Patterns of rules: anchored, in Go's syntax, with Go's templates.

use crate::collector::text::pattern;

/// A pattern that matches whole texts only; a dot matches line breaks too.
#[derive(Clone, Debug)]
pub struct Pattern {
    inner: pattern::Pattern,
}

impl Pattern {
    /// Compiles it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let inner = pattern::compile(&format!("^(?s:{pattern})$"));
        // The author has not written what is around it.
        inner.map(|inner| Self { inner }).map_err(|why| pattern::compile(pattern).err().unwrap_or(why))
    }

    /// Whether the text matches as a whole.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.inner.is_match(text)
    }

    /// What the templates become for this text; `None` if it does not match.
    #[must_use]
    pub fn expand<const N: usize>(&self, text: &str, templates: [&str; N]) -> Option<[String; N]> {
        let captures = self.inner.captures(text)?;
        Some(templates.map(|template| self.inner.expand(template, &captures)))
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_match_whole_texts() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).expect(pattern).matches(text);
        assert!(matches("a|b", "b") && !matches("a|b", "ab"));
        assert!(matches(".*", "a\nb") && matches("", "") && !matches("", "a"));
        assert!(Pattern::new("(").is_err() && Pattern::new("a(?=b)").is_err());
    }

    #[test]
    fn templates_are_filled_as_go_does_it() {
        let pattern = Pattern::new("(?P<host>[^:]+):([0-9]+)(x)?").expect("pattern");
        for (template, filled) in [
            ("$1", "h"),
            ("${1}0", "h0"),
            ("$10", ""),
            ("$1_0", ""),
            ("$host-$2", "h-80"),
            ("${host}", "h"),
            ("$$1", "$1"),
            ("$", "$"),
            ("a$-b", "a$-b"),
            ("${", "${"),
            ("${1", "${1"),
            ("${a b}", "${a b}"),
            ("$3|$9|$nope", "||"),
            ("$01", ""),
            ("$0", "h:80"),
        ] {
            assert_eq!(pattern.expand("h:80", [template]), Some([filled.to_owned()]), "{template}");
        }
        assert_eq!(pattern.expand("none", ["$1"]), None);
    }
}
