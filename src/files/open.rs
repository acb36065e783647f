//! Opening a file that others may have put something else in the place of: whoever opens, reads or writes a pipe may wait
//! for ever.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Opens a file for reading, at once.
///
/// # Errors
/// What the system says, or it is no file: a pipe, which would be waited for, a device, a directory.
pub fn open_file(path: &Path) -> io::Result<File> {
    open(File::options().read(true), path, false)
}

/// Opens a log for whoever appends to it, at once; 0600 if it is new.
///
/// # Errors
/// What the system says, or it is no file. A device (`/dev/null`) will do.
pub fn open_log(path: &Path) -> io::Result<File> {
    let file = open(File::options().create(true).append(true).read(true).mode(0o600), path, true)?;
    // It is the child's, who knows nothing of this.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(file)
}

fn open(options: &mut OpenOptions, path: &Path, device_will_do: bool) -> io::Result<File> {
    let file = options.custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits()).open(path)?;
    let kind = file.metadata()?.file_type();
    let will_do = kind.is_file() || (device_will_do && kind.is_char_device());
    if will_do { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

/// Reads a file of `most` bytes at most.
///
/// # Errors
/// As of [`open_file`], or it is larger.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    open_file(path)?.take(most.saturating_add(1)).read_to_end(&mut contents)?;
    if contents.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::{open_file, open_log, read_file};

    #[test]
    fn only_files_are_read_and_only_as_much_as_is_wanted() {
        let scratch = tempfile::tempdir().expect("a directory");
        let at = |name: &str| scratch.path().join(name);
        std::fs::write(at("file"), "12345").expect("writes");
        std::os::unix::fs::symlink(at("file"), at("link")).expect("a link");
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for name in ["file", "link"] {
            assert_eq!(read_file(&at(name), 5).expect("reads"), b"12345");
        }
        assert!(read_file(&at("file"), 4).is_err_and(|error| error.to_string() == "it is larger than 4 bytes"));
        for other in [at("pipe"), at(""), "/dev/zero".into(), at("nowhere")] {
            assert!(open_file(&other).is_err() && read_file(&other, 5).is_err(), "{}", other.display());
        }
        for (log, opens) in
            [("file", true), ("link", true), ("new", true), ("/dev/null", true), ("pipe", false), ("", false)]
        {
            assert_eq!(open_log(&at(log)).is_ok(), opens, "{log}");
        }
    }
}
