//! The write.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes a file as a whole, whatever is there, with the mode from the start; its directory is made, 0700, if it is not
/// there.
///
/// # Errors
/// What the system says; what was there stays then.
pub fn write_whole(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    write(path, contents, mode, false)
}

/// The same, and when it is done the file and its name are on the disk, whatever becomes of the machine.
///
/// # Errors
/// What the system says. Either what was there stays then, or the file is whole and may be lost with the machine.
pub fn write_synced(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    write(path, contents, mode, true)
}

fn write(path: &Path, contents: &[u8], mode: u32, synced: bool) -> io::Result<()> {
    let directory = directory_of(path);
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(contents)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    if synced {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    if synced { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// The directory that a path is in.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::{write_synced, write_whole};

    #[test]
    fn whole_with_its_mode_and_nothing_beside_it() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("new/x.json");
        for (contents, mode) in [("one", 0o600), ("two", 0o755)] {
            let write = if contents == "one" { write_whole } else { write_synced };
            write(&path, contents.as_bytes(), mode).expect("writes");
            assert_eq!(fs::read_to_string(&path).expect("reads"), contents);
            assert_eq!(fs::metadata(&path).expect("is there").permissions().mode() & 0o777, mode);
        }
        let directory = path.parent().expect("a directory");
        assert_eq!(fs::read_dir(directory).expect("reads").count(), 1);
        assert_eq!(fs::metadata(directory).expect("is there").permissions().mode() & 0o777, 0o700);
        assert!(write_whole(directory, b"", 0o600).is_err(), "a directory is in the way");
        assert_eq!(fs::read_dir(scratch.path()).expect("reads").count(), 1, "nothing is left of what failed");
    }
}
