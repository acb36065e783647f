//! Compares what people wrote with the tables of keys, and says everything that is wrong at once.

use super::kinds::{Choice, Default, Keys, Table, TextRule, Type};
use super::path::Path;
use super::value::{
    boolean, entries, found, int, is_name, is_off, is_variable, items, literal, num, port, port_range, status,
};
use crate::diag::{Location, Problem, Problems};
use crate::inputs::{Node, NodeValue};
use crate::plan::StopSignal;

/// Checks `node` at `path` against what a key takes.
pub fn check(node: &Node, takes: &Type, path: &Path<'_>, problems: &mut Problems) {
    let wrong = |message: String| Problem::new(message).at(path).in_file(node.location.clone());
    match takes {
        Type::Document(_) if matches!(node.value, NodeValue::Encoded { .. }) => {}
        Type::Text(rule) | Type::Document(rule) => text(node, *rule, takes, path, problems),
        Type::List(of) => list(node, takes, of, path, problems),
        Type::Map(keys, of) => map(node, takes, *keys, of, path, problems),
        Type::Table(of) => table(node, of, path, problems),
        Type::Choice(of) => choice(node, of, path, problems),
        Type::OneOf(types) => one_of(node, types, takes, path, problems),
        Type::Tree => tree(node, path, problems),
        Type::Word(words) => match literal(node) {
            Some(word) if words.contains(&word) => {}
            Some(word) => {
                problems.push(nearest(wrong(format!("{} is due, not `{word}`", takes.due())), word, words));
            }
            None => problems.push(not(node, takes, path)),
        },
        Type::Words => match literal(node) {
            None => problems.push(not(node, takes, path)),
            Some(words) => {
                if let Err(reason) = split_words(words) {
                    problems.push(wrong(reason).hint("write a list: each item is one argument"));
                }
            }
        },
        simple => {
            if is_good(node, simple) == Some(false) {
                problems.push(not(node, takes, path));
            }
        }
    }
}

/// Whether a value is what a type asks for; `None` if that takes more than a look.
fn is_good(node: &Node, simple: &Type) -> Option<bool> {
    Some(match simple {
        Type::Int(min, max) => int(node).is_some_and(|number| (*min..=*max).contains(&number)),
        Type::Num(above) => num(node).is_some_and(|number| number > 0.0 || (!above && number == 0.0)),
        Type::LatePort => match &node.value {
            NodeValue::Text(text) => text.as_literal().is_none() && !text.has_secret(),
            _ => int(node).is_some_and(|number| (1..=65535).contains(&number)),
        },
        Type::Bool => boolean(node).is_some(),
        Type::Off => is_off(node),
        Type::Null => node.value == NodeValue::Null,
        Type::Name => literal(node).is_some_and(|name| is_name(name, false)),
        Type::JobName => literal(node).is_some_and(|name| is_name(name, true)),
        Type::Variable => literal(node).is_some_and(is_variable),
        Type::Port => port(node).is_some(),
        Type::PortRange => literal(node).and_then(port_range).is_some(),
        Type::Status => status(node).is_some(),
        Type::Signal => literal(node).and_then(StopSignal::parse).is_some(),
        Type::Path => literal(node).is_some_and(|path| !path.is_empty()),
        Type::Function => matches!(node.value, NodeValue::Function(_)),
        _ => return None,
    })
}

/// With "did you mean" only: the message lists all words already.
fn nearest(problem: Problem, word: &str, words: &[&str]) -> Problem {
    match crate::diag::nearest(word, words.iter().copied()) {
        Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
        None => problem,
    }
}

/// "... is due, not ...", with what helps where it is a common slip.
fn not(node: &Node, takes: &Type, path: &Path<'_>) -> Problem {
    let problem = Problem::new(format!("{} is due, not {}", takes.due(), found(node)).replace(",, ", ", "))
        .at(path)
        .in_file(node.location.clone());
    match (&node.value, takes) {
        (NodeValue::Null, _) => problem.hint("leave the key out, or `!unset` to take away what lies below"),
        (NodeValue::Plain(text), Type::Int(..) | Type::Port)
            if text.starts_with('0') && text.trim_start_matches('0').parse::<i64>().is_ok() =>
        {
            problem.hint(format!("write `{}`, without the zeros in front", text.trim_start_matches('0')))
        }
        (NodeValue::Text(text), Type::Int(..) | Type::Num(_) | Type::Bool | Type::Port)
            if text.as_literal().is_some() =>
        {
            problem.hint("write it without quotes")
        }
        _ => problem,
    }
}

