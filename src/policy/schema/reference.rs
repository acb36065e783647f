//! The reference of keys in `docs/`, written from the tables.

use std::fmt::Write as _;

use super::kinds::{Default, Key, Keys, Table, Type};
use super::tables::ALL;

/// The text of `docs/reference/keys.md`.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(
        "# Keys of jobs and site fragments\n\n\
         Written from the tables that gymrun checks with; `GYMRUN_BLESS=1 cargo test --test inputs` rewrites it.\n\n\
         A table that is described elsewhere on this page is named by its title. Late text may hold what is known at launch \
         only (`${port:x}`, `gym.url`); a secret may stand where it says so.\n",
    );
    for table in ALL {
        section(&mut out, table);
    }
    out
}

fn section(out: &mut String, table: &Table) {
    let _ = write!(out, "\n## {}\n\n", table.title);
    let process_keys = ALL.iter().find(|other| other.title == "Every process");
    // The keys of every process are listed once, unless this table says something of its own about one.
    let is_shared = |key: &Key| {
        table.title != "Every process"
            && process_keys
                .and_then(|other| other.key(key.name))
                .is_some_and(|other| (other.doc, other.later, default(other)) == (key.doc, key.later, default(key)))
    };
    let own: Vec<&Key> = table.keys().filter(|key| !key.later && !is_shared(key)).collect();
    if own.is_empty() {
        out.push_str("The keys of every process");
    } else {
        out.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
        for key in own {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} |",
                key.name,
                cell(&described(&key.takes)),
                cell(&default(key)),
                cell(key.doc)
            );
        }
    }
    if table.keys().any(is_shared) {
        out.push_str(if table.keys().all(|key| key.later || is_shared(key)) {
            ""
        } else {
            "\nAnd the keys of every process"
        });
        let without: Vec<String> = process_keys
            .into_iter()
            .flat_map(|other| other.keys())
            .filter(|key| !key.later && table.key(key.name).is_none())
            .map(|key| format!("`{}`", key.name))
            .collect();
        if !without.is_empty() {
            let _ = write!(out, ", but {}", without.join(", "));
        }
        out.push_str(".\n");
    }
    let later: Vec<String> =
        table.keys().filter(|key| key.later && !is_shared(key)).map(|key| format!("`{}`", key.name)).collect();
    if !later.is_empty() {
        let _ = writeln!(out, "\nNot supported yet: {}.", later.join(", "));
    }
}

fn default(key: &Key) -> String {
    match key.default {
        Default::Required => "required".into(),
        Default::Value(value) => format!("`{}`", if value.is_empty() { "\"\"" } else { value }),
        Default::Note("{}") => "`{}`".into(),
        Default::Note("") => "none".into(),
        Default::Note(note) => note.into(),
    }
}

fn described(takes: &Type) -> String {
    match takes {
        Type::Text(rule) | Type::Document(rule) => {
            let mut words = vec!["text"];
            if rule.integers {
                words.push("int");
            }
            if rule.late {
                words.push("late");
            }
            if rule.secret {
                words.push("secret");
            }
            words.join(", ")
        }
        Type::Int(min, max) => match (*min, *max) {
            (i64::MIN, _) => "int".into(),
            (min, max) if max >= i64::from(u32::MAX) => format!("int >= {min}"),
            (min, max) => format!("int, {min} to {max}"),
        },
        Type::LatePort => "int, late".into(),
        Type::Num(true) => "num > 0".into(),
        Type::Num(false) => "num >= 0".into(),
        Type::Bool => "bool".into(),
        Type::Off => "`false`".into(),
        Type::Null => "`null`".into(),
        Type::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Type::Name | Type::JobName => "name".into(),
        Type::Variable => "name of a variable".into(),
        Type::Port => "port".into(),
        Type::PortRange => "range of ports".into(),
        Type::Status => "int or `\"200-299\"`".into(),
        Type::Signal => "`TERM`, `INT`, `QUIT`, `HUP`, `USR1`, `USR2`".into(),
        Type::Path => "path".into(),
        Type::Words => "text split as a shell does".into(),
        Type::List(of) => format!("list of {}", described(of)),
        Type::Map(keys, of) => {
            let keys = match keys {
                Keys::Any => "map",
                Keys::Names => "map by name",
                Keys::Variables => "map by variable",
                Keys::Files => "map by file name",
            };
            format!("{keys} of {}", described(of))
        }
        Type::Table(table) => format!("table ({})", table.title),
        Type::Choice(choice) => {
            let names: Vec<String> = choice.tables.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("table by `type`: {}", names.join(", "))
        }
        Type::Tree => "anything".into(),
        Type::Function => "function".into(),
        Type::OneOf(types) => types.iter().map(described).collect::<Vec<_>>().join(", or "),
    }
}

/// Text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
