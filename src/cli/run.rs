//! `gymrun run FILE`: plan, job directory, supervisor, and the readers of its events.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use super::arguments::{Format, PlanArguments, Purpose, RunArguments};
use super::recorder::Recorder;
use super::say::say_problems;
use crate::diag::{Problem, Problems, exit};
use crate::jobdir::JobDir;
use crate::plan::Plan;
use crate::process::{hold_signals, in_words};
use crate::report::{Reporter, Style};
use crate::supervisor::{self, DriverOutput, RunOptions, ShowOutput};
use crate::telemetry::{Exporter, JobTrace};

/// Runs a job to its end and gives gymrun's exit code.
pub(super) fn run(arguments: &RunArguments) -> i32 {
    let Some(file) = &arguments.file else {
        say_problems(&Problem::new("a job file is missing").hint("gymrun FILE, or gymrun --help").into());
        return exit::INVALID;
    };
    if arguments.resolve_only {
        return super::plan::run(&PlanArguments {
            file: file.clone(),
            job: arguments.job.clone(),
            format: Format::Text,
            show: None,
            arguments: arguments.arguments.clone(),
        });
    }
    match arguments.job.load(file, &arguments.arguments, Purpose::Run) {
        Ok(plan) => {
            let plan = Arc::new(plan);
            let code = run_plan(&plan, arguments.job.json);
            // gymrun ends, and its memory at once: to free a large plan piece by piece takes longer.
            std::mem::forget(plan);
            code
        }
        Err(problems) => {
            say_problems(&problems);
            exit::INVALID
        }
    }
}

fn run_plan(plan: &Arc<Plan>, json: bool) -> i32 {
    let held = hold_signals().map_err(|error| Problem::new(format!("cannot hold signals back: {error}")));
    let prepared = held.and_then(|()| JobDir::create(plan)).and_then(|job_dir| {
        let style = match (json, io::stderr().is_terminal()) {
            (true, _) => Style::Json,
            (false, true) => Style::Live,
            (false, false) => Style::Lines,
        };
        let reporter = Reporter::new(style, plan);
        let lines = reporter.line_sink();
        let trace = JobTrace::new();
        let recorder =
            Recorder::start(plan, job_dir.path(), reporter, Exporter::new(plan, trace)).map_err(|error| {
                Problem::new(format!("cannot write to `{}`: {}", job_dir.path().display(), in_words(&error)))
            })?;
        Ok((job_dir, lines, trace, recorder))
    });
    let (job_dir, lines, trace, recorder) = match prepared {
        Ok(prepared) => prepared,
        Err(problem) => {
            say_problems(&Problems::from(problem));
            return exit::FAILED;
        }
    };
    let sink = recorder.sink();
    for warning in plan.warnings.iter().chain(job_dir.warnings()) {
        let place = if warning.path.is_empty() { String::new() } else { format!("{}: ", warning.path) };
        sink.warn(None, format!("{place}{}", warning.message), warning.hint.clone());
    }
    for former in job_dir.former() {
        supervisor::end_former(plan, &former.sentence(), former.cgroup.as_deref(), &sink);
    }
    job_dir.former_were_said();
    let outcome = supervisor::run(
        plan,
        RunOptions {
            job_dir: job_dir.path().to_owned(),
            traceparent: trace.traceparent(),
            environment: std::env::vars_os().collect::<BTreeMap<_, _>>(),
            sink,
            show: ShowOutput { driver: if json { DriverOutput::Stderr } else { DriverOutput::Apart }, lines },
            before_collector_stop: Box::new(recorder.telemetry_finisher()),
        },
    );
    recorder.end();
    outcome.code
}