fn text(node: &Node, rule: TextRule, takes: &Type, path: &Path<'_>, problems: &mut Problems) {
    let wrong = |message: &str| Problem::new(message).at(path).in_file(node.location.clone());
    match &node.value {
        NodeValue::Plain(text) if text.is_empty() && !rule.empty => problems.push(not(node, takes, path)),
        NodeValue::Plain(_) => {}
        NodeValue::Int(_) if rule.integers => {}
        NodeValue::Text(text) => {
            if text.has_secret() && !rule.secret {
                problems.push(wrong("a secret is not allowed here").hint("pass it in `env` of the process"));
            } else if text.as_literal().is_none() && !rule.late {
                let message = format!("text that is known at launch only (`{text}`) is not allowed here");
                problems.push(wrong(&message).hint("pass it in `env` of the process"));
            } else if text.as_literal() == Some("") && !rule.empty {
                problems.push(not(node, takes, path));
            }
        }
        NodeValue::Int(_) | NodeValue::Bool(_) | NodeValue::Float(_) => {
            problems.push(not(node, takes, path).hint("text stands in quotes"));
        }
        NodeValue::Null if rule.empty => {
            problems.push(not(node, takes, path).hint("for empty text write `\"\"`"));
        }
        _ => problems.push(not(node, takes, path)),
    }
}

fn list(node: &Node, takes: &Type, of: &Type, path: &Path<'_>, problems: &mut Problems) {
    let Some(items) = items(node) else {
        let problem = not(node, takes, path);
        let one = !matches!(node.value, NodeValue::Map(_) | NodeValue::Null);
        problems.push(match one {
            true if path.to_string().ends_with(".command") => {
                problem.hint("each item is one argument; a line for a shell goes into `shell`")
            }
            true => problem.hint("a list of one: `[x]`, in Lua `{ x }`"),
            false => problem,
        });
        return;
    };
    for (index, item) in items.iter().enumerate() {
        let path = path.item(index);
        let wrong = |message: &str| Problem::new(message).at(&path).in_file(item.location.clone());
        match &item.value {
            NodeValue::Null => problems.push(wrong("a hole in the list: the item is null")),
            NodeValue::Unset => problems.push(wrong("a removal mark takes away keys, not items")),
            NodeValue::Bool(false) if !matches!(of, Type::Tree | Type::Bool) => {
                problems.push(wrong("`false` in a list").hint("leave the item out, or build the list with gym.args"));
            }
            _ => check(item, of, &path, problems),
        }
    }
}

fn map(node: &Node, takes: &Type, keys: Keys, of: &Type, path: &Path<'_>, problems: &mut Problems) {
    let Some(map) = entries(node) else {
        problems.push(not(node, takes, path));
        return;
    };
    for (key, value) in map {
        let path = path.key(key);
        let due = match keys {
            Keys::Names if !is_name(key, false) => Some(Type::Name.due()),
            Keys::Variables if !is_variable(key) => Some("the name of a variable (letters, digits, `_`)".into()),
            Keys::Files if !is_file_name(key) => Some("the name of a file below the job directory".into()),
            _ => None,
        };
        if let Some(due) = due {
            problems.push(
                Problem::new(format!("{due} is due as a key, not `{key}`")).at(&path).in_file(value.location.clone()),
            );
        }
        check(value, of, &path, problems);
    }
}

/// Checks the keys of a table, and each value.
pub fn table(node: &Node, table: &Table, path: &Path<'_>, problems: &mut Problems) {
    let Some(map) = entries(node) else {
        problems.push(not(node, &Type::Map(Keys::Any, &Type::Tree), path));
        return;
    };
    for (name, value) in map {
        let path = path.key(name);
        match table.key(name) {
            Some(key) if key.later => problems.push(not_yet(&path, &value.location)),
            Some(key) => check(value, &key.takes, &path, problems),
            None if table.leaves_out(name) => problems.push(
                Problem::new("the key is not one of this kind of process").at(&path).in_file(value.location.clone()),
            ),
            None => problems.push(
                Problem::new("unknown key")
                    .at(&path)
                    .in_file(value.location.clone())
                    .suggest(name, table.keys().filter(|key| !key.later).map(|key| key.name)),
            ),
        }
    }
    for key in table.keys().filter(|key| key.default == Default::Required) {
        if !map.contains_key(key.name) {
            let problem = Problem::new(format!("the key `{}` is missing: {}", key.name, key.doc));
            problems.push(problem.at(&path.key(key.name)).in_file(node.location.clone()));
        }
    }
}

fn not_yet(path: &Path<'_>, location: &Location) -> Problem {
    Problem::new("not supported yet").at(path).in_file(location.clone()).hint("a later version will know this key")
}

fn choice(node: &Node, choice: &Choice, path: &Path<'_>, problems: &mut Problems) {
    if let Some(chosen) = chosen(node, choice, path, problems) {
        table(node, chosen, path, problems);
    }
}

