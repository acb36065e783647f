//! A small file system of its own for a program, which nobody else sees.

use std::process::{Command, Stdio};

use super::component::skip;

/// Mounts a `tmpfs` of so many KiB at `$at`, runs what follows, and copies what is there then to `$kept`.
const SCRIPT: &str = r#"
at=$1 kept=$2 size=$3
shift 3
mkdir -p "$at" && mount -t tmpfs -o "size=${size}k,mode=700" none "$at" || exit 99
"$@"
code=$?
cp -r "$at" "$kept"
exit $code
"#;

/// The words in front of a command line that give it a disk of `kib` KiB at the directory `at`; what it has in the end is
/// found in `kept`. `None` where nobody may mount anything: then the test says that it is skipped.
pub fn small_disk(at: &str, kept: &str, kib: u32) -> Option<Vec<String>> {
    let flags = if nix::unistd::geteuid().is_root() { "-m" } else { "-Urm" };
    let works = Command::new("unshare")
        .args([flags, "sh", "-c", "mount -t tmpfs none /tmp"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        skip("mount", "no file system can be mounted");
        return None;
    }
    Some(["unshare", flags, "sh", "-c", SCRIPT, "sh", at, kept, &kib.to_string()].map(str::to_owned).to_vec())
}
