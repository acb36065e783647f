//! The whole way from a job file to a plan.

use std::path::PathBuf;
use std::sync::Arc;

use mlua::Lua;

use super::assemble::{Frame, assemble};
use super::convert::{kind_of, to_node};
use super::failure::problem_of;
use super::host::{LogSink, host};
use super::spec::Spec;
use super::{library, sandbox, schema, vm};
use crate::diag::{Location, Problem, Problems};
use crate::inputs::{self, Node, SourceFile, World};
use crate::plan::{Plan, compile};

/// What is asked of a job: the file, and what the command line lays over it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The job file as given.
    pub job_file: PathBuf,
    /// `--site`; replaces the job's own unless empty.
    pub site: Vec<String>,
    /// `--set`, in order.
    pub set: Vec<String>,
    /// `--output-path`.
    pub output_path: Option<String>,
    /// `--job-id`.
    pub job_id: Option<String>,
    /// Arguments after `--`: appended to the driver's.
    pub driver_arguments: Vec<String>,
    /// What may be known of the machine.
    pub world: Arc<World>,
    /// Where `gym.log` and `print` go.
    pub log: LogSink,
    /// The process lives on after this, and should have its memory back.
    pub goes_on: bool,
}

impl Request {
    /// A job file and nothing more.
    #[must_use]
    pub fn new(job_file: impl Into<PathBuf>, world: World) -> Self {
        Self {
            job_file: job_file.into(),
            site: Vec::new(),
            set: Vec::new(),
            output_path: None,
            job_id: None,
            driver_arguments: Vec::new(),
            world: world.into(),
            log: LogSink::silent(),
            goes_on: false,
        }
    }
}

/// Reads a job and everything it needs, and makes the plan. What the author should know though the job runs is in
/// [`Plan::warnings`].
///
/// # Errors
/// Everything that is wrong with the job, as far as it can be said at once.
pub fn load(request: Request) -> Result<Plan, Problems> {
    let job_id = request.job_id.clone().unwrap_or_else(|| request.world.default_job_id.clone());
    check_job_id(&job_id)?;
    let world = Arc::clone(&request.world);
    let log = request.log.clone();
    let id = job_id.clone();
    vm::run(&world, &job_id, log, request.goes_on, move |lua| read(lua, &request, &id))
}

/// A job id is the name of a directory.
fn check_job_id(job_id: &str) -> Result<(), Problem> {
    let good = job_id.len() <= 128
        && job_id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && job_id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if good {
        return Ok(());
    }
    Err(Problem::new(format!("`{job_id}` is no job id"))
        .at("--job-id")
        .hint("letters, digits, `.`, `_` and `-`, at most 128, a letter or digit first"))
}

fn read(lua: &Lua, request: &Request, job_id: &str) -> Result<Plan, Problems> {
    let world = &request.world;
    let built_in = library::fragments();
    let layers = inputs::Request {
        world,
        job_id,
        site: &request.site,
        set: &request.set,
        output_path: request.output_path.as_deref(),
        built_in: &built_in,
    };
    let job_display = world.display(&request.job_file);
    let mut read_lua = |file: &SourceFile| read_lua(lua, file, file.display == job_display);
    let layers = layers.collect(&request.job_file, &mut read_lua)?;
    let job_file = layers.job_file.clone();
    let mut unreadable = layers.unreadable.clone();
    unreadable.extend(host(lua).map_err(|error| problem_of(lua, &error))?.problems.take());
    let mut checked = schema::check(layers, job_id, world);
    if !unreadable.is_empty() {
        // A key whose value could not be read is there: that it is missing is no news.
        let named: Vec<String> = unreadable.iter().map(|problem| problem.path.clone()).collect();
        let found = checked.problems.into_iter().filter(|problem| !named.contains(&problem.path));
        checked.problems = unreadable.into_iter().chain(found).collect();
    }
    if checked.problems.any_error() {
        // The check has found what processes are to each other as well; hooks would be asked about a job that nobody wrote.
        return Err(checked.problems);
    }
    let frame = frame(request, &checked.spec, job_id, job_file);
    let plan = assemble(lua, &checked.spec, &frame, checked.problems).and_then(compile);
    if !request.goes_on {
        // As with the VM: the end of the process frees all of it at once.
        std::mem::forget((checked.spec, checked.merged, frame));
    }
    plan
}

fn frame(request: &Request, spec: &Spec, job_id: &str, job_file: String) -> Frame {
    let world = &request.world;
    let file = world.absolute(&request.job_file);
    let folder = file.parent().unwrap_or(&world.working_directory);
    Frame {
        job_id: job_id.to_owned(),
        job_dir: format!("{}/{job_id}/{}", spec.output_path.trim_end_matches('/'), spec.name),
        job_file,
        folder: folder.display().to_string(),
        driver_arguments: request.driver_arguments.clone(),
        program: world.program.clone(),
    }
}

/// Runs a job or fragment in Lua, and reads what it returns.
fn read_lua(lua: &Lua, file: &SourceFile, is_job: bool) -> Result<Node, Problems> {
    let (wanted, what) = if is_job { ("job", "job") } else { ("site", "site fragment") };
    let place = Location::file(file.display.clone());
    let wrong = |message: String| {
        Problem::new(message).in_file(place.clone()).hint(format!("end the file with `return gym.{wanted} {{ ... }}`"))
    };
    let found = |error: mlua::Error| problem_of(lua, &error);
    let value = sandbox::run_author(lua, file).map_err(found)?;
    match &value {
        mlua::Value::Table(_) => {}
        mlua::Value::Nil => return Err(wrong(format!("the {what} returns nothing")).into()),
        other => {
            let kind = if other.is_number() || other.is_integer() { "number" } else { other.type_name() };
            return Err(wrong(format!("the {what} returns a {kind}, not a table")).into());
        }
    }
    match kind_of(lua, &value).map_err(found)? {
        Some(kind) if kind != wanted => {
            return Err(wrong(format!("the {what} returns gym.{kind}, not gym.{wanted}")).into());
        }
        _ => {}
    }
    // What cannot be read as a value is kept for later, so that it is said beside what the check finds.
    match to_node(lua, &value, &place, "", !is_job).map_err(found)? {
        Some(node) => Ok(node),
        None => Err(host(lua).map_err(found)?.problems.take()),
    }
}
