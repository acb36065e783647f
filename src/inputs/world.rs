//! What reading a job may know of the machine and of the person who runs it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::diag::Location;

/// Everything outside of the files themselves that a plan depends on. Nothing else is asked of the machine while a job
/// is read, so a test gives its own and sees nothing of the real one.
#[derive(Clone, Debug)]
pub struct World {
    /// gymrun's own environment. Variables that are not UTF-8 are left out.
    pub environment: BTreeMap<String, String>,
    /// The name of the user: attribute `user`.
    pub user: String,
    /// The number of the user.
    pub uid: u32,
    /// Absolute. Paths from the command line are relative to it.
    pub working_directory: PathBuf,
    /// The job id if none is given: `gym-job-<UTC YYYYmmdd_HHMMSS>-<6 hex>`.
    pub default_job_id: String,
    /// Whether secrets and the like must be there (`run`, `plan`) or are not looked at (`check`).
    pub look_up_secrets: bool,
    /// What runs gymrun's own subcommands: this program.
    pub program: String,
    /// How long policy may take in all; a script that takes longer is ended.
    pub time_limit: Duration,
}

/// How long a job may take to be read.
pub const TIME_LIMIT: Duration = Duration::from_secs(10);

impl World {
    /// The machine and the user as they are.
    pub fn real() -> io::Result<Self> {
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let uid = nix::unistd::getuid();
        let user = local_user(uid.as_raw())
            .or_else(|| nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name))
            .or_else(|| environment.get("USER").filter(|name| !name.is_empty()).cloned())
            .unwrap_or_else(|| uid.to_string());
        let program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
        let program = program.unwrap_or_else(|| "gymrun".into());
        let working_directory = std::env::current_dir()?;
        if working_directory.to_str().is_none() {
            return Err(io::Error::other("its name is no UTF-8, as the text of a plan is; run gymrun in another one"));
        }
        let time = jiff::Timestamp::now().strftime("%Y%m%d_%H%M%S");
        Ok(Self {
            default_job_id: format!("gym-job-{time}-{:06x}", fastrand::u32(..0x0100_0000)),
            environment,
            user,
            uid: uid.as_raw(),
            working_directory,
            look_up_secrets: true,
            program,
            time_limit: TIME_LIMIT,
        })
    }

    /// Nothing of the real machine: what tests of jobs and fragments begin with.
    #[must_use]
    pub fn isolated(working_directory: impl Into<PathBuf>) -> Self {
        Self {
            environment: BTreeMap::new(),
            user: "tester".into(),
            uid: 1000,
            working_directory: working_directory.into(),
            default_job_id: "test".into(),
            look_up_secrets: true,
            program: "gymrun".into(),
            time_limit: TIME_LIMIT,
        }
    }

    /// A variable of gymrun's own environment.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    /// A path of the command line made absolute, `.` and `..` taken out by name.
    #[must_use]
    pub fn absolute(&self, path: &Path) -> PathBuf {
        tidy(&self.working_directory.join(path))
    }

    /// The name of a file as a person would write it: relative to the working directory where it lies below it.
    #[must_use]
    pub fn display(&self, path: &Path) -> String {
        let path = self.absolute(path);
        path.strip_prefix(&self.working_directory).unwrap_or(&path).display().to_string()
    }

    /// The directory to which a path that was written at `location` is relative. Places that are no file
    /// (`<command line>`) stand for the working directory.
    #[must_use]
    pub fn directory_of(&self, location: &Location) -> PathBuf {
        if location.file.is_empty() || location.file.starts_with('<') {
            return self.working_directory.clone();
        }
        let file = self.absolute(Path::new(&*location.file));
        file.parent().map_or_else(|| self.working_directory.clone(), Path::to_path_buf)
    }
}

/// The name of a user of this machine's own list. To ask the system, which may know more of them, takes as long as half of
/// the rest that is asked of the machine.
fn local_user(uid: u32) -> Option<String> {
    name_of(uid, &std::fs::read_to_string("/etc/passwd").ok()?)
}

/// The user's name in the text of a `passwd`. Lines that only refer to other lists have a sign in front.
fn name_of(uid: u32, passwd: &str) -> Option<String> {
    let mut lines = passwd.lines().filter(|line| !line.starts_with(['+', '-', '#']));
    lines.find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    })
}

/// `path` without `.` and with each `..` taking the name before it away.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{World, name_of};
    use crate::diag::Location;

    #[test]
    fn a_user_is_found_by_number_in_the_list_of_the_machine() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\n+@staff::7:7:::\n\nbroken\nalice:x:1000:100::/home/alice:/bin/sh\n";
        assert_eq!(name_of(1000, passwd).as_deref(), Some("alice"));
        assert_eq!(name_of(0, passwd).as_deref(), Some("root"));
        assert_eq!(name_of(7, passwd), None);
    }

    #[test]
    fn paths_are_shown_short_and_found_again() {
        let world = World::isolated("/home/tester/jobs");
        assert_eq!(world.display(Path::new("./a/../job.lua")), "job.lua");
        assert_eq!(world.display(Path::new("/etc/gymrun/x.lua")), "/etc/gymrun/x.lua");
        assert_eq!(world.directory_of(&Location::new("sub/job.lua", 3)), Path::new("/home/tester/jobs/sub"));
        assert_eq!(world.directory_of(&Location::file("<command line>")), Path::new("/home/tester/jobs"));
    }
}
