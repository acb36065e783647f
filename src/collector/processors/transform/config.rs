//! What the processor is told: for each signal, groups of statements, or a flat list of them.

use std::sync::{Arc, Mutex};

use super::super::statements::{Said, Texts, context, error_mode, flat_and_groups, inner_list, list};
use super::processor::{Member, Settings};
use crate::collector::component::{EVERY_SIGNAL, Factory, Processor, Signals};
use crate::collector::config::node::Node;
use crate::collector::config::section::Section;
use crate::collector::ottl::{ErrorMode, Group, Level, Style, Wrong, misread};
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
    let mut members = Vec::new();
    let (flat, groups) = flat_and_groups(section, key, items, "statements");
    if !flat.is_empty() {
        // A flat list is one group: its context is the innermost one of all its statements.
        let draft = Draft { style: Some(Style::Inferred), mode, statements: &flat, conditions: &[] };
        let group = draft.compile(section, (key, key), signal);
        members.extend(group.map(|group| Member { group, shared_cache: None }));
    }
    let mut caches: Caches = Vec::new();
    for (index, item) in groups {
        let group = section.item(key, index, item, |group| read_group(group, signal, mode, &mut caches));
        members.extend(group.flatten());
    }
    members
}

fn read_group(group: &mut Section<'_>, signal: Signal, mode: ErrorMode, caches: &mut Caches) -> Option<Member> {
    let mode = error_mode(group).unwrap_or(mode);
    let shares = group.boolean("shared_cache").unwrap_or(false);
    let context = context(group, signal);
    let statements = inner_list(group, "statements").unwrap_or_default();
    let conditions = inner_list(group, "conditions").unwrap_or_default();
    let style = match context {
        Said::Nothing => Some(Style::Inferred),
        Said::Context(level) => Some(Style::Given(level)),
        Said::Wrong(meant) => meant.map(Style::Given),
    };
    if statements.is_empty() && style == Some(Style::Inferred) {
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
    /// None if it cannot be known.
    style: Option<Style>,
    mode: ErrorMode,
    statements: &'a [Node],
    conditions: &'a [Node],
}

impl Draft<'_> {
    /// The group, or nothing and all that is wrong with it as problems at the lines of the statements.
    fn compile(&self, section: &Section<'_>, keys: (&'static str, &'static str), signal: Signal) -> Option<Group> {
        let statements = Texts::read(section, keys.0, self.statements);
        let conditions = Texts::read(section, keys.1, self.conditions);
        let group = match self.style {
            Some(style) => Group::compile(signal, style, &statements.list, &conditions.list, self.mode),
            None => Err(misread(&statements.list, &conditions.list)),
        };
        let say = |wrong: &Wrong| if wrong.condition { &conditions } else { &statements }.say(section, wrong);
        group.map_err(|wrong| wrong.iter().for_each(say)).ok()
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

    /// What is wrong at each of these lines, a word for each problem, and nothing else.
    fn check(yaml: &str, lines: &[(u32, &[&str])]) {
        let text = problems(yaml) + "\n";
        for (line, words) in lines {
            let here = text.split("error: ").filter(|problem| problem.contains(&format!("c.yaml:{line}\n")));
            let here: Vec<&str> = here.collect();
            for word in *words {
                assert!(here.iter().any(|problem| problem.contains(word)), "{line} {word}: {text}");
            }
            assert_eq!(here.len(), words.len(), "{line}: {here:#?}");
        }
        let all: usize = lines.iter().map(|(_, words)| words.len()).sum();
        assert_eq!(text.matches("error: ").count(), all, "{text}");
    }

    /// A statement that cannot be read, a function or a context that is not there hide nothing of the others, nor of the
    /// rest of their own statement.
    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        check(
            r#"trace_statements:
- set(span.nme, Foo(span.kynd, [Bar(span.a[span.b])[span.c]]))
- set(span.name, "x"
- set(span.status.code, 1) where explode(span.a) == span.b and Trim(5) == span.c[Baz(1)]
- 'set(metric.name, {"a": span.a, "b": -span.b + span.c})'
- set(span.name, "x")
- set(nothing, 1, 2, span.a)
- replace_pattern(span.name, "(", nmae = 1)
- Set(span.a)
- set(span.a, 1)[0]
- [5]
"#,
            &[
                (1, &["one list"]),
                (2, &["`nme`", "`Foo`", "`kynd`", "`Bar`", "`a`", "`b`", "`c`"]),
                (3, &["expected `,`"]),
                (4, &["explode", "`a`", "`b`", "`target`: expected text", "`c`", "`Baz`"]),
                (5, &["`metric` cannot be seen from `span`", "`a`", "`b`", "`c`"]),
                (7, &["`nothing` begins with no context", "2 arguments at most"]),
                (8, &["no regular expression", "no parameter `nmae`"]),
                (9, &["no editor", "`a`"]),
                (10, &["could have keys", "`a`"]),
                (11, &["expected a map"]),
            ],
        );
    }

    #[test]
    fn a_wrong_context_hides_nothing_of_its_group() {
        check(
            "trace_statements:\n- context: spam\n  statements:\n  - set(nme, 1)\n  - set(name, 1\n  - {}\n  conditions:\n  - kynd == 1\n\
             - context: galaxy\n  statements:\n  - set(nme, 1)\n  - set(name, 1\n",
            &[
                (2, &["the context `spam`"]),
                (4, &["`nme`"]),
                (5, &["expected `,`"]),
                (6, &["expected text"]),
                (8, &["`kynd`"]),
                (9, &["the context `galaxy`"]),
                (12, &["expected `,`"]),
            ],
        );
    }

    #[test]
    fn a_context_that_lacks_something_is_named() {
        check(
            "trace_statements:\n- set(spanevent.name, \"x\") where IsRootSpan()\n",
            &[(2, &["`IsRootSpan` is there in the context `span` only, not in `spanevent`"])],
        );
        check(
            "metric_statements:\n- set(datapoint.attributes[\"a\"], HasAttrKeyOnDatapoint(\"a\"))\n",
            &[(2, &["in conditions of the context `metric` only"])],
        );
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
            ("metric_statements: ['set(span.name, \"x\")']", "`span` cannot be seen from `datapoint`"),
            ("flatten_data: true", "not supported"),
        ] {
            let text = problems(yaml);
            assert!(text.contains(word), "{yaml}: {text}");
        }
    }
}
