//! A folder with files, and the plan of a job in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gymrun::diag::Problems;
use gymrun::inputs::World;
use gymrun::plan::{Plan, Text, Unit, Value, VariableValue};
use gymrun::policy::{Request, load};

/// A scratch folder.
pub struct Folder {
    directory: tempfile::TempDir,
    pub world: World,
}

/// A folder with these files.
pub fn folder(files: &[(&str, &str)]) -> Folder {
    let directory = tempfile::tempdir().expect("a scratch folder");
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    // A busy machine is no endless loop.
    let world = World { time_limit: Duration::from_mins(2), ..World::isolated(directory.path()) };
    Folder { directory, world }
}

/// A file of tests/data.
pub fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Folder {
    /// Sets a variable of gymrun's environment.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.world.environment.insert(name.into(), value.into());
        self
    }

    /// A short limit, for scripts that do not end.
    pub fn hurried(mut self) -> Self {
        self.world.time_limit = Duration::from_millis(300);
        self
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    pub fn request(&self, job: &str) -> Request {
        Request { job_id: Some("j1".into()), ..Request::new(self.path().join(job), self.world.clone()) }
    }

    pub fn load(&self, job: &str) -> Result<Plan, Problems> {
        load(self.request(job))
    }

    /// The plan of a job that is right.
    pub fn plan(&self, job: &str) -> Plan {
        self.load(job).unwrap_or_else(|problems| panic!("{job} has problems:\n{problems}"))
    }

    /// What the author of a wrong job is told.
    pub fn problems(&self, job: &str) -> String {
        match self.load(job) {
            Ok(_) => panic!("{job} has no problem"),
            Err(problems) => problems.to_string(),
        }
    }
}

/// The plan of a job in Lua alone in its folder.
pub fn plan(job: &str) -> Plan {
    folder(&[("job.lua", job)]).plan("job.lua")
}

/// What the author of a wrong job in Lua is told.
pub fn problems(job: &str) -> String {
    folder(&[("job.lua", job)]).problems("job.lua")
}

/// A unit of a plan.
pub fn unit<'a>(plan: &'a Plan, name: &str) -> &'a Unit {
    plan.unit(name).unwrap_or_else(|| panic!("no unit {name}"))
}

/// argv as it is printed.
pub fn argv(plan: &Plan, name: &str) -> Vec<String> {
    unit(plan, name).argv.iter().map(Text::to_string).collect()
}

/// A variable as it is printed; `None` if gymrun does not set it.
pub fn variable(plan: &Plan, name: &str, variable: &str) -> Option<String> {
    let variable = unit(plan, name).env.get(variable)?;
    if let Some(mask) = &variable.masked {
        return Some(mask.clone());
    }
    Some(match &variable.value {
        VariableValue::Set(Value::Text(text)) => text.to_string(),
        VariableValue::Set(Value::Encoded { value, .. }) => serde_json::to_string(&**value).expect("a document"),
        VariableValue::Unset => "<unset>".into(),
        VariableValue::CollectorCopy { variable, .. } => format!("<copy of {variable}>"),
    })
}
