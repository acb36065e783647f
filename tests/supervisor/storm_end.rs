//! What must hold after a storm.

use std::path::Path;

use serde_json::{Value, json};

use super::{Fault, Story};
use crate::harness::processes::of_job;
use crate::harness::{Ended, JobDirectory, eventually, json_lines};

impl Story {
    pub(super) fn assert_end(&self, id: &str, output: &Path, ended: &Ended) {
        let expected = self.code();
        assert_eq!(
            ended.code, expected,
            "{:?}, on_exit = {}\n{}\n{}",
            self.fault, self.on_exit, self.job, ended.stderr
        );
        if self.fault == Fault::KillGymrun {
            // The kernel ends them when gymrun ends, which takes a moment.
            eventually("the children are gone", || of_job(id).is_empty().then_some(()));
        }
        let left = of_job(id);
        assert!(left.is_empty(), "{:?}: left behind: {left:?}", self.fault);
        if matches!(self.fault, Fault::KillGymrun | Fault::FullDisk) {
            return;
        }
        let directory = JobDirectory::only_in(&output.join(id));
        assert_eq!(directory.json("result.json")["code"].as_i64(), expected.map(i64::from), "{:?}", self.fault);
        let events = directory.json_lines("events.jsonl");
        assert_eq!(events.last().map(|event| &event["event"]), Some(&json!("job_ended")), "{:?}", self.fault);
        for signal in ["traces", "metrics", "logs"] {
            let file = directory.path(&format!("otel/{signal}.jsonl"));
            if file.exists() {
                json_lines(&file);
            }
        }
        assert!(directory.files_with("t0ken").is_empty(), "the token is in a file");
        if !matches!(self.fault, Fault::Exit | Fault::Kill | Fault::Hang | Fault::StopTwice) {
            self.assert_order(&events);
        }
    }

    /// Whoever needs another is gone before that one is told to stop, if nobody died before.
    fn assert_order(&self, events: &[Value]) {
        let position =
            |kind: &str, process: &str| events.iter().position(|e| e["event"] == kind && e["process"] == process);
        for (name, server) in self.job["servers"].as_object().expect("servers") {
            for need in server["depends_on"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if let (Some(gone), Some(stopping)) =
                    (position("process_gone", name), position("process_stopping", need))
                {
                    assert!(gone < stopping, "{need} was stopped before {name} was gone: {events:#?}");
                }
            }
        }
    }
}
