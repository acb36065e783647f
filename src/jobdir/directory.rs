//! Making, locking and leaving a job directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::former::Former;
use crate::diag::Problem;
use crate::files::{Reserved, write_whole};
use crate::plan::Plan;

const LOCK: &str = ".lock";
const ATTEMPTS: &str = "attempts";
/// What room is reserved for during a run.
const RESERVED_FOR: [&str; 2] = ["result.json", "otel/delivery.json"];

/// A job directory that this process holds.
#[derive(Debug)]
pub struct JobDir {
    path: PathBuf,
    _lock: Flock<File>,
    warnings: Vec<Problem>,
    former: Vec<Former>,
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
        move_former_attempt(&path).map_err(|e| wrong(&e))?;
        let former = unsaid(&path.join(ATTEMPTS));
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

    /// Former attempts that did not end as they should, and of which no run has said so. As a rule that is the last one;
    /// where the run after it came to nothing (a full disk) there are more.
    #[must_use]
    pub fn former(&self) -> &[Former] {
        &self.former
    }

    /// Notes that it was said of all of them.
    pub fn former_were_said(&self) {
        for former in &self.former {
            // If it fails it is said once more.
            let _ = fs::rename(hidden(&former.directory), &former.directory);
        }
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

/// Moves everything but the lock and older attempts to `attempts/N`, which is called `attempts/.N` until it was said that it
/// did not end as it should, or is seen that it did.
fn move_former_attempt(path: &Path) -> io::Result<()> {
    for name in RESERVED_FOR {
        Reserved::clear_left(&path.join(name));
    }
    let mut former = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name != LOCK && name != ATTEMPTS {
            former.push(name);
        }
    }
    if former.is_empty() {
        return Ok(());
    }
    let attempts = path.join(ATTEMPTS);
    DirBuilder::new().recursive(true).mode(0o700).create(&attempts)?;
    let mut to = attempts.join("1");
    let mut number = 1;
    while to.exists() || hidden(&to).exists() {
        number += 1;
        to = attempts.join(number.to_string());
    }
    let to = hidden(&to);
    DirBuilder::new().mode(0o700).create(&to)?;
    for name in former {
        fs::rename(path.join(&name), to.join(&name))?;
    }
    Ok(())
}

/// The attempt `attempts/N` as long as it is `attempts/.N`.
fn hidden(attempt: &Path) -> PathBuf {
    let name = attempt.file_name().unwrap_or_default().to_string_lossy();
    attempt.with_file_name(format!(".{name}"))
}

/// The attempts of which it is to be said that they did not end as they should, the oldest first. The others get their names.
fn unsaid(attempts: &Path) -> Vec<Former> {
    let entries = fs::read_dir(attempts).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix('.')?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    let mut unsaid = Vec::new();
    for number in numbers {
        let directory = attempts.join(number.to_string());
        match Former::read(&hidden(&directory)) {
            Some(former) => unsaid.push(Former { directory, ..former }),
            None => drop(fs::rename(hidden(&directory), &directory)),
        }
    }
    unsaid
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{hidden, move_former_attempt, unsaid};

    #[test]
    fn an_attempt_is_unsaid_until_it_was_said_or_ended_as_it_should() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (path, attempts) = (scratch.path(), scratch.path().join("attempts"));
        let put = |name: &str| fs::write(path.join(name), "{}").expect("writes");
        let numbers = || {
            let name = |former: &super::Former| former.directory.file_name().map(ToOwned::to_owned);
            unsaid(&attempts).iter().filter_map(name).collect::<Vec<_>>()
        };
        move_former_attempt(path).expect("there is nothing to move");
        assert_eq!(numbers(), [""; 0]);
        put(".lock");
        for expected in [&["1"][..], &["1", "2"]] {
            put("plan.json");
            move_former_attempt(path).expect("moves");
            assert_eq!(numbers(), expected);
        }
        // A run that came to nothing leaves nothing to move, and forgets nothing.
        move_former_attempt(path).expect("there is nothing to move");
        assert_eq!(numbers(), ["1", "2"]);
        let first = attempts.join("1");
        fs::rename(hidden(&first), &first).expect("is there");
        put("result.json");
        put(".result.json.killed.reserved");
        move_former_attempt(path).expect("moves");
        assert_eq!(numbers(), ["2"]);
        assert_eq!(
            fs::read_dir(attempts.join("3")).expect("reads").count(),
            1,
            "room that nobody needs any more is gone"
        );
        assert!(attempts.join("1/plan.json").exists() && attempts.join("3/result.json").exists());
    }
}
