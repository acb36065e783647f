//! From the files of a configuration to its expanded tree.
//!
//! A configuration is given by one or several [sources](Source). Their maps are joined key by key, and what a later one says
//! wins, as in the reference collector. References are expanded after that.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::{fs, io};

use super::checked::Config;
use super::expand::{Sources, expand};
use super::node::{Entry, Node, Value};
use super::scalar::type_plain;
use super::section::Findings;
use super::source::Source;
use crate::collector::storage::Credential;
use crate::diag::{Location, Problem, Problems, Severity};
use crate::yaml::{self, Yaml, YamlValue};

/// Where variables come from.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// An expanded configuration that is not checked yet.
pub struct Expanded {
    /// The tree.
    pub root: Node,
    /// What headers refer to, with its value.
    pub credentials: Vec<Credential>,
    /// The names of the variables of headers that are not set and have no default.
    pub unset: Vec<String>,
    /// What was found on the way.
    pub findings: Findings,
}

/// The content of a file.
pub(super) type Files<'a> = &'a dyn Fn(&str) -> io::Result<String>;

/// Reads, expands and checks a configuration; everything that is wrong is said at once.
pub fn load(sources: &[Source], environment: Environment<'_>) -> Result<Config, Problems> {
    load_with(sources, environment, &|path| fs::read_to_string(path))
}

/// The texts of the files that a configuration came from, so that it can be had again when they have changed.
#[derive(Clone, Default)]
pub struct Texts {
    by_path: BTreeMap<String, String>,
}

impl Texts {
    /// [`load`], which keeps what it reads.
    pub fn load(sources: &[Source], environment: Environment<'_>) -> Result<(Config, Self), Problems> {
        let by_path = RefCell::default();
        let config = load_with(sources, environment, &|path| {
            let text = fs::read_to_string(path)?;
            RefCell::<BTreeMap<_, _>>::borrow_mut(&by_path).insert(path.to_owned(), text.clone());
            Ok(text)
        })?;
        Ok((config, Self { by_path: by_path.into_inner() }))
    }

    /// The same configuration again.
    pub fn again(&self, sources: &[Source], environment: Environment<'_>) -> Result<Config, Problems> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        load_with(sources, environment, &|path| self.by_path.get(path).cloned().ok_or_else(missing))
    }
}

/// The same with other files.
pub(in crate::collector) fn load_with(
    sources: &[Source],
    environment: Environment<'_>,
    files: Files<'_>,
) -> Result<Config, Problems> {
    let Expanded { root, credentials, findings, .. } = read_with(sources, environment, files)?;
    let unexpanded: Vec<Location> =
        findings.problems.borrow().iter().filter(|problem| is_error(problem)).map(place).collect();
    let config = Config::from_node(&root, credentials, findings);
    if unexpanded.is_empty() {
        return config;
    }
    // A reference that cannot be resolved is nothing; what follows from that on its line is no problem of its own.
    let mut seen = unexpanded.clone();
    let told = |problem: &Problem| match seen.iter().position(|known| *known == problem.location) {
        Some(first) => {
            seen.remove(first);
            true
        }
        None => !unexpanded.contains(&problem.location),
    };
    Err(config.err().unwrap_or_default().into_iter().filter(told).collect())
}

fn is_error(problem: &Problem) -> bool {
    problem.severity == Severity::Error
}

fn place(problem: &Problem) -> Location {
    problem.location.clone()
}

/// Reads and expands a configuration.
pub fn read(sources: &[Source], environment: Environment<'_>) -> Result<Expanded, Problems> {
    read_with(sources, environment, &|path| fs::read_to_string(path))
}

