//! Control groups: where a process's are seen from here, and what its memory controller says.
//!
//! `/proc/PID/cgroup` names the cgroup of a process in each hierarchy, as seen from the cgroup namespace of whoever reads it;
//! the reader's own mountinfo says where a hierarchy is mounted and which of its cgroups that mount shows as its root, in
//! the same terms. The two together are a directory. A cgroup that no mount shows (it is above the namespace's root, or the
//! file system of another container) is none. Both versions are known, also side by side, when the memory controller is
//! still in the first: a controller belongs to one hierarchy only.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use super::identity::Proc;

/// Limits from here on are none: the first version has no word for that, but the greatest multiple of a page.
const UNLIMITED: u64 = 1 << 62;

/// Which kind of hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CgroupVersion {
    /// One hierarchy for each controller.
    V1,
    /// One for all: `cgroup2`.
    V2,
}

/// The cgroup that accounts for a process's memory: the nearest one that has the controller. Only its path is kept: each
/// question reads anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryCgroup {
    version: CgroupVersion,
    directory: PathBuf,
    /// The mount: nothing above it can be seen.
    top: PathBuf,
}

impl MemoryCgroup {
    /// Which kind of hierarchy it is in.
    #[must_use]
    pub fn version(&self) -> CgroupVersion {
        self.version
    }

    /// Its directory, as seen from here.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The pids of the processes that are in this very cgroup, in no order; none where they cannot be listed.
    #[must_use]
    pub fn members(&self) -> Vec<i32> {
        members(&self.directory)
    }

    /// Bytes in use, page cache included; `None` if it is gone.
    #[must_use]
    pub fn current(&self) -> Option<u64> {
        number(&self.directory.join(match self.version {
            CgroupVersion::V1 => "memory.usage_in_bytes",
            CgroupVersion::V2 => "memory.current",
        }))
    }

    /// The smallest limit in bytes of this cgroup and of those around it, as far as they can be seen; `None` is none.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        if self.version == CgroupVersion::V1 {
            // The kernel's own answer has those above the mount, too.
            let whole = keyed(&self.directory.join("memory.stat"), "hierarchical_memory_limit");
            if whole.is_some() {
                return whole.filter(|limit| *limit < UNLIMITED);
            }
        }
        let file = match self.version {
            CgroupVersion::V1 => "memory.limit_in_bytes",
            CgroupVersion::V2 => "memory.max",
        };
        // `max` is no number.
        up(&self.directory, &self.top).filter_map(|at| number(&at.join(file))).filter(|l| *l < UNLIMITED).min()
    }

    /// How many processes the kernel has killed for memory: in the second version those of the cgroups below it, too.
    /// `None` if that is not counted, or the cgroup is gone.
    #[must_use]
    pub fn oom_kills(&self) -> Option<u64> {
        let file = match self.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        keyed(&self.directory.join(file), "oom_kill")
    }
}

/// A mount of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// What is at its root, in the words of `/proc/PID/cgroup`.
    root: PathBuf,
    /// Where it is seen.
    point: PathBuf,
    version: CgroupVersion,
    /// It has the memory controller of the first version.
    memory: bool,
}

/// The cgroup file systems that are mounted here.
#[derive(Clone, Debug)]
pub struct Cgroups {
    proc: Proc,
    mounts: Vec<Mount>,
}

impl Proc {
    /// The cgroup file systems that are mounted now. Mount points are taken to be below the directory that `/proc` is in.
    #[must_use]
    pub fn cgroups(&self) -> Cgroups {
        let table = fs::read(self.global("self/mountinfo")).unwrap_or_default();
        let base = self.global("").parent().map(Path::to_path_buf).unwrap_or_default();
        let mounts = table.split(|b| *b == b'\n').filter_map(|line| mount(line, &base)).collect();
        Cgroups { proc: self.clone(), mounts }
    }

    /// The cgroup of a process in the one hierarchy of version 2, as the kernel names it to us.
    #[must_use]
    pub fn cgroup_name(&self, pid: i32) -> Option<String> {
        Memberships::of(self, pid)?.unified?.into_os_string().into_string().ok()
    }

    /// How many processes of the whole host the kernel has killed for memory since it booted; `None` if it does not say.
    #[must_use]
    pub fn oom_kills(&self) -> Option<u64> {
        keyed(&self.global("vmstat"), "oom_kill")
    }
}

