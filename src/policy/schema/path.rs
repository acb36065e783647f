//! Where in a job a value stands.

use std::fmt;

/// The path of keys to a value (`servers.agent.depends_on[1]`): put into words only where there is something to say.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// A path in words; empty is the whole.
    Of(&'a str),
    /// A key of a mapping.
    Key(&'a Path<'a>, &'a str),
    /// An item of a list, counted from 0.
    Item(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The path of a key below this one.
    pub const fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    /// The path of an item of the list, counted from 0.
    pub const fn item(&'a self, index: usize) -> Self {
        Self::Item(self, index)
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Of(""))
    }
}

impl fmt::Display for Path<'_> {
    /// A key with a dot in it, or nothing, stands in quotes; items are counted from 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(path) => f.write_str(path),
            Self::Key(of, key) => {
                let dot = if of.is_empty() { "" } else { "." };
                let quote = if key.contains('.') || key.is_empty() { "\"" } else { "" };
                write!(f, "{of}{dot}{quote}{key}{quote}")
            }
            Self::Item(of, index) => write!(f, "{of}[{}]", index + 1),
        }
    }
}

impl From<&Path<'_>> for String {
    fn from(path: &Path<'_>) -> Self {
        path.to_string()
    }
}

/// The path of a key below a path in words.
pub fn below(path: &str, key: &str) -> String {
    Path::Of(path).key(key).to_string()
}

#[cfg(test)]
mod tests {
    use super::{Path, below};

    #[test]
    fn a_path_reads_as_people_would_write_it() {
        let whole = Path::Of("");
        let files = whole.key("files");
        let file = files.key("a.txt");
        assert_eq!(file.item(0).to_string(), "files.\"a.txt\"[1]");
        assert_eq!(below("servers", ""), "servers.\"\"");
        assert_eq!(below("", "name"), "name");
    }
}
