//! `--set key.path=value`: the top layer.

use indexmap::IndexMap;

use super::interpolate::Reading;
use super::merge::merge;
use super::node::{Node, NodeValue};
use super::read::read_value;
use crate::diag::{Location, Problem, Problems};

/// The place of what the command line says.
pub const COMMAND_LINE: &str = "<command line>";

/// All `--set` arguments as one layer; a later one wins. An empty mapping if there is none.
pub fn settings(arguments: &[String], reading: Reading<'_>) -> Result<Node, Problems> {
    let mut problems = Problems::new();
    let mut layer = map(IndexMap::new());
    for argument in arguments {
        match setting(argument, reading) {
            Ok(node) => layer = merge(layer, node),
            Err(found) => problems.extend(found),
        }
    }
    problems.into_result(layer)
}

fn map(entries: IndexMap<String, Node>) -> Node {
    Node { value: NodeValue::Map(entries), location: Location::file(COMMAND_LINE) }
}

fn setting(argument: &str, reading: Reading<'_>) -> Result<Node, Problems> {
    let wrong = |message: String| {
        Problem::new(message)
            .in_file(Location::file(COMMAND_LINE))
            .hint("--set key.path=value; a part with a dot stands in double quotes: otel.headers.\"a.b\"=x")
    };
    let (path, value) = split(argument).map_err(|reason| wrong(format!("--set `{argument}`: {reason}")))?;
    // Scratch keys are for files; here a leading `_` would lose the value.
    if path[0].starts_with('_') {
        return Err(wrong(format!("--set `{argument}`: `{}` is a scratch key and sets nothing", path[0])).into());
    }
    let dotted = path.join(".");
    let mut node = read_value(value, COMMAND_LINE, &dotted, reading).map_err(|found| {
        let mut problems = Problems::new();
        for mut problem in found {
            problem.location = Location::file(COMMAND_LINE);
            if problem.path.is_empty() {
                problem.path.clone_from(&dotted);
            }
            problems.push(problem);
        }
        problems
    })?;
    flatten(&mut node);
    for key in path.into_iter().rev() {
        node = map(IndexMap::from([(key, node)]));
    }
    Ok(node)
}

/// A line of an argument is no line of a file.
fn flatten(node: &mut Node) {
    node.location = Location::file(COMMAND_LINE);
    match &mut node.value {
        NodeValue::List(items) => items.iter_mut().for_each(flatten),
        NodeValue::Map(map) => map.values_mut().for_each(flatten),
        _ => {}
    }
}

/// The keys of the path and the text of the value.
fn split(argument: &str) -> Result<(Vec<String>, &str), &'static str> {
    let mut path = Vec::new();
    let mut rest = argument;
    loop {
        let (key, after) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted.split_once('"').ok_or("a quote is not closed")?
        } else {
            let end = rest.find(['.', '=']).ok_or("there is no `=`")?;
            rest.split_at(end)
        };
        if key.is_empty() {
            return Err("a part of the path is empty");
        }
        if !rest.starts_with('"') && key.ends_with(']') && key.contains('[') {
            return Err("a list is set as a whole, `key=[a, b]`, not by item");
        }
        path.push(key.to_owned());
        match after.chars().next() {
            Some('.') => rest = &after[1..],
            Some('=') => return Ok((path, &after[1..])),
            _ => return Err("after a quoted part comes `.` or `=`"),
        }
    }
}
