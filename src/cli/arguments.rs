//! The definition of the command line.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::collector::CollectorArgs;
use crate::diag::{Problem, Problems};
use crate::inputs::World;
use crate::plan::{OUTPUT_PATH, Plan};
use crate::policy::{self, LogSink, Request};
use crate::process::{share_one_heap, take_room_at_once};

/// Runs an evaluation or RL job of NVIDIA NeMo Gym as one supervised whole.
///
/// `gymrun FILE` is `gymrun run FILE`. Exit codes: the driver's own; 128+N if a signal ended it; 2 invalid job or usage;
/// 124 time limit; 125 gymrun could not run the job or a process died; 126 and 127 the driver's program cannot be run or
/// does not exist; 129, 130, 131 and 143 gymrun was told to stop by SIGHUP, SIGINT, SIGQUIT or SIGTERM, and 128+N by another
/// signal that would end it.
#[derive(Debug, Parser)]
#[command(name = "gymrun", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) run: RunArguments,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a job (the default).
    Run(RunArguments),
    /// Print what would run, and start nothing.
    Plan(PlanArguments),
    /// Check job files: every problem of each, with its place.
    Check(CheckArguments),
    /// Print the last lines of a job's logs.
    Logs(LogsArguments),
    /// Run the embedded collector.
    Collector(CollectorArgs),
    /// Print the completions of a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// What decides the plan besides the job file.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct JobArguments {
    /// Site fragments instead of the job's, lowest first (comma between).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(super) site: Vec<String>,
    /// Set one key above all layers; the value is YAML. May be given again.
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub(super) set: Vec<String>,
    /// Where job directories are made.
    #[arg(long, value_name = "DIR")]
    pub(super) output_path: Option<String>,
    /// The job id, instead of a new one.
    #[arg(long, value_name = "ID")]
    pub(super) job_id: Option<String>,
    /// Output for programs: events of a run as JSON lines on stdout (the driver's output then goes to stderr), a plan as
    /// JSON, problems of a check as JSON lines.
    #[arg(long)]
    pub(super) json: bool,
    /// Say more: what `gym.log` and `print` of Lua files say.
    #[arg(long, short)]
    pub(super) verbose: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The job: a Lua or YAML file.
    #[arg(value_name = "FILE", required = true)]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) job: JobArguments,
    /// Print the plan and start nothing: the same as `gymrun plan`.
    #[arg(long)]
    pub(super) resolve_only: bool,
    /// Appended to the driver's argv.
    #[arg(last = true, value_name = "ARGS")]
    pub(super) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    /// The job: a Lua or YAML file.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) job: JobArguments,
    /// As what the plan is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// Print one part alone.
    #[arg(long, value_enum)]
    pub(super) show: Option<Show>,
    /// Appended to the driver's argv.
    #[arg(last = true, value_name = "ARGS")]
    pub(super) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// Job files.
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) job: JobArguments,
}

#[derive(Debug, Args)]
pub(super) struct LogsArguments {
    /// The directory of the job; `latest` for the newest one of the output path.
    #[arg(value_name = "JOBDIR", default_value = "latest")]
    pub(super) directory: PathBuf,
    /// Processes; all if none is named.
    #[arg(value_name = "PROCESS")]
    pub(super) processes: Vec<String>,
    /// How many lines of each.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(super) lines: usize,
    /// Where job directories are made.
    #[arg(long, value_name = "DIR", default_value = OUTPUT_PATH)]
    pub(super) output_path: PathBuf,
}

/// As what a plan is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// A part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Show {
    /// collector.yaml.
    Collector,
    /// Each process's variables with their sources.
    Environment,
    /// Start and stop order.
    Order,
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be run.
    Run,
    /// To be shown.
    Show,
    /// To know whether it can be made; secrets need not be there.
    Check,
}

impl JobArguments {
    /// The plan of a job on the real machine.
    pub(super) fn load(&self, file: &Path, driver_arguments: &[String], purpose: Purpose) -> Result<Plan, Problems> {
        share_one_heap();
        if purpose != Purpose::Run {
            take_room_at_once();
        }
        let world =
            World::real().map_err(|error| Problem::new(format!("cannot tell the working directory: {error}")))?;
        let verbose = self.verbose;
        policy::load(Request {
            site: self.site.clone(),
            set: self.set.clone(),
            output_path: self.output_path.clone(),
            job_id: self.job_id.clone(),
            driver_arguments: driver_arguments.to_vec(),
            log: LogSink::new(move |line| {
                if verbose {
                    let _ = writeln!(io::stderr().lock(), "{line}");
                }
            }),
            goes_on: purpose == Purpose::Run,
            ..Request::new(file, World { look_up_secrets: purpose != Purpose::Check, ..world })
        })
    }
}
