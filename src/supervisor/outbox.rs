//! Events on their way out, in order: one that needs a look back at a process (the end of its log, why it ended) waits for
//! that, and those after it wait behind it.

use std::collections::VecDeque;

use crate::events::{EventKind, Explanation, Sink};

/// What the engine says.
#[derive(Debug)]
pub(super) struct Outbox {
    sink: Sink,
    /// With the number of the look that it waits for.
    waiting: VecDeque<(Option<u64>, EventKind)>,
    looks: u64,
}

impl Outbox {
    pub(super) fn new(sink: Sink) -> Self {
        Self { sink, waiting: VecDeque::new(), looks: 0 }
    }

    /// Says something.
    pub(super) fn say(&mut self, kind: EventKind) {
        self.waiting.push_back((None, kind));
        self.flush();
    }

    /// Says something once a unit was looked back at: the number of that look. One that is started again may die again while
    /// the looks at its former lives are not over, and the later is not always over later.
    pub(super) fn say_after_look(&mut self, kind: EventKind) -> u64 {
        self.looks += 1;
        self.waiting.push_back((Some(self.looks), kind));
        self.looks
    }

    /// A look is over.
    pub(super) fn fill(&mut self, look: u64, lines: Vec<String>, why: Option<Explanation>) {
        if let Some((wait, kind)) = self.waiting.iter_mut().find(|(wait, _)| *wait == Some(look)) {
            *wait = None;
            match kind {
                EventKind::ProcessExited { last_lines, explanation, .. } => {
                    *last_lines = lines;
                    *explanation = why;
                }
                EventKind::ProcessNotReady { last_lines, .. } => *last_lines = lines,
                _ => {}
            }
        }
        self.flush();
    }

    /// Whether everything is said.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn flush(&mut self) {
        while let Some((_, kind)) = self.waiting.pop_front_if(|(wait, _)| wait.is_none()) {
            self.sink.emit(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::Outbox;
    use crate::events::{EventKind, Sink};

    #[test]
    fn what_waits_for_a_log_keeps_its_place() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&said);
        let mut outbox = Outbox::new(Sink::new(move |event| {
            let text = match event.kind {
                EventKind::ProcessNotReady { process, last_lines, .. } => format!("{process} {last_lines:?}"),
                EventKind::ProcessGone { process } => process,
                other => panic!("{other:?}"),
            };
            sink.lock().expect("nobody panics here").push(text);
        }));
        let gone = |process: &str| EventKind::ProcessGone { process: process.into() };
        let late = |process: &str| EventKind::ProcessNotReady {
            process: process.into(),
            after_seconds: 1.0,
            answer: String::new(),
            last_lines: Vec::new(),
        };
        outbox.say(gone("a"));
        // Of the same unit.
        let (first, second) = (outbox.say_after_look(late("b")), outbox.say_after_look(late("b")));
        outbox.say(gone("d"));
        assert_eq!(*said.lock().expect("nobody panics here"), ["a"]);
        outbox.fill(second, vec!["second".into()], None);
        assert!(!outbox.is_empty());
        outbox.fill(first, vec!["first".into()], None);
        assert_eq!(*said.lock().expect("nobody panics here"), ["a", "b [\"first\"]", "b [\"second\"]", "d"]);
        assert!(outbox.is_empty());
    }
}
