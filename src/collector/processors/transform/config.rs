//! What the processor is told: for each signal, groups of statements, or a flat list of them.

use std::sync::{Arc, Mutex};

use super::super::statements::{context, error_mode, inner_list, list, texts};
use super::processor::{Member, Settings};
use crate::collector::component::{EVERY_SIGNAL, Factory, Processor, Signals};
use crate::collector::config::node::Node;
use crate::collector::config::section::Section;
use crate::collector::ottl::{ErrorMode, Group, Level, Style};
use crate::diag::Problem;
use crate::otlp::{KeyValue, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Processor> =
    Factory { names: &["transform"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

#[expect(clippy::unnecessary_wraps, reason = "the shape of every `configure`")]
fn read(section: &mut Section<'_>) -> Option<Box<dyn Processor>> {
    if section.boolean("flatten_data") == Some(true) {
        section.problem("flatten_data", Problem::new("`flatten_data` is not supported by this collector"));
    }
    if list(section, "profile_statements").is_some_and(|items| !items.is_empty()) {
        section.problem("profile_statements", Problem::new("profiles are not supported by this collector"));
    }
    let mode = error_mode(section).unwrap_or_default();
    let groups = [
        groups(section, "trace_statements", Signal::Traces, mode),
        groups(section, "metric_statements", Signal::Metrics, mode),
        groups(section, "log_statements", Signal::Logs, mode),
    ];
    Some(Box::new(Settings { groups: groups.map(Into::into) }))
}

/// The maps that groups share, by context.
type Caches = Vec<(Level, Arc<Mutex<Vec<KeyValue>>>)>;

fn groups(section: &mut Section<'_>, key: &'static str, signal: Signal, mode: ErrorMode) -> Vec<Member> {
    let Some(items) = list(section, key) else { return Vec::new() };
    let flat = items.iter().filter(|item| item.as_text().is_some()).count();
    if flat > 0 && flat == items.len() {
        // A flat list is one group: its context is the innermost one of all its statements.
        let group = Draft { style: Style::Inferred, mode, statements: items, conditions: &[] };
        let group = group.compile(section, (key, key), signal);
        return group.map(|group| Member { group, shared_cache: None }).into_iter().collect();
    }
    if flat > 0 {
        section.problem(key, Problem::new("statements and groups with a context cannot stand in one list"));
        return Vec::new();
    }
    let mut caches: Caches = Vec::new();
    let groups = section.sections(key, |group| read_group(group, signal, mode, &mut caches));
    groups.unwrap_or_default().into_iter().flatten().collect()
}

fn read_group(group: &mut Section<'_>, signal: Signal, mode: ErrorMode, caches: &mut Caches) -> Option<Member> {
    let mode = error_mode(group).unwrap_or(mode);
    let shares = group.boolean("shared_cache").unwrap_or(false);
    let context = context(group, signal);
    let statements = inner_list(group, "statements").unwrap_or_default();
    let conditions = inner_list(group, "conditions").unwrap_or_default();
    let style = context.ok()?.map_or(Style::Inferred, Style::Given);
    if statements.is_empty() && style == Style::Inferred {
        group.problem("statements", Problem::new("a group without a `context` needs `statements`"));
        return None;
    }
    let draft = Draft { style, mode, statements: &statements, conditions: &conditions };
    let group = draft.compile(group, ("statements", "conditions"), signal)?;
    let shared_cache = shares.then(|| {
        if let Some((_, cache)) = caches.iter().find(|(level, _)| *level == group.context) {
            return cache.clone();
        }
        let cache: Arc<Mutex<Vec<KeyValue>>> = Arc::default();
        caches.push((group.context, cache.clone()));
        cache
    });
    Some(Member { group, shared_cache })
}

/// A group as it stands in the file.
struct Draft<'a> {
    style: Style,
    mode: ErrorMode,
    statements: &'a [Node],
    conditions: &'a [Node],
}

impl Draft<'_> {
    /// The group, or nothing and all that is wrong with it as problems at the lines of the statements.
    fn compile(&self, section: &Section<'_>, keys: (&'static str, &'static str), signal: Signal) -> Option<Group> {
        let statements = texts(section, keys.0, self.statements);
        let conditions = texts(section, keys.1, self.conditions);
        match Group::compile(signal, self.style, &statements?, &conditions?, self.mode) {
            Ok(group) => Some(group),
            Err(wrong) => {
                for wrong in wrong {
                    let (key, list) =
                        if wrong.condition { (keys.1, self.conditions) } else { (keys.0, self.statements) };
                    let word = if wrong.condition { "condition" } else { "statement" };
                    if let Some(node) = list.get(wrong.index) {
                        let text = node.as_text().unwrap_or_default();
                        section.problem_at(key, node.line, wrong.fault.problem(word, text));
                    }
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::problems_of;

    fn problems(yaml: &str) -> String {
        problems_of(yaml, |section| drop(read(section)))
    }

    #[test]
    fn both_styles_are_read() {
        let text = problems(
            "error_mode: IGNORE\nmetric_statements:\n\
             - replace_pattern(metric.name, \"^([^:]+):(.+)$$\", \"$${1}_$${2}\")\n\
             - set(resource.attributes[\"a\"], resource.attributes[\"b\"]) where resource.attributes[\"f\"] == true\n\
             trace_statements:\n- context: span\n  error_mode: silent\n  shared_cache: true\n\
             \x20 conditions: ['name == \"x\"']\n  statements: ['set(attributes[\"a\"], 1)']\n\
             - statements: ['set(span.name, \"x\")']\nlog_statements: []\n",
        );
        assert_eq!(text, "");
    }

    #[test]
    fn what_is_refused_is_named_with_its_line_and_place() {
        let text = problems(
            "trace_statements:\n- context: span\n  statements:\n  - set(name, \"x\")\n  - explode(name)\n  - set(nmae, 1)\n\
             \x20 conditions:\n  - name = 1\n",
        );
        for word in [
            "the editor `explode` is not supported",
            "c.yaml:5",
            "at character 1 (`explode(name)`) of the statement `explode(name)`",
            "supported: set, delete_key",
            "`span` has no path `nmae`",
            "did you mean `span.name`?",
            "c.yaml:6",
            "c.yaml:8",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("c.yaml:4"), "{text}");
    }

    /// One that cannot be read, a function or a context that is not there hide nothing of the others, nor of the rest of
    /// their own statement.
    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let text = problems(
            "trace_statements:\n- set(span.nme, Foo(span.kynd, [Bar(span.a[span.b])]))\n- set(span.name, \"x\"\n- set(span.status.code, 1) where explode(span.i) == span.c and Trim(5) == span.d[Baz(1)]\n\
             - 'set(metric.name, {\"a\": span.e, \"b\": -span.f + span.g})'\n- set(span.name, \"x\")\n- set(nothing, 1, 2, span.h)\n- replace_pattern(span.name, \"(\", nmae = 1)\n- Set(span.j)\n- set(span.k, 1)[0]\n",
        );
        let lines: [(u32, &[&str]); 8] = [
            (2, &["`nme`", "`Foo`", "`kynd`", "`Bar`", "`a`", "`b`"]),
            (3, &["expected `,`"]),
            (4, &["explode", "`i`", "`target`: expected text", "`c`", "`d`", "`Baz`"]),
            (5, &["`metric.name`", "`e`", "`f`", "`g`"]),
            (7, &["`nothing`", "2 arguments at most"]),
            (8, &["no regular expression", "no parameter `nmae`"]),
            (9, &["no editor", "`j`"]),
            (10, &["could have keys", "`k`"]),
        ];
        for (line, words) in lines {
            let here = text.split("error: ").filter(|problem| problem.contains(&format!("c.yaml:{line}\n")));
            let here: Vec<&str> = here.collect();
            for word in words {
                assert!(here.iter().any(|problem| problem.contains(word)), "{line} {word}: {text}");
            }
            assert_eq!(here.len(), words.len(), "{line}: {here:#?}");
        }
    }

    #[test]
    fn wrong_groups() {
        for (yaml, word) in [
            (
                "trace_statements:\n- set(resource.attributes[\"a\"], 1)\n- {context: resource, statements: []}\n",
                "one list",
            ),
            ("error_mode: shrug\n", "shrug"),
            ("trace_statements: [{context: metric, statements: []}]", "of traces"),
            ("trace_statements: ['set(name, \"x\")']", "`name` begins with no context"),
            ("trace_statements: ['set(span.name, Upper(\"x\"))']", "converter `Upper` is not supported"),
            ("trace_statements: ['set(span.attributes[\"a\"], Int(\"x\"))']", "no integer"),
            ("trace_statements: [5]", "expected a map"),
            ("trace_statements: text", "expected a list"),
            ("trace_statements: [{statements: [5]}]", "expected text"),
            ("metric_statements: ['set(span.name, \"x\")']", "`span.name` begins with no context"),
            ("flatten_data: true", "not supported"),
        ] {
            let text = problems(yaml);
            assert!(text.contains(word), "{yaml}: {text}");
        }
    }
}
