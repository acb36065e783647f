//! Values that hooks take and return, in their table forms and as results of functions.

use indexmap::IndexMap;

use super::check::{check, table};
use super::fields::{Fields, late, words};
use super::kinds::{ARGUMENT, Keys, Type};
use super::otel::empty;
use super::path::{Path, below};
use super::process::{environment, labels};
use super::tables::{self, HOOKS, TARGET};
use super::value::{entries, int, items, literal, tree};
use crate::diag::{Problem, Problems};
use crate::inputs::{Node, NodeValue};
use crate::plan::{Text, Tree};
use crate::policy::spec::{EnvSpec, Hook, HookForm, HookSpec, Placed, TargetSpec};

/// Takes the hooks out of a fragment's keys and checks them.
pub fn take(keys: &mut IndexMap<String, Node>, problems: &mut Problems) -> IndexMap<Hook, HookSpec> {
    let mut hooks = IndexMap::new();
    for key in HOOKS.keys() {
        let Some(node) = keys.shift_remove(key.name) else { continue };
        if node.value == NodeValue::Unset {
            continue;
        }
        let alone = Node { value: NodeValue::Map([(key.name.to_owned(), node)].into()), location: empty().location };
        table(&alone, &HOOKS, &Path::Of(""), problems);
        let Some(node) = entries(&alone).and_then(|map| map.get(key.name)) else { continue };
        if let Some(hook) = Hook::ALL.into_iter().find(|hook| hook.name() == key.name) {
            hooks.insert(hook, HookSpec { form: form(hook, node), location: node.location.clone() });
        }
    }
    hooks.sort_keys();
    hooks
}

fn form(hook: Hook, node: &Node) -> HookForm {
    if let NodeValue::Function(function) = node.value {
        return HookForm::Function(function);
    }
    match hook {
        Hook::Attributes => HookForm::Attributes(typed_attributes(Some(node))),
        Hook::Scrape => HookForm::Scrape(typed_targets(node)),
        Hook::Environment => HookForm::Environment(environment(Some(node))),
        Hook::Launch => {
            HookForm::Launch { prefix: entries(node).and_then(|map| map.get("prefix")).map(words).unwrap_or_default() }
        }
        Hook::Collector => HookForm::Collector(tree(node, &mut no_peer)),
    }
}

/// Outside of `config` there is no peer; the check has said so.
pub fn no_peer(_: &str) -> Tree {
    Tree::Null
}

fn checked<T>(node: &Node, takes: &Type, path: &str, read: impl FnOnce(&Node) -> T) -> Result<T, Problems> {
    let mut problems = Problems::new();
    check(node, takes, &Path::Of(path), &mut problems);
    problems.into_result(()).map(|()| read(node))
}

/// What the hook `attributes` returned, at `path` (`attributes`).
pub fn attributes(node: &Node, path: &str) -> Result<IndexMap<String, Placed<Tree>>, Problems> {
    checked(node, &tables::ATTRIBUTES, path, |node| typed_attributes(Some(node)))
}

/// What the hook `scrape` returned.
pub fn targets(node: &Node, path: &str) -> Result<Vec<TargetSpec>, Problems> {
    let mut problems = Problems::new();
    check(node, &tables::TARGETS, &Path::Of(path), &mut problems);
    check_targets(node, path, &mut problems);
    problems.into_result(()).map(|()| typed_targets(node))
}

/// What the hook `environment` returned.
pub fn variables(node: &Node, path: &str) -> Result<IndexMap<String, EnvSpec>, Problems> {
    checked(node, &tables::ENV, path, |node| environment(Some(node)))
}

/// What the hook `launch` returned: argv, never empty.
pub fn arguments(node: &Node, path: &str) -> Result<Vec<Text>, Problems> {
    let argv = checked(node, &Type::List(&ARGUMENT), path, words)?;
    if argv.is_empty() {
        return Err(Problem::new("argv is empty").at(path).in_file(node.location.clone()).into());
    }
    Ok(argv)
}

/// What the hook `collector` returned: a document.
pub fn document(node: &Node, path: &str) -> Result<Tree, Problems> {
    checked(node, &Type::Map(Keys::Any, &Type::Tree), path, |node| tree(node, &mut no_peer))
}

