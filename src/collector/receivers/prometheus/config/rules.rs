//! Relabelling as it is written.

use super::super::relabel::{Action, Names, Pattern, Rule};
use super::scalars;
use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::diag::Problem;

/// The rules at a key.
pub fn rules(job: &mut Section<'_>, key: &'static str, names: Names) -> Vec<Rule> {
    let read = job.sections(key, |section| rule(section, names));
    read.unwrap_or_default().into_iter().flatten().collect()
}

const ACTIONS: [&str; 11] = [
    "replace",
    "keep",
    "drop",
    "hashmod",
    "labelmap",
    "labeldrop",
    "labelkeep",
    "lowercase",
    "uppercase",
    "keepequal",
    "dropequal",
];

/// What may stand in a rule beside its action.
struct Written {
    sources: Option<Vec<String>>,
    separator: Option<String>,
    pattern: Option<Pattern>,
    /// Whether a pattern was written, a wrong one included.
    has_pattern: bool,
    modulus: Option<u64>,
    target: Option<String>,
    replacement: Option<String>,
}

/// Up to 2^64 - 1: what is above the signed range, YAML does not have as an integer.
fn modulus(section: &mut Section<'_>) -> Option<u64> {
    let large = section.node("modulus").filter(|node| matches!(node.value, Value::Untakable(_)));
    large
        .and_then(Node::as_written)
        .and_then(|text| text.parse().ok())
        .or_else(|| section.integer("modulus", 0).filter(|modulus| *modulus > 0).map(i64::unsigned_abs))
}

fn rule(section: &mut Section<'_>, names: Names) -> Option<Rule> {
    let word = action(section);
    let has_pattern = section.node("regex").is_some();
    let written = Written {
        sources: sources(section),
        separator: section.node("separator").and_then(scalars::text_of),
        pattern: pattern(section),
        has_pattern,
        modulus: modulus(section),
        target: scalars::filled(section, "target_label"),
        replacement: section.node("replacement").and_then(scalars::text_of),
    };
    let word = word?;
    check_keys(section, word, &written, names)?;
    let Written { sources, separator, pattern, modulus, target, replacement, .. } = written;
    let pattern = pattern.or_else(|| if has_pattern { None } else { Pattern::new("(.*)").ok() })?;
    let replacement = replacement.unwrap_or_else(|| "$1".into());
    let target = target.unwrap_or_default();
    let action = match word {
        "replace" => Action::Replace { pattern, target, replacement },
        "keep" => Action::Keep(pattern),
        "drop" => Action::Drop(pattern),
        "hashmod" => Action::HashMod { target, modulus: modulus? },
        "labelmap" => Action::LabelMap { pattern, replacement },
        "labeldrop" => Action::LabelDrop(pattern),
        "labelkeep" => Action::LabelKeep(pattern),
        "lowercase" => Action::Lowercase(target),
        "uppercase" => Action::Uppercase(target),
        "keepequal" => Action::KeepEqual(target),
        _ => Action::DropEqual(target),
    };
    Some(Rule {
        sources: sources.unwrap_or_default(),
        separator: separator.unwrap_or_else(|| ";".into()),
        action,
        names,
    })
}

/// The action, in any case; `replace` if there is none.
fn action(section: &mut Section<'_>) -> Option<&'static str> {
    let Some(node) = section.node("action") else { return Some("replace") };
    let text = scalars::text_of(node).unwrap_or_default();
    let word = ACTIONS.into_iter().find(|action| *action == text.to_lowercase());
    if word.is_none() {
        section.problem("action", Problem::new(format!("`{text}` is no action of a rule")).suggest(&text, ACTIONS));
    }
    word
}

fn sources(section: &mut Section<'_>) -> Option<Vec<String>> {
    let names = scalars::texts(section, "source_labels")?;
    if names.iter().any(String::is_empty) {
        section.problem("source_labels", Problem::new("the empty text is no name of a label"));
    }
    Some(names)
}

fn pattern(section: &mut Section<'_>) -> Option<Pattern> {
    let node = section.node("regex")?;
    let text = scalars::text_of(node);
    let compiled = text.map_or_else(|| Err(format!("found {}", node.kind())), |text| Pattern::new(&text));
    match compiled {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            section.problem("regex", Problem::new(format!("`regex` is no pattern: {why}")));
            None
        }
    }
}

/// Whether the rule has what its action needs and nothing else; `None` after a problem.
fn check_keys(section: &Section<'_>, word: &str, written: &Written, names: Names) -> Option<()> {
    let problem = |key: &str, text: String| {
        section.problem(key, Problem::new(text));
        None
    };
    let (plain_separator, plain_replacement) = (
        written.separator.as_deref().is_none_or(|text| text == ";"),
        written.replacement.as_deref().is_none_or(|text| text == "$1"),
    );
    let target = written.target.as_deref();
    if matches!(word, "replace" | "hashmod" | "lowercase" | "uppercase" | "keepequal" | "dropequal") {
        let Some(target) = target else {
            section.problem_here(Problem::new(format!("`{word}` needs a `target_label`")));
            return None;
        };
        let template = word == "replace" && target.contains('$');
        if if template { !is_template(target, names) } else { !names.allow_label(target) } {
            return problem("target_label", format!("`{target}` is no name of a label"));
        }
    }
    match word {
        "hashmod" if written.modulus.is_none() => {
            section.problem_here(Problem::new("`hashmod` needs a `modulus` above 0"));
            None
        }
        "lowercase" | "uppercase" if !plain_replacement => {
            problem("replacement", format!("`{word}` has no `replacement`"))
        }
        "keepequal" | "dropequal"
            if written.has_pattern || written.modulus.is_some() || !plain_separator || !plain_replacement =>
        {
            section.problem_here(Problem::new(format!("`{word}` has `source_labels` and `target_label` only")));
            None
        }
        "labeldrop" | "labelkeep"
            if written.sources.is_some()
                || target.is_some()
                || written.modulus.is_some()
                || !plain_separator
                || !plain_replacement =>
        {
            section.problem_here(Problem::new(format!("`{word}` has a `regex` only")));
            None
        }
        "labelmap" => {
            let replacement = written.replacement.as_deref().unwrap_or("$1");
            if is_template(replacement, names) {
                Some(())
            } else {
                problem("replacement", format!("`{replacement}` makes no name of a label"))
            }
        }
        _ => Some(()),
    }
}

/// Whether a template may make a name: for legacy names, it has letters, digits, `_` and references only.
fn is_template(template: &str, names: Names) -> bool {
    if names == Names::Utf8 {
        return !template.is_empty();
    }
    let shape = crate::collector::text::pattern::compile(r"^(?:(?:[a-zA-Z_]|\$(?:\{\w+\}|\w+))+\w*)+$");
    shape.is_ok_and(|shape| shape.is_match(template))
}