/// The table that the value's `type` asks for; what is wrong with the type is said.
pub fn chosen(node: &Node, choice: &Choice, path: &Path<'_>, problems: &mut Problems) -> Option<&'static Table> {
    let Some(map) = entries(node) else {
        problems.push(not(node, &Type::Map(Keys::Any, &Type::Tree), path));
        return None;
    };
    let names = || choice.tables.iter().map(|(name, _)| *name);
    let Some(said) = map.get("type") else {
        let Some(default) = choice.default else {
            let known = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            problems.push(
                Problem::new("the key `type` is missing")
                    .at(&path.key("type"))
                    .in_file(node.location.clone())
                    .hint(format!("one of {known}")),
            );
            return choice.only_table();
        };
        return choice.table(default);
    };
    let wrong = |message: String| Problem::new(message).at(&path.key("type")).in_file(said.location.clone());
    match literal(said) {
        Some(name) if choice.later.contains(&name) => {
            problems.push(wrong(format!("type `{name}` is not supported yet")));
            None
        }
        Some(name) => choice.table(name).or_else(|| {
            problems.push(wrong(format!("unknown type `{name}`")).suggest(name, names()));
            choice.only_table()
        }),
        None => {
            problems.push(wrong(format!("text is due, not {}", found(said))));
            choice.only_table()
        }
    }
}

fn one_of(node: &Node, types: &[Type], takes: &Type, path: &Path<'_>, problems: &mut Problems) {
    let attempt = |one: &Type| {
        let mut found = Problems::new();
        check(node, one, path, &mut found);
        found
    };
    let shaped = || types.iter().filter(|one| same_shape(node, one));
    // What would be wrong is made up only for what is wrong.
    if shaped().any(|one| is_good(node, one).unwrap_or_else(|| attempt(one).is_empty())) {
        return;
    }
    let mut attempts = shaped().map(|one| (one, attempt(one)));
    match (attempts.next(), attempts.next()) {
        // A list or a mapping can have been meant for one of them only, and so can what holds a reference.
        (Some((_, found)), None) if !is_scalar(node) => problems.extend(found),
        (Some((Type::Text(_) | Type::Document(_) | Type::Words, found)), _)
            if !matches!(node.value, NodeValue::Null | NodeValue::Bool(_)) =>
        {
            problems.extend(found);
        }
        (Some((Type::Document(_), found)), _) if node.value == NodeValue::Null => problems.extend(found),
        _ => problems.push(not(node, takes, path)),
    }
}

fn is_scalar(node: &Node) -> bool {
    !matches!(node.value, NodeValue::List(_) | NodeValue::Map(_) | NodeValue::Function(_))
}

/// Whether a value of this shape can have been meant for the type at all. `true` never means a text that can be off.
fn same_shape(node: &Node, takes: &Type) -> bool {
    match takes {
        Type::List(_) => matches!(node.value, NodeValue::List(_)) || items(node).is_some(),
        Type::Map(..) | Type::Table(_) | Type::Choice(_) => matches!(node.value, NodeValue::Map(_)),
        Type::Function => matches!(node.value, NodeValue::Function(_)),
        Type::Tree => true,
        Type::Text(_) | Type::Path | Type::Variable | Type::Words => is_scalar(node) && boolean(node) != Some(true),
        _ => is_scalar(node),
    }
}

fn tree(node: &Node, path: &Path<'_>, problems: &mut Problems) {
    let wrong = |message: &str| Problem::new(message).at(path).in_file(node.location.clone());
    match &node.value {
        NodeValue::Function(_) => problems.push(wrong("a function is allowed as a hook of a fragment only")),
        NodeValue::Float(number) if !number.is_finite() => {
            problems.push(wrong("a number is due that is not NaN and not infinite"));
        }
        NodeValue::List(items) => {
            for (index, item) in items.iter().enumerate() {
                tree(item, &path.item(index), problems);
            }
        }
        NodeValue::Map(map) => {
            for (key, value) in map {
                tree(value, &path.key(key), problems);
            }
        }
        _ => {}
    }
}

/// Whether `name` is a relative path that stays below where it begins.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Words as a shell splits them, from text in which a shell would do nothing else.
pub fn split_words(text: &str) -> Result<Vec<String>, String> {
    if let Some(c) = text.chars().find(|c| "$`;&<>(|".contains(*c)) {
        return Err(format!("`{c}` means something to a shell, and no shell reads this text"));
    }
    // Else what follows would be lost as a comment.
    if text.split_whitespace().any(|word| word.starts_with('#')) {
        return Err("`#` begins a comment for a shell, and no shell reads this text".to_owned());
    }
    shlex::split(text).ok_or_else(|| "a quote is not closed".to_owned())
}
