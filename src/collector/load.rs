//! From the text of a configuration to its expanded tree.

use std::ffi::OsString;
use std::path::Path;

use super::config::Config;
use super::expand::{Sources, expand};
use super::node::{Entry, Node, Value};
use super::scalar::type_plain;
use super::section::Findings;
use crate::diag::{Location, Problem, Problems};
use crate::yaml::{self, Yaml, YamlValue};

/// Reads, expands with the process's environment, and checks a configuration file.
pub fn load(path: &Path) -> Result<Config, Problems> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::new(format!("cannot read the configuration: {error}")).in_file(Location::file(name.clone()))
    })?;
    let findings = Findings::new(name);
    let root = read_text(&text, &|variable| std::env::var_os(variable), &findings)?;
    if findings.problems.borrow().any_error() {
        return Err(findings.problems.into_inner());
    }
    Config::from_node(&root, findings)
}

/// Reads and expands a text; syntax problems are returned, those of references are recorded.
pub(super) fn read_text(
    text: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
    findings: &Findings,
) -> Result<Node, Problems> {
    let root = from_yaml(yaml::read(text, &findings.file)?);
    let parse = |text: &str| yaml::read(text, "<variable>").ok().map(from_yaml);
    Ok(expand(root, &Sources { variable, parse: &parse }, findings))
}

fn from_yaml(yaml: Yaml) -> Node {
    let line = yaml.location.line.unwrap_or(1);
    let (value, text) = match yaml.value {
        YamlValue::Scalar { text, plain } => {
            (if plain { type_plain(&text) } else { Value::Text(text.clone()) }, Some(text))
        }
        YamlValue::List(items) => (Value::List(items.into_iter().map(from_yaml).collect()), None),
        YamlValue::Map(entries) => {
            let entry = |(key, node): (String, Yaml)| {
                let node = from_yaml(node);
                Entry { key, line: node.line, node }
            };
            (Value::Map(entries.into_iter().map(entry).collect()), None)
        }
    };
    Node { line, value, text, referenced: false }
}