fn read_with(sources: &[Source], environment: Environment<'_>, files: Files<'_>) -> Result<Expanded, Problems> {
    let mut root = Node::new(1, Value::Map(Vec::new()));
    let mut problems = Problems::new();
    let mut names = Vec::new();
    for (place, source) in sources.iter().enumerate() {
        let first = u32::try_from(place).unwrap_or_default() * Findings::LINES;
        match source.retrieve(environment, files).and_then(|retrieved| {
            names.push(retrieved.name.clone());
            retrieved.read(first)
        }) {
            Ok(Node { value: Value::Null, .. }) => {}
            Ok(Node { value: Value::Map(entries), line, .. }) => {
                merge(&mut root, Node::new(line, Value::Map(entries.into_iter().map(unflatten).collect())));
            }
            Ok(node) => {
                let problem = Problem::new(format!("a configuration is a map, and this is {}", node.kind()));
                problems.push(problem.in_file(Location::file(names.last().cloned().unwrap_or_default())));
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.any_error() {
        return Err(problems);
    }
    let findings = Findings::of(names);
    let sources = Sources { variable: environment, file: files, parse: &parse };
    let (root, notes) = expand(root, &sources, &findings);
    let (credentials, unset) = (notes.credentials(&sources), notes.unset(environment));
    Ok(Expanded { root, credentials, unset, findings })
}

/// Reads and expands a text; syntax problems are returned, those of references are recorded.
#[cfg(test)]
pub(in crate::collector) fn read_text(
    text: &str,
    environment: Environment<'_>,
    findings: &Findings,
) -> Result<Node, Problems> {
    let files = |path: &str| fs::read_to_string(path);
    let root = from_yaml(yaml::read(text, "c.yaml")?, &|line| line);
    Ok(expand(root, &Sources { variable: environment, file: &files, parse: &parse }, findings).0)
}

fn parse(text: &str) -> Option<Node> {
    yaml::read(text, "<variable>").ok().map(|yaml| from_yaml(yaml, &|line| line))
}

/// `a::b: x` at the top is `a: {b: x}`.
fn unflatten(entry: Entry) -> Entry {
    let Entry { key, line, node } = entry;
    let mut parts = key.split("::").collect::<Vec<_>>();
    let first = parts.remove(0).to_owned();
    let wrap = |node: Node, key: &&str| Node::new(line, Value::Map(vec![Entry { key: (*key).to_owned(), line, node }]));
    Entry { node: parts.iter().rev().fold(node, wrap), key: first, line }
}

/// Puts `later` over `node`: maps key by key, anything else as a whole.
fn merge(node: &mut Node, later: Node) {
    let (Value::Map(entries), Value::Map(news)) = (&mut node.value, &later.value) else {
        *node = later;
        return;
    };
    for new in news {
        match entries.iter_mut().find(|entry| entry.key == new.key) {
            Some(entry) => {
                entry.line = new.line;
                merge(&mut entry.node, new.node.clone());
            }
            None => entries.push(new.clone()),
        }
    }
}

/// `line_in_tree`: what a line of the text is called in the tree.
pub(super) fn from_yaml(yaml: Yaml, line_in_tree: &dyn Fn(u32) -> u32) -> Node {
    let line = line_in_tree(yaml.location.line.unwrap_or(1));
    let (value, text) = match yaml.value {
        YamlValue::Scalar { text, plain } => {
            (if plain { type_plain(&text) } else { Value::Text(text.clone()) }, Some(text))
        }
        YamlValue::List(items) => {
            (Value::List(items.into_iter().map(|item| from_yaml(item, line_in_tree)).collect()), None)
        }
        YamlValue::Map(entries) => {
            let entry = |(key, node): (String, Yaml)| {
                let node = from_yaml(node, line_in_tree);
                Entry { key, line: node.line, node }
            };
            (Value::Map(entries.into_iter().map(entry).collect()), None)
        }
    };
    Node { line, value, text, referenced: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sources: &[&str]) -> Result<String, String> {
        let sources: Vec<Source> = sources.iter().map(|source| (*source).into()).collect();
        let environment = |name: &str| (name == "CONFIG").then(|| "c: {d: 4}".into());
        match read(&sources, &environment) {
            Ok(expanded) => Ok(show(&expanded.root)),
            Err(problems) => Err(problems.to_string()),
        }
    }

    fn show(node: &Node) -> String {
        match &node.value {
            Value::Map(entries) => {
                let entries: Vec<String> = entries.iter().map(|e| format!("{}: {}", e.key, show(&e.node))).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Value::List(items) => format!("{:?}", items.iter().map(show).collect::<Vec<_>>()),
            _ => node.as_written().unwrap_or_default().to_owned(),
        }
    }

    #[test]
    fn later_sources_win_key_by_key() {
        let merged = text(&["yaml:a: {b: 1, l: [1, 2]}", "yaml:a: {b: 2, l: [3]}", "env:CONFIG", "yaml:c::d: 5"]);
        assert_eq!(merged.expect("merges"), "{a: {b: 2, l: [\"3\"]}, c: {d: 5}}");
        assert_eq!(text(&["yaml:a: {b: 1}", "yaml:a:"]).expect("merges"), "{a: ~}");
        assert!(text(&["yaml:[1]"]).expect_err("no map").contains("is a map"));
        assert!(text(&["http:x"]).expect_err("no scheme").contains("http"));
        assert!(text(&["/no/such.yaml", "env:NO"]).expect_err("both").contains("`NO` is not set"));
    }

    /// Wherever it stands: in a variable's value, in a file, in a list; and what is written in place is none.
    #[test]
    fn what_headers_refer_to_is_found_with_all_that_it_comes_to() {
        let file = |name: &str| match name {
            "/token" => Ok("t".to_owned()),
            "/headers" => Ok("{A: 'Bearer ${env:SET}', B: in the file}".to_owned()),
            "/exporters" => Ok("{e: {headers: [{name: X-Name, value: 'Basic ${AUTH}'}], endpoint: here}}".to_owned()),
            _ => Err(io::Error::other("no")),
        };
        let environment = |name: &str| match name {
            "SET" => Some("s$$s".into()),
            "AUTH" => Some("Bearer ${env:SET}".into()),
            _ => None,
        };
        let (set, auth) = (("SET", "s$s"), ("AUTH", "Bearer s$s"));
        for (exporters, wanted) in [
            ("{e: {headers: {A: '${env:SET:-x} ${SET}'}}}", &[set, (" ", "s$s"), ("", "s$s s$s")][..]),
            ("{e: {headers: {A: '${file:/token}'}}}", &[("file:/token", "t"), ("", "t")]),
            ("{e: {headers: {A: '${env:NO:-d}${env:NO:-d}'}}}", &[("NO", "d"), ("", "dd")]),
            ("{e: {headers: {A: '${env:LACKS}${env:LACKS:-d}'}}}", &[("LACKS", "d"), ("", "d")]),
            ("{e: {headers: {A: '${yaml:text}'}}}", &[("", "text")]),
            ("{e: {headers: {A: '${env:AUTH}'}}}", &[auth, set, (" ", "s$s"), ("", "Bearer s$s")]),
            ("{e: {headers: {A: '${AUTH}'}}}", &[auth, set, (" ", "s$s"), ("", "Bearer s$s")]),
            ("{e: {headers: [{name: '${file:/token}', value: '${env:SET}'}]}}", &[set, ("", "s$s")]),
            ("{e: {headers: {A: in place, B: '$${env:SET}'}, endpoint: '${env:SET}'}}", &[]),
            ("'${file:/exporters}'", &[auth, set, (" ", "Bearer s$s"), ("", "Basic Bearer s$s")]),
            ("{headers: {headers: '${env:SET}'}}", &[set, ("", "s$s")]),
        ] {
            let expanded = read_with(&[format!("yaml:exporters: {exporters}").as_str().into()], &environment, &file);
            let expanded = expanded.unwrap_or_else(|problems| panic!("{exporters}: {problems}"));
            let name = |secret: &Credential| match secret.variable.strip_prefix("header:exporters.") {
                Some(path) => if path.ends_with(" word") { " " } else { "" }.to_owned(),
                None => secret.variable.clone(),
            };
            let mut found: Vec<_> =
                expanded.credentials.iter().map(|secret| (name(secret), secret.value.clone())).collect();
            found.dedup();
            let wanted: Vec<_> = wanted.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(found, wanted, "{exporters}");
            assert_eq!(expanded.unset, if exporters.contains("LACKS") { vec!["LACKS"] } else { vec![] }, "{exporters}");
        }
        let expanded = read_with(&["yaml:exporters: {e: {headers: '${file:/headers}'}}".into()], &environment, &file);
        let names: Vec<String> =
            expanded.expect("reads").credentials.into_iter().map(|secret| secret.variable).collect();
        let (a, b) = ("header:exporters.e.headers.A", "header:exporters.e.headers.B");
        let without = |path: &str| format!("{path} without its first word");
        assert_eq!(names, ["SET", "file:/headers", &without(a), a, &without(b), b]);
    }

    #[test]
    fn a_problem_is_said_with_the_file_where_it_stands() {
        let sources = ["yaml:receivers: {}".into(), "yaml:\n\nreceivers: {nope: }".into()];
        let problems = load(&sources, &|_| None).err().expect("problems").to_string();
        assert!(problems.contains("unknown receiver type `nope`") && problems.contains("<yaml>:3"), "{problems}");
    }
}
