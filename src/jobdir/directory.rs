//! Making, locking and leaving a job directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::former::Former;
use crate::diag::Problem;
use crate::files::write_whole;
use crate::plan::Plan;

const LOCK: &str = ".lock";
const ATTEMPTS: &str = "attempts";

/// A job directory that this process holds.
#[derive(Debug)]
pub struct JobDir {
    path: PathBuf,
    _lock: Flock<File>,
    warnings: Vec<Problem>,
    former: Option<Former>,
}

impl JobDir {
    /// Makes and locks the job directory of a plan, moves a former attempt's files away, writes `plan.json`, and
    /// points `<output_path>/latest` at it.
    ///
    /// # Errors
    /// The directory cannot be made or written, or another gymrun holds it.
    pub fn create(plan: &Plan) -> Result<Self, Problem> {
        let path = PathBuf::from(&plan.job_dir);
        let wrong = |error: &io::Error| {
            Problem::new(format!("cannot use the job directory `{}`: {error}", path.display()))
                .at("output_path")
                .hint("name another one with --output-path DIR")
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|e| wrong(&e))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(|e| wrong(&e))?;
        let lock = lock(&path, plan)?;
        let mut warnings = Vec::new();
        let mut former = None;
        if let Some(attempt) = move_former_attempt(&path).map_err(|e| wrong(&e))? {
            former = Former::read(&path.join(ATTEMPTS).join(attempt.to_string()));
        }
        let plan_json = serde_json::to_vec_pretty(plan).map_err(|e| wrong(&io::Error::other(e)))?;
        write_whole(&path.join("plan.json"), &plan_json, 0o600).map_err(|e| wrong(&e))?;
        if let Err(error) = point_latest(plan) {
            warnings.push(Problem::warning(format!("cannot renew `{}/latest`: {error}", plan.output_path)));
        }
        Ok(Self { path, _lock: lock, warnings, former })
    }

    /// Where it is, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The former attempt, if it did not end as it should.
    #[must_use]
    pub fn former(&self) -> Option<&Former> {
        self.former.as_ref()
    }

    /// What was noticed while it was made.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }
}

fn lock(path: &Path, plan: &Plan) -> Result<Flock<File>, Problem> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path.join(LOCK))
        .map_err(|error| {
            Problem::new(format!("cannot write to the job directory `{}`: {error}", path.display())).at("output_path")
        })?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut lock) => {
            // For people who look: the lock itself is the kernel's.
            let _ = lock.set_len(0);
            let _ = writeln!(lock, "{}", std::process::id());
            Ok(lock)
        }
        Err((_, errno)) if errno != Errno::EWOULDBLOCK => {
            Err(Problem::new(format!("the job directory `{}` cannot be locked: {errno}", path.display()))
                .at("output_path")
                .hint("its file system has no locks for files: name a directory on another one with --output-path DIR"))
        }
        Err(_) => {
            let holder = fs::read_to_string(path.join(LOCK)).unwrap_or_default();
            let holder = holder.trim();
            let by = if holder.is_empty() { String::new() } else { format!(" (pid {holder})") };
            Err(Problem::new(format!("job `{}` is running already{by}: `{}` is locked", plan.job_id, path.display()))
                .hint("wait for it, or give another --job-id"))
        }
    }
}

/// Moves everything but the lock and older attempts to `attempts/N`; the number, if there was anything.
fn move_former_attempt(path: &Path) -> io::Result<Option<u32>> {
    let mut former = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name != LOCK && name != ATTEMPTS {
            former.push(name);
        }
    }
    if former.is_empty() {
        return Ok(None);
    }
    let attempts = path.join(ATTEMPTS);
    DirBuilder::new().recursive(true).mode(0o700).create(&attempts)?;
    let mut number = 1;
    while attempts.join(number.to_string()).exists() {
        number += 1;
    }
    let to = attempts.join(number.to_string());
    DirBuilder::new().mode(0o700).create(&to)?;
    for name in former {
        fs::rename(path.join(&name), to.join(&name))?;
    }
    Ok(Some(number))
}

fn point_latest(plan: &Plan) -> io::Result<()> {
    let latest = Path::new(&plan.output_path).join("latest");
    if let Ok(found) = fs::symlink_metadata(&latest)
        && !found.file_type().is_symlink()
    {
        return Err(io::Error::other("it is there and no symbolic link"));
    }
    let target = Path::new(&plan.job_id).join(&plan.name);
    let new = Path::new(&plan.output_path).join(format!(".latest-{}", std::process::id()));
    let _ = fs::remove_file(&new);
    std::os::unix::fs::symlink(target, &new)?;
    fs::rename(&new, &latest)
}