/// `attributes`: text, integers and booleans, with their places.
pub fn typed_attributes(node: Option<&Node>) -> IndexMap<String, Placed<Tree>> {
    let entries = node.and_then(entries).into_iter().flatten();
    entries
        .filter_map(|(name, node)| {
            let value = match tree(node, &mut no_peer) {
                // A plain `1.50` is text here: attributes are no floating-point numbers.
                Tree::Float(_) => Tree::Text(late(node)?),
                value @ (Tree::Int(_) | Tree::Bool(_)) => value,
                Tree::Text(text) if !text.has_secret() => Tree::Text(text),
                // The check has said that this is none.
                _ => return None,
            };
            Some((name.clone(), Placed { value, location: node.location.clone() }))
        })
        .collect()
}

/// Each target says where it is: `targets`, or `port`.
pub fn check_targets(node: &Node, path: &str, problems: &mut Problems) {
    for (index, node) in items(node).unwrap_or_default().iter().enumerate() {
        let Some(map) = entries(node) else { continue };
        let wrong =
            |message: &str| Problem::new(message).at(format!("{path}[{}]", index + 1)).in_file(node.location.clone());
        match (map.contains_key("targets"), map.contains_key("port")) {
            (true, true) => problems.push(wrong("`targets` and `port` are both there").hint("keep one")),
            (false, false) => {
                problems.push(
                    wrong("the target has neither `targets` nor `port`").hint("`targets`: a list of `host:port`"),
                );
            }
            (true, false) if map.contains_key("nodes") => {
                problems.push(wrong("`nodes` belongs to `port`, not to `targets`"));
            }
            _ => {}
        }
        let secret = |key: &str| below(&format!("{path}[{}]", index + 1), key);
        for (key, value) in map {
            if let NodeValue::Text(text) = &value.value
                && text.has_secret()
            {
                problems
                    .push(Problem::new("a secret is not allowed here").at(secret(key)).in_file(value.location.clone()));
            }
        }
    }
}

/// Targets typed.
pub fn typed_targets(node: &Node) -> Vec<TargetSpec> {
    items(node).unwrap_or_default().iter().map(target).collect()
}

fn target(node: &Node) -> TargetSpec {
    let fields = Fields::new(node, &TARGET);
    let trees = |key: &str| fields.items(key).iter().map(relabel).collect();
    TargetSpec {
        location: node.location.clone(),
        job_name: fields.text("job_name").unwrap_or_default(),
        targets: fields.items("targets").iter().filter_map(late).collect(),
        port: fields.maybe_int("port"),
        nodes: fields.text("nodes").unwrap_or_default(),
        labels: labels(fields.entries("labels")),
        scrape_interval_seconds: fields.maybe_int("scrape_interval_seconds"),
        metrics_path: fields.text("metrics_path"),
        scheme: fields.text("scheme"),
        params: fields
            .entries("params")
            .map(|(name, node)| {
                let values = items(node).unwrap_or_default().iter();
                (name.to_owned(), values.filter_map(|item| late(item)?.as_literal().map(str::to_owned)).collect())
            })
            .collect(),
        honor_labels: fields.said("honor_labels").and_then(super::value::boolean),
        bearer_env: fields.text("bearer_env"),
        relabel_configs: trees("relabel_configs"),
        metric_relabel_configs: trees("metric_relabel_configs"),
    }
}

/// A step of relabelling: text stays text whatever it looks like, only `modulus` is a number.
fn relabel(node: &Node) -> Tree {
    let entries = entries(node).into_iter().flatten();
    let value = |key: &str, node: &Node| match (key, int(node)) {
        ("modulus", Some(number)) => Tree::Int(number),
        ("source_labels", _) => {
            let labels = items(node).unwrap_or_default().iter().filter_map(literal);
            Tree::List(labels.map(|label| Tree::Text(label.into())).collect())
        }
        _ => Tree::Text(literal(node).unwrap_or_default().into()),
    };
    Tree::Map(entries.map(|(key, node)| (key.clone(), value(key, node))).collect())
}
