//! Checks of the values of a compiled draft: secrets that would be seen, variables that are not set, sizes.

use std::fmt::Arguments;

use super::compile::Names;
use super::job::Plan;
use super::process::VariableValue;
use super::text::{Reference, Segment, Text};
use super::tree::{Tree, Value};
use crate::diag::{Location, Problem, Problems};

/// Secrets stand nowhere where they would be seen: argv, files, attributes, labels.
pub(super) fn check_secrets(plan: &Plan, names: &Names, problems: &mut Problems) {
    let mut refuse = |text: &Text, path: &str, place: &Location| {
        for reference in text.references() {
            if let Reference::Secret { name, .. } = reference {
                problems.push(
                    Problem::new(format!("the secret `{name}` cannot stand here: it would be seen"))
                        .at(path)
                        .in_file(place.clone())
                        .hint("give it in `env`, and let the program read the variable"),
                );
            }
        }
    };
    for unit in &plan.units {
        for text in &unit.argv {
            refuse(text, &format!("{}.command", names.path(&unit.name)), &unit.location);
        }
    }
    for (name, value) in &plan.attributes {
        value.visit_texts(&mut |text| refuse(text, &format!("attributes.{name}"), &Location::default()));
    }
    for target in &plan.scrape {
        let path = format!("scrape.{}.labels", target.job_name);
        target.labels.values().chain(&target.targets).for_each(|text| refuse(text, &path, &Location::default()));
    }
    for file in &plan.files {
        let path = file.path.replacen("files/", "files.", 1);
        file.contents.visit_texts(&mut |text| refuse(text, &path, &file.location));
    }
}

/// The kernel takes no word of argv and no variable beyond this, its name and the final NUL included.
const MAXIMUM_WORD: usize = 128 * 1024;

/// Words and variables are not larger than what can be handed to a program; what is late is not counted.
pub(super) fn check_sizes(plan: &Plan, names: &Names, problems: &mut Problems) {
    for unit in &plan.units {
        let mut refuse = |size: usize, key: Arguments<'_>| {
            if size > MAXIMUM_WORD {
                problems.push(
                    Problem::new(format!(
                        "the value has {size} bytes; a program can be given at most 128 KiB in one piece"
                    ))
                    .at(format!("{}.{key}", names.path(&unit.name)))
                    .in_file(unit.location.clone())
                    .hint("write it to a file (`files`) and give the program its path (gym.file)"),
                );
            }
        };
        for word in &unit.argv {
            refuse(literal_size(word) + 1, format_args!("command"));
        }
        for (name, variable) in &unit.env {
            if let VariableValue::Set(value) = &variable.value {
                let mut size = name.len() + 2;
                match value {
                    Value::Text(text) => size += literal_size(text),
                    Value::Encoded { value, .. } => size += encoded_size(value),
                }
                refuse(size, format_args!("env.{name}"));
            }
        }
    }
}

fn literal_size(text: &Text) -> usize {
    let literal = |segment: &Segment| match segment {
        Segment::Literal(literal) => literal.len(),
        Segment::Reference(_) => 0,
    };
    text.segments().iter().map(literal).sum()
}

/// At least so many bytes a document has in any encoding.
fn encoded_size(tree: &Tree) -> usize {
    match tree {
        Tree::Null | Tree::Bool(_) | Tree::Int(_) | Tree::Float(_) => 1,
        Tree::Text(text) => literal_size(text),
        Tree::List(list) => list.iter().map(|item| encoded_size(item) + 1).sum(),
        Tree::Map(map) => map.iter().map(|(key, item)| key.len() + encoded_size(item) + 2).sum(),
    }
}

/// Secrets and runtime values without a default are there.
pub(super) fn check_variables(plan: &Plan, names: &Names, is_set: &impl Fn(&str) -> bool, problems: &mut Problems) {
    let mut look = |text: &Text, path: Arguments<'_>, place: &Location| {
        for reference in text.references() {
            let (Reference::Secret { name, default: None } | Reference::Inherited { name, default: None }) = reference
            else {
                continue;
            };
            if !is_set(name) {
                problems.push(
                    Problem::new(format!("the environment variable `{name}` is not set"))
                        .at(path.to_string())
                        .in_file(place.clone())
                        .hint(format!("export {name} before gymrun starts, or give a default")),
                );
            }
        }
    };
    for unit in &plan.units {
        let path = names.path(&unit.name);
        unit.visit_texts(|key, text| look(text, format_args!("{path}.{key}"), &unit.location));
    }
    for (name, value) in &plan.attributes {
        value.visit_texts(&mut |text| look(text, format_args!("attributes.{name}"), &Location::default()));
    }
    for file in &plan.files {
        let path = file.path.replacen("files/", "files.", 1);
        file.contents.visit_texts(&mut |text| look(text, format_args!("{path}"), &file.location));
    }
    for unit in &plan.units {
        for (key, variable) in &unit.env {
            let VariableValue::CollectorCopy { variable: name, default: None } = &variable.value else { continue };
            if !is_set(name) {
                problems.push(
                    Problem::new(format!("the environment variable `{name}` is not set"))
                        .at(format!("collector.env.{key}"))
                        .hint(format!("export {name} before gymrun starts")),
                );
            }
        }
    }
}
