//! From a command line to layers: the job, its fragments, the settings.

use std::path::Path;

use super::files::{Language, SourceFile};
use super::fragments::{BuiltIn, Fragment, Library, ReadFile, names};
use super::interpolate::Reading;
use super::node::{Node, NodeValue};
use super::read::read_yaml_beside;
use super::settings::{COMMAND_LINE, settings};
use super::world::World;
use crate::diag::{Location, Problem, Problems};
use crate::plan::Text;

/// What a command line asks for, as far as layers go.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// What may be known of the machine.
    pub world: &'a World,
    /// The job id.
    pub job_id: &'a str,
    /// `--site`: replaces the job's own `site` unless empty.
    pub site: &'a [String],
    /// `--set`, in order.
    pub set: &'a [String],
    /// `--output-path`.
    pub output_path: Option<&'a str>,
    /// The fragments in the binary.
    pub built_in: &'a [BuiltIn],
}

/// The layers of a job, lowest first: fragments, job, command line. Nothing is checked yet.
#[derive(Clone, Debug)]
pub struct Layers {
    /// The job file's name in problems; `<job>` if there is none.
    pub job_file: String,
    /// The fragments, lowest first.
    pub fragments: Vec<Fragment>,
    /// The job, `site` taken out.
    pub job: Node,
    /// `--set` and `--output-path`, `site` taken out.
    pub settings: Node,
    /// Values that could not be read, in files that could; their text stands in their place.
    pub unreadable: Problems,
}

impl Request<'_> {
    /// The layers of the job in a file. `read_lua` reads Lua files; YAML is read here.
    pub fn collect(&self, job_file: &Path, read_lua: &mut ReadFile<'_>) -> Result<Layers, Problems> {
        let reading = Reading { world: self.world, job_id: self.job_id };
        let file = SourceFile::read_job(job_file, self.world)?;
        let mut unreadable = Problems::new();
        let mut read = |file: &SourceFile| match file.language {
            Language::Lua => read_lua(file),
            Language::Yaml => read_yaml_beside(&file.text, &file.display, reading, &mut unreadable),
        };
        let job = read(&file).and_then(|job| refuse_submit_form(job, file.language));
        let layers = self.collect_around(job, &file.display, &mut read);
        beside(layers, unreadable)
    }

    fn collect_around(
        &self,
        job: Result<Node, Problems>,
        job_file: &str,
        read: &mut ReadFile<'_>,
    ) -> Result<Layers, Problems> {
        let mut problems = Problems::new();
        let mut keep = |found: Problems| problems.extend(found);
        let reading = Reading { world: self.world, job_id: self.job_id };
        let job = job.map_err(&mut keep).ok();
        let settings = settings(self.set, reading).map_err(&mut keep).ok();
        // Without the job its `site` is not known either: what was found so far is all that can be said.
        let (Some(mut job), Some(mut settings)) = (job, settings) else { return Err(problems) };
        if let (Some(path), NodeValue::Map(map)) = (self.output_path, &mut settings.value) {
            let location = Location::file(COMMAND_LINE);
            map.insert("output_path".into(), Node { value: NodeValue::Text(Text::literal(path)), location });
        }
        let library = Library::new(self.world, self.built_in);
        let site = self.site(&library, take(&mut job, "site"), take(&mut settings, "site"), &mut problems);
        let fragments = library.collect(&site, read).map_err(|found| problems.extend(found)).unwrap_or_default();
        problems.into_result(Layers {
            job_file: job_file.to_owned(),
            fragments,
            job,
            settings,
            unreadable: Problems::new(),
        })
    }

    /// The names of the fragments, lowest first, and who asked for them.
    fn site(
        &self,
        library: &Library<'_>,
        job: Option<Node>,
        set: Option<Node>,
        problems: &mut Problems,
    ) -> Vec<(String, Location)> {
        if !self.site.is_empty() {
            let listed = self.site.iter().flat_map(|list| list.split(','));
            return listed.map(|name| (name.trim().to_owned(), Location::file(COMMAND_LINE))).collect();
        }
        if let Some(node) = set.or(job) {
            let listed = names(&node, "site", problems);
            if !listed.is_empty() || problems.any_error() {
                return listed;
            }
        }
        let variable = self.world.variable("GYMRUN_SITE").unwrap_or_default();
        let listed: Vec<_> = variable.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if !listed.is_empty() {
            let place = || Location::file("<GYMRUN_SITE>");
            return listed.into_iter().map(|name| (name.to_owned(), place())).collect();
        }
        let name = if library.has("default") { "default" } else { "local" };
        vec![(name.to_owned(), Location::file("<built-in>"))]
    }
}

/// The layers with what could not be read, or all problems.
fn beside(layers: Result<Layers, Problems>, unreadable: Problems) -> Result<Layers, Problems> {
    match layers {
        Ok(layers) => Ok(Layers { unreadable, ..layers }),
        Err(found) => Err(unreadable.into_iter().chain(found).collect()),
    }
}

fn take(node: &mut Node, key: &str) -> Option<Node> {
    match &mut node.value {
        NodeValue::Map(map) => map.shift_remove(key).filter(|value| value.value != NodeValue::Unset),
        _ => None,
    }
}

/// A YAML file with `compute` is a `gym eval submit` file.
fn refuse_submit_form(job: Node, language: Language) -> Result<Node, Problems> {
    match &job.value {
        NodeValue::Map(map) if language == Language::Yaml && map.contains_key("compute") => {
            Err(Problem::new("a `gym eval submit` file (it has `compute`) is not supported yet")
                .at("compute")
                .in_file(map["compute"].location.clone())
                .hint("write a job file: `name`, `services`, `servers`, `driver`")
                .into())
        }
        _ => Ok(job),
    }
}
