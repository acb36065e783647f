//! Which file a command means, and why it cannot be run.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::launch::{LaunchError, LaunchErrorKind};
use super::spawn::{Refused, Step};

/// The file that `word`, the first word of a command, means: a bare name is looked up in `search` (a PATH), a path is
/// relative to `cwd`.
pub(super) fn find(word: &OsStr, cwd: &Path, search: Option<&OsStr>) -> Result<PathBuf, LaunchError> {
    let what = match std::fs::metadata(cwd) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some("is not a directory".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("does not exist".to_owned()),
        Err(error) => Some(format!("cannot be reached: {error}")),
    };
    if let Some(what) = what {
        return Err(LaunchError::new(
            LaunchErrorKind::Directory,
            format!("the working directory `{}` {what}", cwd.display()),
        ));
    }
    if word.is_empty() {
        return Err(LaunchError::new(LaunchErrorKind::NotFound, "the command's first word is empty"));
    }
    if word.as_bytes().contains(&b'/') {
        let path = cwd.join(word);
        return executable(&path).map(|()| path);
    }
    let default = OsString::from("/usr/local/bin:/usr/bin:/bin");
    let search = search.unwrap_or(&default);
    let mut refused = None;
    for directory in std::env::split_paths(search) {
        // An empty entry of PATH is the working directory, as everywhere.
        let path = if directory.as_os_str().is_empty() { cwd.join(word) } else { cwd.join(directory).join(word) };
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind == LaunchErrorKind::NotFound => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        LaunchError::new(
            LaunchErrorKind::NotFound,
            format!("`{}` is not found in gymrun's PATH ({})", word.display(), search.display()),
        )
    }))
}

fn executable(path: &Path) -> Result<(), LaunchError> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(LaunchError::new(LaunchErrorKind::NotExecutable, format!("`{shown}` cannot be reached: {error}")))
        }
        Err(_) => Err(LaunchError::new(LaunchErrorKind::NotFound, format!("`{shown}` does not exist"))),
        Ok(found) if found.is_dir() => {
            Err(LaunchError::new(LaunchErrorKind::NotExecutable, format!("`{shown}` is a directory")))
        }
        Ok(_) => match access(path, AccessFlags::X_OK) {
            Ok(()) => Ok(()),
            Err(_) => Err(LaunchError::new(
                LaunchErrorKind::NotExecutable,
                format!("`{shown}` is not executable (no x permission)"),
            )),
        },
    }
}

/// What it means that a child could not be started though its file can be executed.
pub(super) fn refusal(path: &Path, cwd: &Path, refused: &Refused) -> LaunchError {
    let shown = path.display();
    let Refused { step, error } = refused;
    let number = error.raw_os_error();
    match (step, number) {
        (Step::Directory, _) => LaunchError::new(
            LaunchErrorKind::Directory,
            format!("the working directory `{}` cannot be entered: {error}", cwd.display()),
        ),
        (Step::Execute, Some(libc::ENOENT)) => {
            let named = interpreter(path).map_or_else(String::new, |named| format!(" (`{named}`)"));
            LaunchError::new(
                LaunchErrorKind::NotFound,
                format!("`{shown}` cannot be run: the interpreter that it names does not exist{named}"),
            )
        }
        (Step::Execute, Some(libc::ENOEXEC)) => LaunchError::new(
            LaunchErrorKind::NotExecutable,
            format!("`{shown}` is neither a program for this machine nor a script that begins with `#!`"),
        ),
        (Step::Execute, Some(libc::EACCES | libc::EPERM)) => {
            let why = interpreter(path).map_or_else(
                || "its file system may be mounted `noexec`".to_owned(),
                |named| format!("its interpreter `{named}` must be executable, too"),
            );
            LaunchError::new(LaunchErrorKind::NotExecutable, format!("`{shown}` cannot be run: {error}; {why}"))
        }
        (Step::Execute, Some(libc::E2BIG)) => LaunchError::new(
            LaunchErrorKind::System,
            format!("`{shown}` cannot be run: its command and its environment are too long together ({error})"),
        ),
        (Step::Execute, _) => {
            LaunchError::new(LaunchErrorKind::System, format!("`{shown}` cannot be run: {}", in_words(error)))
        }
        (Step::Fork, _) => LaunchError::new(
            LaunchErrorKind::System,
            format!("no process can be made for `{shown}`: {}", in_words(error)),
        ),
        (Step::Prepare | Step::Order, _) => {
            LaunchError::new(LaunchErrorKind::System, format!("cannot start `{shown}`: {}", in_words(error)))
        }
    }
}

