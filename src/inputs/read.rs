//! A YAML file as a [`Node`].

use indexmap::IndexMap;

use super::interpolate::{Reading, interpolate};
use super::node::{Node, NodeValue};
use crate::diag::{Problem, Problems};
use crate::plan::Text;
use crate::yaml::{self, Yaml, YamlValue};

/// Reads a job or a fragment in YAML: scratch keys of the root (those that begin with `_`) are left out, `!unset` and
/// `!off` mean what Lua's `gym.unset` and `false` mean, and `${...}` is read (see [`interpolate`]).
pub fn read_yaml(text: &str, file: &str, reading: Reading<'_>) -> Result<Node, Problems> {
    let mut problems = Problems::new();
    let node = read_yaml_beside(text, file, reading, &mut problems)?;
    problems.into_result(node)
}

/// The same, where a value that cannot be read is no reason to stop: its problem goes to `problems` and its text stands
/// in its place, so that what else is wrong can be said beside it.
pub fn read_yaml_beside(
    text: &str,
    file: &str,
    reading: Reading<'_>,
    problems: &mut Problems,
) -> Result<Node, Problems> {
    let mut yaml = yaml::read(text, file)?;
    if let YamlValue::Map(map) = &mut yaml.value {
        map.retain(|key, _| !key.starts_with('_'));
    }
    Ok(convert(yaml, &mut String::new(), reading, problems))
}

/// Reads a value of the command line, which will stand at `path`; nothing in it is scratch.
pub fn read_value(text: &str, file: &str, path: &str, reading: Reading<'_>) -> Result<Node, Problems> {
    typed(yaml::read(text, file)?, path, reading)
}

fn typed(yaml: Yaml, path: &str, reading: Reading<'_>) -> Result<Node, Problems> {
    let mut problems = Problems::new();
    let node = convert(yaml, &mut path.to_owned(), reading, &mut problems);
    problems.into_result(node)
}

fn convert(yaml: Yaml, path: &mut String, reading: Reading<'_>, problems: &mut Problems) -> Node {
    let is_null = yaml.as_null();
    let location = yaml.location;
    if let Some(tag) = &yaml.tag {
        let empty = is_null || matches!(&yaml.value, YamlValue::Map(m) if m.is_empty());
        if !empty {
            problems.push(
                Problem::new(format!("`!{tag}` stands alone, without a value"))
                    .at(path.clone())
                    .in_file(location.clone()),
            );
        }
        let value = if tag == "unset" { NodeValue::Unset } else { NodeValue::Bool(false) };
        return Node { value, location };
    }
    let value = match yaml.value {
        YamlValue::Scalar { .. } if is_null => NodeValue::Null,
        YamlValue::Scalar { text, plain } => match interpolate(&text, reading) {
            // A plain scalar in which nothing is late can still be a number: `port: ${env:PORT}`.
            Ok(expanded) => match expanded.as_literal() {
                Some(literal) if plain => NodeValue::Plain(literal.to_owned()),
                _ => NodeValue::Text(expanded),
            },
            Err(problem) => {
                problems.push(problem.at(path.clone()).in_file(location.clone()));
                NodeValue::Text(Text::literal(text))
            }
        },
        YamlValue::List(items) => NodeValue::List(
            items
                .into_iter()
                .enumerate()
                .map(|(index, item)| below(path, &format!("[{}]", index + 1), |p| convert(item, p, reading, problems)))
                .collect(),
        ),
        YamlValue::Map(entries) => {
            let mut map = IndexMap::with_capacity(entries.len());
            for (key, value) in entries {
                let segment = if path.is_empty() { key.clone() } else { format!(".{key}") };
                let value = below(path, &segment, |p| convert(value, p, reading, problems));
                map.insert(key, value);
            }
            NodeValue::Map(map)
        }
    };
    Node { value, location }
}

/// Calls `inner` with a longer path.
fn below<T>(path: &mut String, segment: &str, inner: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    path.push_str(segment);
    let value = inner(path);
    path.truncate(length);
    value
}
