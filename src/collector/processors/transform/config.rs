//! What the processor is told: for each signal, groups with a context or flat statements.

use super::processor::Settings;
use super::statement::{Action, Context, SUPPORTED, compile};
use crate::collector::component::{EVERY_SIGNAL, Factory, Processor, Signals};
use crate::collector::node::{Node, Value};
use crate::collector::section::Section;
use crate::diag::Problem;
use crate::otlp::Signal;

/// The kind.
pub const FACTORY: Factory<dyn Processor> =
    Factory { names: &["transform"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

const ERROR_MODES: [&str; 3] = ["ignore", "silent", "propagate"];

#[expect(clippy::unnecessary_wraps, reason = "the shape of every `configure`")]
fn read(section: &mut Section<'_>) -> Option<Box<dyn Processor>> {
    section.unsupported(&["profile_statements", "flatten_data"]);
    // None of the supported statements can fail while it runs, so the mode makes no difference yet.
    section.word("error_mode", &ERROR_MODES);
    let statements = [
        statements(section, "trace_statements", Signal::Traces),
        statements(section, "metric_statements", Signal::Metrics),
        statements(section, "log_statements", Signal::Logs),
    ];
    Some(Box::new(Settings { statements: statements.map(Into::into) }))
}

fn statements(section: &mut Section<'_>, key: &'static str, signal: Signal) -> Vec<Action> {
    let Some(node) = section.node(key) else { return Vec::new() };
    let Value::List(items) = &node.value else {
        if node.value != Value::Null {
            section.problem(key, Problem::new(format!("expected a list of statements, found {}", node.kind())));
        }
        return Vec::new();
    };
    let flat = items.iter().filter(|item| item.as_text().is_some()).count();
    if flat == items.len() {
        return items.iter().filter_map(|item| statement(section, key, item, None)).collect();
    }
    if flat > 0 {
        section.problem(key, Problem::new("statements and groups with a context cannot stand in one list"));
        return Vec::new();
    }
    let groups = section.sections(key, |group| read_group(group, signal));
    groups.unwrap_or_default().into_iter().flatten().collect()
}

fn read_group(group: &mut Section<'_>, signal: Signal) -> Vec<Action> {
    group.unsupported(&["conditions"]);
    group.word("error_mode", &ERROR_MODES);
    let context = match group.text("context").as_deref() {
        Some("resource") => Ok(Some(Context::Resource)),
        Some("metric") if signal == Signal::Metrics => Ok(Some(Context::Metric)),
        None | Some("") => Ok(None),
        Some(other) => Err(format!("the context `{other}` of {} is not supported by this collector", signal.name())),
    };
    let statements = if let Some(Value::List(items)) = group.node("statements").map(|node| &node.value) {
        items.as_slice()
    } else {
        group.problem("statements", Problem::new("expected a list of statements"));
        return Vec::new();
    };
    match context {
        Ok(context) => statements.iter().filter_map(|item| statement(group, "statements", item, context)).collect(),
        Err(why) => {
            group.problem("context", Problem::new(why).hint(SUPPORTED));
            // The statements are looked at all the same, so that all that is wrong is said at once.
            for item in statements {
                statement(group, "statements", item, None);
            }
            Vec::new()
        }
    }
}

fn statement(section: &Section<'_>, key: &'static str, item: &Node, context: Option<Context>) -> Option<Action> {
    let Some(text) = item.as_text() else {
        section.problem_at(key, item.line, Problem::new(format!("expected a statement, found {}", item.kind())));
        return None;
    };
    match compile(text, context) {
        Ok(action) => Some(action),
        Err(why) => {
            let shown: String = text.chars().take(300).collect();
            let problem = Problem::new(format!("{why}, in the statement `{shown}`"));
            section.problem_at(key, item.line, problem.hint(SUPPORTED));
            None
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
            "error_mode: ignore\nmetric_statements:\n\
             - replace_pattern(metric.name, \"^([^:]+):(.+)$$\", \"$${1}_$${2}\")\n\
             - set(resource.attributes[\"a\"], resource.attributes[\"b\"]) where resource.attributes[\"f\"] == true\n\
             trace_statements:\n- context: resource\n  statements: ['set(attributes[\"a\"], 1)']\n",
        );
        assert_eq!(text, "");
    }

    #[test]
    fn what_is_refused_is_named_with_its_line_and_what_is_supported() {
        let text = problems("trace_statements:\n- context: span\n  statements:\n  - set(name, \"x\")\n");
        for word in ["context `span`", "`set(name, \"x\")`", "c.yaml:4", "supported: in context"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let text = problems(
            "trace_statements:\n- set(resource.attributes[\"a\"], 1)\n- {context: resource, statements: []}\n",
        );
        assert!(text.contains("one list"), "{text}");
        assert!(problems("error_mode: shrug\n").contains("shrug"));
        assert!(problems("trace_statements: [{context: metric, statements: []}]").contains("of traces"));
    }
}
