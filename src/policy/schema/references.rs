//! References that lead nowhere: processes, ports and peers that are not there, secrets that are not set.

use super::path::Path;
use super::processes::Built;
use crate::diag::{Location, Problem, Problems};
use crate::inputs::{Node, NodeValue, World};
use crate::plan::{COLLECTOR, Reference, Text};
use crate::policy::spec::ProcessSpec;

/// What can be referred to.
pub struct References<'a> {
    /// Services and servers, and the driver.
    pub processes: &'a [Built],
    /// Whether there is a collector.
    pub collector: bool,
    /// Names of `files`.
    pub files: Vec<&'a str>,
    /// Where secrets are looked up.
    pub world: &'a World,
}

impl References<'_> {
    /// Everything below `node`, which stands at `path` and belongs to the process `owner`, if to any.
    pub fn check(&self, node: &Node, path: &Path<'_>, owner: Option<&ProcessSpec>, problems: &mut Problems) {
        match &node.value {
            NodeValue::Text(text) => self.text(text, path, &node.location, owner, problems),
            NodeValue::Encoded { value, .. } => {
                value.visit_texts(&mut |text| self.text(text, path, &node.location, owner, problems));
            }
            NodeValue::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.check(item, &path.item(index), owner, problems);
                }
            }
            NodeValue::Map(map) => {
                for (key, value) in map {
                    self.check(value, &path.key(key), owner, problems);
                }
            }
            NodeValue::Peer(name) => {
                let servers = || {
                    let specs = self.processes.iter().map(|built| &built.spec);
                    specs.filter(|spec| spec.kind == crate::plan::Kind::Server).map(|spec| spec.name.as_str())
                };
                if !servers().any(|server| server == name) {
                    problems.push(
                        Problem::new(format!("gym.peer: there is no server `{name}`"))
                            .at(path)
                            .in_file(node.location.clone())
                            .suggest(name, servers()),
                    );
                }
            }
            _ => {}
        }
    }

    fn text(
        &self,
        text: &Text,
        path: &Path<'_>,
        location: &Location,
        owner: Option<&ProcessSpec>,
        problems: &mut Problems,
    ) {
        for reference in text.references() {
            if let Some(problem) = self.reference(reference, owner) {
                problems.push(problem.at(path).in_file(location.clone()));
            }
        }
        self.file(text, path, location, problems);
    }

    /// `gym.file`, `${file:F}`: the job directory and `/files/F`.
    fn file(&self, text: &Text, path: &Path<'_>, location: &Location, problems: &mut Problems) {
        let segments = text.segments();
        for pair in segments.windows(2) {
            let [crate::plan::Segment::Reference(Reference::JobDir), crate::plan::Segment::Literal(after)] = pair
            else {
                continue;
            };
            let Some(file) = after.strip_prefix("/files/") else { continue };
            let known = |name: &&str| file.strip_prefix(*name).is_some_and(|rest| !rest.starts_with(is_of_a_name));
            if !self.files.iter().any(known) {
                problems.push(
                    Problem::new(format!("there is no file `{file}` in `files`"))
                        .at(path)
                        .in_file(location.clone())
                        .suggest(file, self.files.iter().copied()),
                );
            }
        }
    }

    fn reference(&self, reference: &Reference, owner: Option<&ProcessSpec>) -> Option<Problem> {
        match reference {
            Reference::Secret { name, default: None } | Reference::Inherited { name, default: None } => {
                let missing = self.world.look_up_secrets && self.world.variable(name).is_none();
                let what = if matches!(reference, Reference::Secret { .. }) { "secret" } else { "variable" };
                return missing.then(|| {
                    Problem::new(format!("the {what} `{name}` is not set in gymrun's environment"))
                        .hint(format!("set it: `export {name}=...`"))
                });
            }
            _ => {}
        }
        let name = reference.process()?;
        if name == COLLECTOR && self.collector {
            return None;
        }
        let spec = if name == "self" {
            let Some(owner) = owner else {
                return Some(
                    Problem::new(format!("`{reference}`: `self` is nobody outside of a process"))
                        .hint("name the process"),
                );
            };
            owner
        } else {
            let specs = || self.processes.iter().map(|built| &built.spec);
            let Some(spec) = specs().find(|spec| spec.name == name) else {
                return Some(
                    Problem::new(format!("`{reference}`: there is no process `{name}`"))
                        .suggest(name, specs().map(|spec| spec.name.as_str()).collect::<indexmap::IndexSet<_>>()),
                );
            };
            spec
        };
        match reference {
            Reference::Port { key: Some(key), .. } if !spec.ports.contains_key(key) => Some(
                Problem::new(format!("`{reference}`: `{}` has no port `{key}` in `ports`", spec.name))
                    .suggest(key, spec.ports.keys().map(String::as_str)),
            ),
            Reference::Port { key: None, .. } | Reference::Url { .. } if spec.port.is_none() => Some(
                Problem::new(format!("`{reference}`: `{}` has no port", spec.name))
                    .hint(format!("`{}.port`", spec.path)),
            ),
            _ => None,
        }
    }
}

/// Whether a file's name could go on with this character.
fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}
