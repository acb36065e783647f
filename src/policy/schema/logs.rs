//! `log`, `log_max_bytes` and `log_keep` of a process.

use super::fields::Fields;
use super::value::{entries, literal};
use crate::diag::{Problem, Problems};
use crate::inputs::{Node, NodeValue, merge};
use crate::plan::{LogMode, Rotation};

/// Who owns the log of the process at `path`, and when a new one is begun.
pub fn log(fields: &Fields<'_>, path: &str, default: LogMode, problems: &mut Problems) -> (LogMode, Option<Rotation>) {
    let mode = match fields.text("log").as_deref() {
        Some("pipe") => LogMode::Pipe,
        Some("file") => LogMode::File,
        _ => default,
    };
    let wrong =
        |key: &str, message: &str| Problem::new(message).at(format!("{path}.{key}")).in_file(fields.location(key));
    if fields.said("log_max_bytes").is_none() {
        if fields.said("log_keep").is_some() {
            let problem = wrong("log_keep", "there are no older logs to keep: nothing says when a new one is begun");
            problems.push(problem.hint("give it `log_max_bytes` too, or leave `log_keep` out"));
        }
        return (mode, None);
    }
    if mode == LogMode::File {
        let hint = "write `log = \"pipe\"` too, or leave `log_max_bytes` out";
        problems.push(wrong("log_max_bytes", "`log_max_bytes` needs `log = \"pipe\"`").hint(hint));
        return (mode, None);
    }
    (mode, Some(Rotation { max_bytes: fields.int("log_max_bytes"), keep: fields.int("log_keep") }))
}

/// `layer` of `process_defaults` over those below it. One that says `log = "file"` has no use for their rotation.
pub fn stack(mut below: Node, layer: Node) -> Node {
    give_up_rotation(&mut below, &layer);
    merge(below, layer)
}

/// Takes the rotation out of the layers below one that says `log = "file"`.
pub fn give_up_rotation(below: &mut Node, layer: &Node) {
    let owns_its_log = entries(layer).and_then(|map| map.get("log")).and_then(literal) == Some("file");
    if let NodeValue::Map(map) = &mut below.value
        && owns_its_log
    {
        map.shift_remove("log_max_bytes");
        map.shift_remove("log_keep");
    }
}

/// Takes away a `log_keep` of the defaults where nothing says when a new log is begun: it was meant for others.
pub fn settle_keep(below: &mut Node, own: Option<&Node>) {
    let rotates = |node: &Node| entries(node).is_some_and(|map| map.contains_key("log_max_bytes"));
    if !rotates(below)
        && !own.is_some_and(rotates)
        && let NodeValue::Map(map) = &mut below.value
    {
        map.shift_remove("log_keep");
    }
}
