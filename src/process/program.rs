//! Which file a command means, and why it cannot be run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::launch::{LaunchError, LaunchErrorKind};

/// The file that `word`, the first word of a command, means: a bare name is looked up in `search` (a PATH), a path is
/// relative to `cwd`.
pub(super) fn find(word: &OsStr, cwd: &Path, search: Option<&OsStr>) -> Result<PathBuf, LaunchError> {
    if !cwd.is_dir() {
        let what = if cwd.exists() { "is not a directory" } else { "does not exist" };
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

/// What the kernel's refusal to execute an executable file means.
pub(super) fn refusal(path: &Path, error: &std::io::Error) -> LaunchError {
    let shown = path.display();
    match error.raw_os_error() {
        Some(libc::ENOENT) => LaunchError::new(
            LaunchErrorKind::NotFound,
            format!("`{shown}` cannot be run: the interpreter that it names does not exist"),
        ),
        Some(libc::ENOEXEC) => LaunchError::new(
            LaunchErrorKind::NotExecutable,
            format!("`{shown}` is neither a program for this machine nor a script that begins with `#!`"),
        ),
        Some(libc::EACCES | libc::EPERM) => {
            LaunchError::new(LaunchErrorKind::NotExecutable, format!("`{shown}` cannot be run: {error}"))
        }
        _ => LaunchError::new(LaunchErrorKind::System, format!("cannot start `{shown}`: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::{LaunchErrorKind, find};

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
}
