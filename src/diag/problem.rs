//! One problem, many problems, and their text.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A place in an author's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Location {
    /// The file as a person would name it: relative to the working directory where it lies below it; or a word in
    /// angle brackets for what is no file (`<command line>`, `<environment>`, `<built-in>`).
    #[serde(serialize_with = "shared")]
    pub file: Arc<str>,
    /// Counted from 1; `None` where only the file is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Location {
    /// A line of a file.
    pub fn new(file: impl Into<Arc<str>>, line: u32) -> Self {
        Self { file: file.into(), line: Some(line) }
    }

    /// A file as a whole.
    pub fn file(file: impl Into<Arc<str>>) -> Self {
        Self { file: file.into(), line: None }
    }

    /// Whether nothing is known of the place.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.file.is_empty()
    }
}

fn shared<S: Serializer>(file: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(file)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The job cannot run.
    #[default]
    Error,
    /// The job runs, but the author should know.
    Warning,
}

/// What is wrong, where, and what to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// The path of keys (`servers.agent.depends_on[1]`); empty where there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// A lower-case fragment without a full stop; literals in backticks.
    pub message: String,
    /// The author's file and line.
    #[serde(skip_serializing_if = "Location::is_unknown")]
    pub location: Location,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// An error without a path or place yet.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// A warning without a path or place yet.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(message) }
    }

    /// The same problem at a path of keys.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// The same problem at a place in a file.
    #[must_use]
    pub fn in_file(mut self, location: Location) -> Self {
        self.location = location;
        self
    }

    /// The same problem with a way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same problem with "did you mean" for the nearest of `candidates`, or the list of them if few.
    #[must_use]
    pub fn suggest<'a>(self, wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        let mut candidates: Vec<&str> = candidates.into_iter().collect();
        candidates.sort_unstable();
        candidates.dedup();
        match super::nearest(wrong, candidates.iter().copied()) {
            Some(name) => self.hint(format!("did you mean `{name}`?")),
            None if candidates.is_empty() => self,
            None => self.hint(format!("known: {}", candidates.join(", "))),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(render(self).trim_end())
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { list: vec![problem] }
    }
}

/// All problems of one job, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// No problem yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one, unless the same is there already.
    pub fn push(&mut self, problem: Problem) {
        if !self.list.contains(&problem) {
            self.list.push(problem);
        }
    }

    /// Adds all of another list.
    pub fn extend(&mut self, other: Problems) {
        for problem in other.list {
            self.push(problem);
        }
    }

    /// Whether one of them is an error.
    #[must_use]
    pub fn any_error(&self) -> bool {
        self.list.iter().any(|p| p.severity == Severity::Error)
    }

    /// Whether there is none at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// `Ok(value)` if no problem is an error; the warnings are then lost, so take them first.
    pub fn into_result<T>(self, value: T) -> Result<T, Problems> {
        if self.any_error() { Err(self) } else { Ok(value) }
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        let mut all = Self::new();
        problems.into_iter().for_each(|problem| all.push(problem));
        all
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.list {
            f.write_str(&render(problem))?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The text of one problem, with a line end: message, then the place, then the hint.
///
/// ```text
/// error: servers.agent.dependson: unknown key
///   --> job.lua:12
///   hint: did you mean `depends_on`?
/// ```
#[must_use]
pub fn render(problem: &Problem) -> String {
    use fmt::Write as _;
    let mut text = String::from(match problem.severity {
        Severity::Error => "error: ",
        Severity::Warning => "warning: ",
    });
    if !problem.path.is_empty() {
        let _ = write!(text, "{}: ", problem.path);
    }
    text.push_str(&problem.message);
    text.push('\n');
    if !problem.location.is_unknown() {
        let _ = writeln!(text, "  --> {}", problem.location);
    }
    if let Some(hint) = &problem.hint {
        let _ = writeln!(text, "  hint: {hint}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Location, Problem, Problems, render};

    #[test]
    fn a_problem_reads_message_place_hint() {
        let problem = Problem::new("unknown key")
            .at("servers.agent.dependson")
            .in_file(Location::new("job.lua", 12))
            .suggest("dependson", ["depends_on", "command"]);
        assert_eq!(
            render(&problem),
            "error: servers.agent.dependson: unknown key\n  --> job.lua:12\n  hint: did you mean `depends_on`?\n"
        );
    }

    #[test]
    fn the_same_problem_is_said_once_and_warnings_are_no_errors() {
        let mut problems = Problems::new();
        problems.push(Problem::warning("x"));
        problems.push(Problem::warning("x"));
        assert_eq!(problems.iter().count(), 1);
        assert!(!problems.any_error());
        problems.push(Problem::new("y"));
        assert!(problems.into_result(()).is_err());
    }
}
