//! Where a configuration comes from.

use super::load::{Environment, Files, from_yaml};
use super::node::{Entry, Node, Value};
use crate::diag::{Location, Problem, Problems};
use crate::yaml;

/// One of the places that a configuration is joined from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The path of a file, `file:PATH`, `env:NAME` or `yaml:TEXT`.
    Named(String),
    /// One value, as `--set` gives it: its key, in which `.` and `::` separate, and its text, which is YAML.
    Setting(String, String),
}

impl From<&str> for Source {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl Source {
    /// The file that it is; `None` if it is of another kind.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        let Self::Named(name) = self else { return None };
        match name.split_once(':') {
            None => Some(name),
            Some(("file", path)) => Some(path),
            // One letter is a drive elsewhere, and so a path here too.
            Some((scheme, _)) if scheme.len() == 1 || scheme.contains('/') => Some(name),
            Some(_) => None,
        }
    }

    pub(super) fn retrieve(&self, environment: Environment<'_>, files: Files<'_>) -> Result<Retrieved, Problems> {
        let named = match self {
            Self::Setting(key, text) => {
                let (name, key) = (format!("--set {key}"), key.replace('.', "::"));
                return Ok(Retrieved { name, text: text.clone(), key: Some(key) });
            }
            Self::Named(named) => named,
        };
        let problem = |problem: Problem| Problems::from(problem.in_file(Location::file(named.as_str())));
        let (name, text) = match (self.path(), named.split_once(':')) {
            (Some(path), _) => {
                let unread = |error| problem(Problem::new(format!("cannot read the configuration: {error}")));
                (path.to_owned(), files(path).map_err(unread)?)
            }
            (None, Some(("yaml", text))) => ("<yaml>".to_owned(), text.to_owned()),
            (None, Some(("env", name))) => {
                let text = environment(name).and_then(|value| value.into_string().ok());
                let text = text.ok_or_else(|| problem(Problem::new(format!("the variable `{name}` is not set"))))?;
                (format!("<environment {name}>"), text)
            }
            (None, other) => {
                let scheme = other.map_or(named.as_str(), |(scheme, _)| scheme);
                let unknown = Problem::new(format!("configurations cannot come from `{scheme}:`"));
                return Err(problem(unknown.hint("known: a path, `file:PATH`, `env:NAME`, `yaml:TEXT`")));
            }
        };
        Ok(Retrieved { name, text, key: None })
    }
}

/// The text of a source.
pub(super) struct Retrieved {
    /// What people call the source.
    pub name: String,
    text: String,
    /// The key that the text is the value of; `None`: it is the configuration.
    key: Option<String>,
}

impl Retrieved {
    /// The tree of it, whose lines are counted from `first` on.
    pub fn read(self, first: u32) -> Result<Node, Problems> {
        let Self { name, text, key } = self;
        let read = yaml::read(&text, &name);
        let Some(key) = key else { return Ok(from_yaml(read?, &|line| first + line)) };
        // A place in a command line has no line.
        let placed = |problem: Problem| problem.in_file(Location::file(name.as_str()));
        let node =
            from_yaml(read.map_err(|problems| problems.into_iter().map(placed).collect::<Problems>())?, &|_| first);
        Ok(Node::new(first, Value::Map(vec![Entry { key, line: first, node }])))
    }
}