impl Cgroups {
    /// The cgroup that accounts for the memory of a process; `None` if there is none, or it cannot be seen from here.
    #[must_use]
    pub fn memory(&self, pid: i32) -> Option<MemoryCgroup> {
        let of_process = Memberships::of(&self.proc, pid)?;
        let (version, path) = match (of_process.memory, of_process.unified) {
            (Some(path), _) => (CgroupVersion::V1, path),
            (None, Some(path)) => (CgroupVersion::V2, path),
            (None, None) => return None,
        };
        let file = match version {
            CgroupVersion::V1 => "memory.usage_in_bytes",
            CgroupVersion::V2 => "memory.current",
        };
        let mounts = self.mounts.iter().filter(|m| m.version == version && (m.memory || version == CgroupVersion::V2));
        mounts.filter_map(|mount| Some((mount, directory(mount, &path, pid)?))).find_map(|(mount, own)| {
            // A cgroup without the controller is accounted for by the one around it.
            let directory = up(&own, &mount.point).find(|at| at.join(file).exists())?.to_path_buf();
            Some(MemoryCgroup { version, directory, top: mount.point.clone() })
        })
    }

    /// The directory of a process in the second version's hierarchy; `None` if it is not mounted, or does not show it.
    #[must_use]
    pub fn unified(&self, pid: i32) -> Option<PathBuf> {
        let path = Memberships::of(&self.proc, pid)?.unified?;
        let mut mounts = self.mounts.iter().filter(|m| m.version == CgroupVersion::V2);
        mounts.find_map(|mount| directory(mount, &path, pid))
    }
}

/// What `/proc/PID/cgroup` says.
struct Memberships {
    memory: Option<PathBuf>,
    unified: Option<PathBuf>,
}

impl Memberships {
    fn of(proc: &Proc, pid: i32) -> Option<Self> {
        let text = fs::read(proc.file(pid, "cgroup")).ok()?;
        let mut found = Self { memory: None, unified: None };
        for line in text.split(|b| *b == b'\n') {
            // hierarchy:controllers:path, and the path may have colons.
            let mut fields = line.splitn(3, |b| *b == b':');
            let (Some(hierarchy), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let path = PathBuf::from(OsString::from_vec(path.to_vec()));
            if hierarchy == b"0" && controllers.is_empty() {
                found.unified = Some(path);
            } else if controllers.split(|b| *b == b',').any(|controller| controller == b"memory") {
                found.memory = Some(path);
            }
        }
        Some(found)
    }
}

/// A line of mountinfo, if it is a cgroup file system.
fn mount(line: &[u8], base: &Path) -> Option<Mount> {
    let mut fields = line.split(|b| *b == b' ');
    let root = unescaped(fields.nth(3)?);
    let point = unescaped(fields.next()?);
    // Optional fields, however many, end with a dash.
    let mut after = fields.skip_while(|field| *field != b"-").skip(1);
    let version = match after.next()? {
        b"cgroup" => CgroupVersion::V1,
        b"cgroup2" => CgroupVersion::V2,
        _ => return None,
    };
    let memory = after.nth(1)?.split(|b| *b == b',').any(|option| option == b"memory");
    let point = base.join(point.strip_prefix("/").ok()?);
    Some(Mount { root, point, version, memory })
}

/// Blanks and backslashes stand in mountinfo as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        rest = tail;
        let octal = tail.get(..3).and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 8).ok());
        match (first, octal) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => bytes.push(*first),
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Where a mount shows the cgroup `path` of a process; `None` if it does not.
fn directory(mount: &Mount, path: &Path, pid: i32) -> Option<PathBuf> {
    // From the root of a namespace upwards there are only `..`: what is above the mount's root is not in it.
    let inside = path.strip_prefix(&mount.root).ok();
    let inside = inside.filter(|inside| inside.components().all(|part| matches!(part, Component::Normal(_))));
    let shown = inside.map(|inside| mount.point.join(inside)).filter(|at| at.is_dir());
    // A container may have a mount of another namespace than its own: then it has the process at its root or nowhere.
    shown.or_else(|| members(&mount.point).contains(&pid).then(|| mount.point.clone()))
}

fn members(directory: &Path) -> Vec<i32> {
    let members = fs::read(directory.join("cgroup.procs")).unwrap_or_default();
    members.split(|b| *b == b'\n').filter_map(super::identity::number).collect()
}

/// A directory and those around it, up to `top`.
fn up<'a>(from: &'a Path, top: &'a Path) -> impl Iterator<Item = &'a Path> {
    from.ancestors().take_while(move |at| at.starts_with(top))
}

/// A file that has one number.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The number of a key in a file of lines `key number`.
fn keyed(file: &Path, key: &str) -> Option<u64> {
    let text = fs::read(file).ok()?;
    text.split(|b| *b == b'\n').find_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok()
    })
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