/// An error of the system; where it is out of descriptors, processes or threads, with the way out.
#[must_use]
pub fn in_words(error: &io::Error) -> String {
    match error.raw_os_error() {
        // Of all that gymrun asks for, only a process or a thread may be had again later.
        Some(libc::EAGAIN) => {
            format!("{error}; as many processes and threads run as may (`ulimit -u`, or `pids.max` of a cgroup)")
        }
        Some(libc::EMFILE) => format!("{error}; gymrun itself has all that it may (`ulimit -Hn`)"),
        Some(libc::ENFILE) => format!("{error}: the whole machine has all that it may (`fs.file-max`)"),
        _ => error.to_string(),
    }
}

/// What a script names behind `#!`.
fn interpreter(path: &Path) -> Option<String> {
    let mut begin = [0; 256];
    let length = File::open(path).and_then(|mut file| file.read(&mut begin)).ok()?;
    let line = begin[..length].split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let word = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    Some(String::from_utf8_lossy(word).into_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::{OsStr, OsString};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::{LaunchErrorKind, Refused, Step, find, refusal};
    use crate::process::environment::Environment;
    use crate::process::spawn::{Image, spawn};

    #[test]
    fn the_three_ways_to_be_wrong_are_told_apart() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let dir = scratch.path();
        fs::write(dir.join("plain"), "").expect("a scratch file");
        fs::write(dir.join("tool"), "#!/bin/sh\n").expect("a scratch file");
        fs::set_permissions(dir.join("tool"), fs::Permissions::from_mode(0o755)).expect("a mode");
        let search = Some(dir.as_os_str());
        let kind = |word: &str, cwd: &Path| find(OsStr::new(word), cwd, search).map_err(|e| e.kind);
        assert_eq!(kind("tool", dir), Ok(dir.join("tool")));
        assert_eq!(kind("./tool", dir), Ok(dir.join("./tool")));
        assert_eq!(kind("no-such-bin", dir), Err(LaunchErrorKind::NotFound));
        assert_eq!(kind("plain", dir), Err(LaunchErrorKind::NotExecutable));
        assert_eq!(kind("./plain", dir), Err(LaunchErrorKind::NotExecutable));
        assert_eq!(kind("tool", &dir.join("gone")), Err(LaunchErrorKind::Directory));
    }

    #[test]
    fn each_step_names_its_own_culprit() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let script = scratch.path().join("script");
        fs::write(&script, "#! /no/such/python -u\n").expect("a scratch file");
        let said = |step, number| {
            let refused = Refused { step, error: std::io::Error::from_raw_os_error(number) };
            let error = refusal(&script, Path::new("/the/cwd"), &refused);
            (error.code(), error.message)
        };
        for (step, number, code, words) in [
            (Step::Directory, libc::EACCES, 125, "directory `/the/cwd` cannot be entered: Permission denied"),
            (Step::Directory, libc::ENOENT, 125, "directory `/the/cwd` cannot be entered: No such file"),
            (Step::Execute, libc::ENOENT, 127, "interpreter that it names does not exist (`/no/such/python`)"),
            (Step::Execute, libc::EACCES, 126, "its interpreter `/no/such/python` must be executable"),
            (Step::Execute, libc::ENOEXEC, 126, "neither a program for this machine"),
            (Step::Execute, libc::E2BIG, 125, "environment are too long together"),
            (Step::Fork, libc::EAGAIN, 125, "`ulimit -u`"),
            (Step::Prepare, libc::EMFILE, 125, "`ulimit -Hn`"),
            (Step::Order, libc::EPERM, 125, "cannot start"),
        ] {
            let (got, message) = said(step, number);
            assert!(got == code && message.contains(words), "{step:?} {number}: {got} {message}");
        }
    }

    #[test]
    fn the_child_says_which_step_failed() {
        let image = |cwd, path| {
            let argv = [OsString::from("x")];
            let environment = Environment::default();
            let streams = [None; 3];
            let image = Image { path, argv: &argv, environment: &environment, cwd, streams, has_terminal: false };
            spawn(&image, None).map_err(|refused| refused.step)
        };
        assert_eq!(image(Path::new("/no/such"), Path::new("/bin/sh")), Err(Step::Directory));
        assert_eq!(image(Path::new("/"), Path::new("/no/such")), Err(Step::Execute));
        assert_eq!(image(Path::new("/"), Path::new("/\0")), Err(Step::Prepare));
    }
}
