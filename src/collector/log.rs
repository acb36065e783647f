//! The collector's own lines: one sink for the process, a name for each component.
//!
//! Where the lines go is the caller's choice (stderr for `gymrun collector`, a list in a test). Errors of the data path
//! repeat with every request when an endpoint is down, so [`Log::limited`] shows ten in ten seconds and then says how
//! many it kept back, with the next error or at the end.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::collector::config::secrets::Secrets;
use crate::diag::counted;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who work on the collector.
    Debug,
    /// What is worth knowing once.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Data or function is lost.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// Takes finished lines (without a line end).
pub type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// How a line is written.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// As JSON instead of words in a row.
    pub json: bool,
    /// Added to each line, but for names that a JSON line has itself.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

/// A named place to say something. Clones share the limit.
#[derive(Clone)]
pub struct Log {
    voice: Voice,
    limit: Arc<Limit>,
}

/// What makes a line of a text.
#[derive(Clone)]
struct Voice {
    sink: Sink,
    least: Level,
    name: Arc<str>,
    secrets: Arc<Secrets>,
    form: Arc<Form>,
}

const WINDOW: Duration = Duration::from_secs(10);
const LINES_A_WINDOW: u32 = 10;

/// The limit of all that say the same name; with the last of them goes what was kept back.
struct Limit {
    voice: Voice,
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    since: Option<Instant>,
    shown: u32,
    kept_back: u64,
}

impl Voice {
    /// A place to say something with a limit of its own.
    fn log(self) -> Log {
        Log { limit: Arc::new(Limit { voice: self.clone(), window: Mutex::default() }), voice: self }
    }
}

impl Log {
    /// Lines of `least` and above go to `sink`.
    #[must_use]
    pub fn new(sink: Sink, least: Level) -> Self {
        Voice { sink, least, name: "collector".into(), secrets: Arc::default(), form: Arc::default() }.log()
    }

    /// The same sink under another name, with a limit of its own.
    #[must_use]
    pub fn named(&self, name: impl Into<Arc<str>>) -> Self {
        Voice { name: name.into(), ..self.voice.clone() }.log()
    }

    /// The same in another form, with a limit of its own.
    #[must_use]
    pub fn in_form(&self, form: Form) -> Self {
        Voice { form: Arc::new(form), ..self.voice.clone() }.log()
    }

    /// The same with a limit of its own, and none of `secrets` in its lines.
    #[must_use]
    pub fn without(&self, secrets: Arc<Secrets>) -> Self {
        Voice { secrets, ..self.voice.clone() }.log()
    }

    /// What its lines do not show.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.voice.secrets
    }

    /// A line for those who work on the collector.
    pub fn debug(&self, text: &str) {
        self.voice.line(Level::Debug, text);
    }

    /// A line worth knowing.
    pub fn info(&self, text: &str) {
        self.voice.line(Level::Info, text);
    }

    /// A line about something that is not as it should be.
    pub fn warn(&self, text: &str) {
        self.voice.line(Level::Warn, text);
    }

    /// A line about lost data or function.
    pub fn error(&self, text: &str) {
        self.voice.line(Level::Error, text);
    }

    /// An error that may repeat with every request: ten lines in ten seconds, then a count.
    pub fn limited(&self, text: &str) {
        let mut window = self.limit.window.lock().unwrap_or_else(PoisonError::into_inner);
        if window.since.is_none_or(|since| since.elapsed() >= WINDOW) {
            let before = std::mem::replace(&mut *window, Window { since: Some(Instant::now()), ..Window::default() });
            self.voice.count(&before);
        }
        if window.shown < LINES_A_WINDOW {
            window.shown += 1;
            self.error(text);
        } else {
            window.kept_back += 1;
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.voice.count(self.window.get_mut().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Voice {
    /// Says how many errors were kept back.
    fn count(&self, window: &Window) {
        if window.kept_back > 0 {
            let (one, many) = ("more error like the former ones was", "more errors like the former ones were");
            let text = format!("{} not shown", counted(window.kept_back, one, many));
            self.line(Level::Error, &text);
        }
    }

    fn line(&self, level: Level, text: &str) {
        if level >= self.least {
            let time = jiff::Timestamp::now();
            // A message may quote what others sent; it must stay one line.
            let text = self.secrets.mask(text).replace(['\n', '\r'], " ");
            (self.sink)(&self.form.write(&format!("{time:.3}"), level, &self.name, &text));
        }
    }
}

impl Form {
    fn write(&self, time: &str, level: Level, name: &str, text: &str) -> String {
        if self.json {
            let own = [("level", level.to_string()), ("ts", time.to_owned()), ("component", name.to_owned())];
            let own = own.into_iter().chain([("msg", text.to_owned())]);
            let own = own.map(|(key, value)| (key.to_owned(), serde_json::Value::String(value)));
            let mut line: serde_json::Map<_, _> = own.collect();
            for (name, value) in &self.fields {
                line.entry(name).or_insert_with(|| value.clone());
            }
            return serde_json::Value::Object(line).to_string();
        }
        let line = format!("{time} {level} {name}: {text}");
        if self.fields.is_empty() { line } else { format!("{line} {}", serde_json::Value::Object(self.fields.clone())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_errors_is_cut_and_counted_and_lines_stay_lines() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = lines.clone();
        let log = Log::new(Arc::new(move |l: &str| sink.lock().expect("lock").push(l.to_owned())), Level::Info);
        let log = log.named("exporters/x");
        log.debug("hidden");
        for _ in 0..50 {
            log.limited("down\nbadly");
        }
        drop(log.clone());
        assert_eq!(lines.lock().expect("lock").len(), 10);
        drop(log);
        let lines = lines.lock().expect("lock");
        assert!(lines[0].ends_with(" error exporters/x: down badly"), "{}", lines[0]);
        assert!(lines[10].ends_with(" error exporters/x: 40 more errors like the former ones were not shown"));
        assert_eq!(lines.len(), 11);
    }
}
