//! A map of the configuration as a component reads it: key by key, with every problem recorded at its line.
//!
//! A key that was never asked for is unknown, so the list of known keys is the code that reads them. A getter gives
//! `None` for a key that is absent, null or wrong; a wrong one is recorded, so `unwrap_or(default)` is right everywhere.

use super::Findings;
use crate::collector::config::node::{Entry, Node, Value};
use crate::diag::Problem;

/// One map being read.
pub struct Section<'a> {
    path: String,
    line: u32,
    entries: &'a [Entry],
    asked: Vec<&'static str>,
    unsupported: &'static [&'static str],
    tolerant: bool,
    is_open: bool,
    pub(super) findings: &'a Findings,
}

impl<'a> Section<'a> {
    /// Reads the map `node` (null is an empty one) that stands at `path`, then reports the keys that `read` never asked
    /// for. `line` is that of its key.
    pub fn read<T>(
        findings: &'a Findings,
        node: &'a Node,
        path: &str,
        line: u32,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let Some(entries) = node.entries() else {
            findings.push(line, path, Problem::new(format!("expected a map, found {}", node.kind())));
            return None;
        };
        let path = path.to_owned();
        let mut section = Section {
            path,
            line,
            entries,
            asked: Vec::new(),
            unsupported: &[],
            tolerant: false,
            is_open: false,
            findings,
        };
        let result = read(&mut section);
        section.report_unknown();
        Some(result)
    }

    /// The path of this section (`exporters.file/traces`).
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Keys that the reference collector knows and this one does not: they get words of their own.
    pub fn unsupported(&mut self, keys: &'static [&'static str]) {
        self.unsupported = keys;
    }

    /// Unknown keys are a warning here, since the reference collector accepts them.
    pub fn tolerate_unknown(&mut self) {
        self.tolerant = true;
    }

    /// All entries that were not asked for yet; they count as known. For maps whose keys are names beside known ones.
    pub fn rest(&mut self) -> Vec<&'a Entry> {
        self.is_open = true;
        let unasked = |entry: &&Entry| {
            !self.asked.contains(&entry.key.as_str()) && !self.unsupported.contains(&entry.key.as_str())
        };
        self.entries.iter().filter(unasked).collect()
    }

    /// Whether the key is there, null included.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.ask(key).is_some()
    }

    /// The value as it is; `None` if the key is absent. Null is a value here.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.ask(key).map(|entry| &entry.node)
    }

    /// A map of its own. `Some` also for a key with a null value (an empty map); `None` if the key is absent or wrong.
    pub fn section<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'a>) -> T) -> Option<T> {
        let entry = self.ask(key)?;
        Section::read(self.findings, &entry.node, &self.path_of(key), entry.line, read)
    }

    /// One entry of the map at `key`, as a section of its own; for maps whose keys are names.
    pub fn inner<T>(&self, entry: &'a Entry, key: &'static str, read: impl FnOnce(&mut Section<'a>) -> T) -> Option<T> {
        let path = format!("{}.{}", self.path_of(key), entry.key);
        Section::read(self.findings, &entry.node, &path, entry.line, read)
    }

    /// A list of maps, each read by `read`.
    pub fn sections<T>(&mut self, key: &'static str, mut read: impl FnMut(&mut Section<'a>) -> T) -> Option<Vec<T>> {
        let entry = self.ask_value(key)?;
        let Value::List(items) = &entry.node.value else {
            self.wrong(entry, "a list of maps", "begin each with `- `");
            return None;
        };
        let items = items.iter().enumerate();
        Some(items.filter_map(|(index, item)| self.item(key, index, item, &mut read)).collect())
    }

    /// One item of the list at `key`, as a section of its own.
    pub fn item<T>(
        &self,
        key: &str,
        index: usize,
        item: &'a Node,
        read: impl FnOnce(&mut Section<'a>) -> T,
    ) -> Option<T> {
        Section::read(self.findings, item, &format!("{}[{index}]", self.path_of(key)), item.line, read)
    }

    /// Keeps a value out of every text from now on.
    pub fn secret(&self, value: &str) {
        self.findings.secrets.borrow_mut().add(value);
    }

    /// The same for the user and the password of an address, where it has them.
    pub fn secret_user(&self, address: &str) {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else { return };
        self.secret(user);
        user.split(':').for_each(|part| self.secret(part));
    }

    /// Records a problem at a key of this section (or at the section, if the key is absent).
    pub fn problem(&self, key: &str, problem: Problem) {
        let line = self.entries.iter().find(|entry| entry.key == key).map_or(self.line, |entry| entry.line);
        self.findings.push(line, &self.path_of(key), problem);
    }

    /// Records a problem inside the value of a key, at the line where it stands.
    pub fn problem_at(&self, key: &str, line: u32, problem: Problem) {
        self.findings.push(line, &self.path_of(key), problem);
    }

    /// Records a problem of the section as a whole.
    pub fn problem_here(&self, problem: Problem) {
        self.findings.push(self.line, &self.path, problem);
    }

    /// Records that a key must be there.
    pub fn missing(&self, key: &str) {
        self.findings.push(self.line, &self.path, Problem::new(format!("`{key}` is missing")));
    }

    pub(super) fn problem_count(&self) -> usize {
        self.findings.problems.borrow().iter().count()
    }

    pub(super) fn ask(&mut self, key: &'static str) -> Option<&'a Entry> {
        self.asked.push(key);
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(super) fn ask_value(&mut self, key: &'static str) -> Option<&'a Entry> {
        self.ask(key).filter(|entry| entry.node.value != Value::Null)
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn wrong(&self, entry: &Entry, wanted: &str, hint: &str) {
        let problem = Problem::new(format!("expected {wanted}, found {}", entry.node.kind())).hint(hint);
        self.findings.push(entry.line, &self.path_of(&entry.key), problem);
    }

    fn report_unknown(&self) {
        for entry in self.entries {
            let key = entry.key.as_str();
            if self.asked.contains(&key) {
                continue;
            }
            let path = self.path_of(key);
            if self.unsupported.contains(&key) {
                let known = self.known().join(", ");
                let problem = Problem::new(format!("`{key}` is not supported by this collector"));
                self.findings.push(entry.line, &path, problem.hint(format!("supported: {known}")));
            } else if !self.is_open {
                let message = format!("unknown key `{key}`");
                let problem = if self.tolerant { Problem::warning(message) } else { Problem::new(message) };
                self.findings.push(entry.line, &path, problem.suggest(key, self.known()));
            }
        }
    }

    fn known(&self) -> Vec<&'static str> {
        let mut known = self.asked.clone();
        known.sort_unstable();
        known.dedup();
        known
    }
}
