//! Reading a file that others may have put something else in the place of.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a file for reading, at once.
///
/// # Errors
/// What the system says, or it is no file: a pipe, which would be waited for, a device, a directory.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
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
    use super::{open_file, read_file};

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
    }
}
