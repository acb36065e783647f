//! Jobs for gymrun.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Kit;

/// A job of services, without a collector and without telemetry.
#[derive(Default)]
pub struct Job {
    services: String,
    /// Seconds between two samples of memory; none: as good as never.
    pub sample_seconds: Option<f64>,
    /// Whether proportional memory is sampled too, each time.
    pub proportional: bool,
}

impl Job {
    /// One more service: its command and, as Lua, whatever else its table has.
    pub fn add(&mut self, name: &str, command: &[&str], rest: &str) {
        let words: Vec<String> = command.iter().map(|word| format!("{word:?}")).collect();
        let _ = writeln!(self.services, "  {name} = {{ command = {{ {} }}, {rest} }},", words.join(", "));
    }

    /// The same as so many children.
    pub fn of_children(kit: &Kit, count: usize, fifo: &Path) -> Self {
        let mut job = Self::default();
        let (child, fifo) = (kit.child(), fifo.to_owned());
        for number in 1..=count {
            job.add(&format!("p{number}"), &[&child.to_string_lossy(), &fifo.to_string_lossy()], "");
        }
        job
    }

    /// Writes it down: where.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let seconds = self.sample_seconds.unwrap_or(86400.0);
        let memory = format!(
            "{{ enabled = {}, interval_seconds = {seconds}, pss_interval_seconds = {seconds} }}",
            self.proportional
        );
        let text = format!(
            "local gym = require \"gymrun\"\nreturn gym.job {{\n name = \"bench\",\n services = {{\n{}}},\n \
             otel = {{ enabled = false }},\n telemetry = {{ enabled = {}, memory_profiling = {memory} }},\n}}\n",
            self.services, self.proportional
        );
        let path = folder.join("job.lua");
        std::fs::write(&path, text).expect("writes");
        path
    }
}

impl Kit {
    /// `gymrun COMMAND FILE`, its files below a folder.
    pub fn gymrun(&self, command: &str, job: &Path, folder: &Path) -> Command {
        let mut gymrun = Command::new(&self.gymrun);
        gymrun.arg(command).arg(job).args(["--job-id", "bench"]).arg("--output-path").arg(folder.join("out"));
        gymrun
    }
}
