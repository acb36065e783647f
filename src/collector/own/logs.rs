//! The collector's own log: `service.telemetry.logs`.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::collector::log::{Form, Level, Log, Sink};
use crate::collector::log_writer;
use crate::diag::Problem;

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Output {
    Stderr,
    Stdout,
    File(PathBuf),
}

/// What the section says.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// Lines from this level on.
    pub level: Level,
    form: Form,
    outputs: Vec<Output>,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: Level::Info, form: Form::default(), outputs: vec![Output::Stderr] }
    }
}

impl LogSettings {
    /// The log; `stderr` is where its lines go unless something else is said. A file that cannot be opened is a problem.
    pub fn open(&self, stderr: &Sink) -> Result<Log, Problem> {
        let mut sinks = Vec::new();
        for output in &self.outputs {
            sinks.push(match output {
                Output::Stderr => stderr.clone(),
                Output::Stdout => log_writer::stdout(),
                Output::File(path) => log_writer::file(path).map_err(|error| {
                    let path = path.display();
                    Problem::new(format!("`service.telemetry.logs.output_paths`: cannot open {path}: {error}"))
                })?,
            });
        }
        let sink: Sink = match sinks.as_slice() {
            [only] => only.clone(),
            _ => Arc::new(move |line: &str| sinks.iter().for_each(|sink| sink(line))),
        };
        Ok(Log::new(sink, self.level).in_form(self.form.clone()))
    }
}

/// Reads the section.
pub(super) fn read(logs: &mut Section<'_>) -> LogSettings {
    logs.unsupported(&["processors"]);
    // What belongs to the reference's library: places in the source, stacks, the number of equal lines (here errors that
    // repeat are ten in ten seconds), its own errors.
    for key in ["development", "disable_caller", "disable_stacktrace", "disable_zap_resource"] {
        logs.boolean(key);
    }
    logs.section("sampling", |sampling| {
        sampling.boolean("enabled");
        sampling.duration("tick");
        sampling.integer("initial", i64::MIN);
        sampling.integer("thereafter", i64::MIN);
    });
    logs.texts("error_output_paths");
    let level = logs.text("level").and_then(|text| level(logs, &text)).unwrap_or(Level::Info);
    let json = logs.word("encoding", &["console", "json"]) == Some("json");
    let fields = fields(logs);
    let outputs = match logs.texts("output_paths") {
        Some(paths) => paths.iter().filter_map(|path| output(logs, path)).collect(),
        None => vec![Output::Stderr],
    };
    LogSettings { level, form: Form { json, fields }, outputs }
}

fn level(logs: &Section<'_>, text: &str) -> Option<Level> {
    Some(match text.to_ascii_lowercase().as_str() {
        "debug" => Level::Debug,
        "info" | "" => Level::Info,
        "warn" => Level::Warn,
        "error" | "dpanic" | "panic" | "fatal" => Level::Error,
        _ => {
            let problem = Problem::new(format!("`{text}` is no level"));
            logs.problem("level", problem.suggest(text, ["debug", "info", "warn", "error"]));
            return None;
        }
    })
}

/// `stderr`, `stdout`, a path, or `file:` with an absolute one.
fn output(logs: &Section<'_>, text: &str) -> Option<Output> {
    let path = match text {
        "stderr" => return Some(Output::Stderr),
        "stdout" => return Some(Output::Stdout),
        _ => text.strip_prefix("file://localhost").or(text.strip_prefix("file://")).unwrap_or(text),
    };
    let is_url = path.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphabetic()));
    if is_url || path.is_empty() {
        let problem = Problem::new(format!("`{text}` is no output of a log"));
        logs.problem("output_paths", problem.hint("write `stderr`, `stdout` or a path"));
        return None;
    }
    Some(Output::File(path.into()))
}

fn fields(logs: &mut Section<'_>) -> Map<String, Json> {
    let Some(node) = logs.node("initial_fields") else { return Map::new() };
    match json(node) {
        Json::Object(fields) => fields,
        Json::Null => Map::new(),
        _ => {
            logs.problem("initial_fields", Problem::new(format!("expected a map, found {}", node.kind())));
            Map::new()
        }
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Boolean(value) => Json::from(*value),
        Value::Integer(value) => Json::from(*value),
        Value::Double(value) => Json::from(*value),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Untakable(_) => Json::from(node.as_written().unwrap_or_default()),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => entries.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::collector::testing::{problems_of, read_section};

    #[test]
    fn lines_go_where_they_are_wanted_in_the_form_that_is_wanted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.txt");
        let yaml = format!(
            "level: WARN\nencoding: json\noutput_paths: [stderr, \"file://{}\"]\ninitial_fields: {{job: 7, site: [a]}}\n\
             sampling: {{enabled: true, tick: 10s, initial: 10, thereafter: 100}}\ndisable_caller: true\n",
            path.display()
        );
        let settings = read_section(&yaml, read);
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = seen.clone();
        let log = settings.open(&(Arc::new(move |l: &str| kept.lock().expect("lock").push(l.to_owned())) as Sink));
        let log = log.expect("opens").named("exporters/x");
        log.info("hidden");
        log.warn("a \"quoted\"\nline");
        let lines = seen.lock().expect("lock").clone();
        log_writer::finish();
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), format!("{}\n", lines.join("\n")));
        let line: Json = serde_json::from_str(&lines[0]).expect("JSON");
        assert_eq!((lines.len(), &line["level"], &line["component"]), (1, &Json::from("warn"), &"exporters/x".into()));
        assert_eq!(
            (&line["msg"], &line["job"], &line["site"][0]),
            (&"a \"quoted\" line".into(), &7.into(), &"a".into())
        );
        assert!(line["ts"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    }

    /// The reference writes such names twice, which is no JSON that everybody reads.
    #[test]
    fn a_field_does_not_replace_what_a_line_has_itself() {
        let yaml = "encoding: json\ninitial_fields: {msg: m, ts: t, level: l, component: c, job: 7}\n";
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = seen.clone();
        let sink: Sink = Arc::new(move |line: &str| kept.lock().expect("lock").push(line.to_owned()));
        read_section(yaml, read).open(&sink).expect("opens").named("exporters/x").info("what it is");
        let line: Json = serde_json::from_str(&seen.lock().expect("lock")[0]).expect("JSON");
        let has = |name: &str, value: &str| line[name] == value;
        assert!(has("msg", "what it is") && has("level", "info") && has("component", "exporters/x"), "{line}");
        assert!(line["ts"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        assert_eq!((&line["job"], line.as_object().map(serde_json::Map::len)), (&7.into(), Some(5)));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let yaml =
            "level: loud\nencoding: xml\noutput_paths: [http://x]\ninitial_fields: 7\nprocessors: []\nlevle: x\n";
        let text = problems_of(yaml, |section| drop(read(section)));
        for words in [
            "`loud` is no level",
            "`xml` is not",
            "`http://x` is no output",
            "expected a map",
            "not supported",
            "`levle`",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let yaml = "output_paths: [/no/such/folder/x]\n";
        let nowhere: Sink = Arc::new(|_| ());
        assert!(read_section(yaml, read).open(&nowhere).err().expect("fails").message.contains("/no/such/folder/x"));
    }
}
