//! Why a process ended that gymrun had not asked to: what was found, with its numbers, and in words.

use std::fmt;

use nix::sys::signal::Signal;
use serde::Serialize;

use super::samples::is_zero;
use crate::diag::{bytes, counted};

/// All that was found about one death.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The findings as a lower-case fragment.
    pub text: String,
    /// What was found; what says most comes first.
    pub findings: Vec<Finding>,
}

impl Explanation {
    /// `None` if nothing was found.
    #[must_use]
    pub fn of(findings: Vec<Finding>) -> Option<Self> {
        let words: Vec<String> = findings.iter().map(Finding::to_string).collect();
        (!findings.is_empty()).then(|| Self { text: words.join("; "), findings })
    }
}

/// One thing that was found about a death.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// The kernel killed it for memory.
    OutOfMemory {
        /// Whether the count of its own cgroup says so; else only the host's does, and its own cannot be seen.
        certain: bool,
        /// What was known of its memory.
        #[serde(flatten)]
        memory: MemoryAtDeath,
    },
    /// It ended in another way, but the kernel had just killed others for memory: its children, perhaps.
    OthersOutOfMemory {
        /// How many.
        kills: u64,
        /// Whether they were in its cgroup; else somewhere on the host, and the count of its cgroup cannot be seen.
        in_cgroup: bool,
        /// At most that long before.
        within_seconds: f64,
        /// What was known of its memory.
        #[serde(flatten)]
        memory: MemoryAtDeath,
    },
    /// It was not killed for memory: its cgroup counted nothing.
    NotForMemory {
        /// How many such kills the host counted in other cgroups meanwhile.
        #[serde(skip_serializing_if = "is_zero")]
        elsewhere: u64,
    },
    /// Whether the kernel killed it for memory cannot be seen: no counter is.
    MemoryKillsUnseen,
    /// It got a signal that gymrun did not send, nor the kernel as far as that can be seen. Whether it came from outside or
    /// from a process of the unit itself (`kill $$`), the kernel tells nobody but the process.
    FromOutside {
        /// The signal.
        signal: i32,
        /// It runs in a job of Slurm, which ends jobs with this signal.
        slurm: bool,
    },
    /// It ran into a resource limit.
    ResourceLimit {
        /// Of what.
        resource: Resource,
        /// Seconds or bytes.
        limit: u64,
    },
    /// A signal that a process brings about itself.
    OwnFault {
        /// The signal.
        signal: i32,
        /// The kernel's pattern for a core, if one was dumped.
        #[serde(skip_serializing_if = "Option::is_none")]
        core_pattern: Option<String>,
    },
    /// Its exit code is what a shell, or Python, gives when a child was ended by a signal.
    WrappedSignal {
        /// Its exit code.
        code: i32,
        /// The child's signal.
        signal: i32,
    },
    /// Its exit code is what a shell gives when a program cannot be run: 126 or 127.
    WrappedRefusal {
        /// Its exit code.
        code: i32,
    },
    /// Somebody else listens on its port, and it ended before it was ready: it may have found the port taken.
    PortTaken {
        /// The port.
        port: u16,
        /// Who has it: the end of a sentence.
        holder: String,
    },
    /// What a file system has left that it may have written to.
    Room {
        /// What the directory is to it.
        place: Place,
        /// The directory.
        path: String,
        /// Whether it has no room left, or hardly any.
        full: bool,
        /// Bytes.
        free_bytes: u64,
        /// Bytes.
        total_bytes: u64,
        /// How many files may still be made; only if it is files that it lacks.
        #[serde(skip_serializing_if = "Option::is_none")]
        free_files: Option<u64>,
    },
}

/// What was known of a process's memory when it died.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryAtDeath {
    /// The least limit on its cgroup in bytes; `None` if there is none, or it cannot be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// What its tree held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// What a tree held at the last sample before a death.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Held {
    /// Bytes.
    pub bytes: u64,
    /// Whether shared pages are counted in proportion (PSS); else in full (RSS).
    pub proportional: bool,
    /// How long before.
    pub seconds_before: f64,
}

/// What a limit is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// `RLIMIT_CPU`, seconds.
    CpuTime,
    /// `RLIMIT_FSIZE`, bytes.
    FileSize,
}

/// What a directory is to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// `/dev/shm`.
    SharedMemory,
    /// `TMPDIR`, or `/tmp`.
    Temporary,
    /// The job directory.
    JobDirectory,
}

fn name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.as_str().to_owned())
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { certain: true, memory } => {
                f.write_str("killed by the kernel for memory: ")?;
                match memory.limit_bytes {
                    Some(limit) => write!(f, "its cgroup's limit is {}", bytes(limit))?,
                    None => f.write_str("the host had none left, since no limit on its cgroup is seen")?,
                }
                memory.held(f)
            }
            Self::OutOfMemory { certain: false, memory } => {
                f.write_str(
                    "killed by SIGKILL, which gymrun did not send; the kernel has killed for memory on this host \
                             meanwhile, and whether it was this process cannot be seen here",
                )?;
                memory.held(f)
            }
            Self::OthersOutOfMemory { kills: count, in_cgroup, within_seconds, memory } => {
                let place = if *in_cgroup { "of its cgroup" } else { "somewhere on this host" };
                let count = counted(*count, "process", "processes");
                write!(f, "the kernel killed {count} {place} for memory in the {within_seconds:.1} s before")?;
                if let Some(limit) = memory.limit_bytes {
                    write!(f, ", its limit is {}", bytes(limit))?;
                }
                memory.held(f)
            }
            Self::NotForMemory { elsewhere: 0 } => f.write_str("no out-of-memory kill was counted"),
            Self::NotForMemory { elsewhere } => {
                write!(f, "no out-of-memory kill was counted in its cgroup, but {elsewhere} elsewhere on the host")
            }
            Self::MemoryKillsUnseen => f.write_str("whether the kernel did that for memory cannot be seen here"),
            Self::FromOutside { signal, slurm } => {
                let name = name(*signal);
                write!(
                    f,
                    "ended by {name}, which gymrun did not send: from outside, or from one of its own processes"
                )?;
                if *slurm {
                    f.write_str(" (Slurm sends it at `scancel`, at the time limit and when a job is preempted)")?;
                }
                Ok(())
            }
            Self::ResourceLimit { resource: Resource::CpuTime, limit } => {
                write!(f, "it used up its limit of CPU time, {limit} s (RLIMIT_CPU, `ulimit -t`)")
            }
            Self::ResourceLimit { resource: Resource::FileSize, limit } => {
                write!(f, "it wrote a file beyond its limit of size, {} (RLIMIT_FSIZE, `ulimit -f`)", bytes(*limit))
            }
            Self::OwnFault { signal, core_pattern } => {
                f.write_str(fault(*signal))?;
                core_pattern.as_deref().map_or(Ok(()), |pattern| core(f, pattern))
            }
            Self::WrappedSignal { code, signal } if *code > 128 + 64 => {
                write!(
                    f,
                    "its exit code {code} is -{signal}, what Python gives when a child was ended by {}",
                    name(*signal)
                )
            }
            Self::WrappedSignal { code, signal } => {
                write!(f, "its exit code {code} is what a shell gives when its child was ended by {}", name(*signal))
            }
            Self::WrappedRefusal { code } => {
                let what = if *code == crate::diag::exit::NOT_FOUND { "does not exist" } else { "cannot be executed" };
                write!(f, "its exit code {code} is what a shell gives when a program {what}")
            }
            Self::PortTaken { port, holder } => write!(f, "its port {port} is held by {holder}"),
            Self::Room { place, path, full, free_bytes, total_bytes, free_files } => {
                let left = match free_files {
                    Some(files) => counted(*files, "more file fits", "more files fit"),
                    None => format!("{} of {} left", bytes(*free_bytes), bytes(*total_bytes)),
                };
                if !full {
                    return write!(f, "`{path}`: {left}");
                }
                let way_out = match place {
                    Place::SharedMemory => "give a container more with `--shm-size`",
                    Place::Temporary => "let TMPDIR name a directory that has some",
                    Place::JobDirectory => "choose another `--output-path`",
                };
                write!(f, "`{path}` is full, {left}: make room, or {way_out}")
            }
        }
    }
}

impl MemoryAtDeath {
    fn held(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Held { bytes: held, proportional, seconds_before }) = self.held else { return Ok(()) };
        let measure = if proportional { "PSS" } else { "RSS" };
        write!(
            f,
            "; at the last sample ({seconds_before:.1} s before) its tree held {} ({measure}), and may have grown since",
            bytes(held)
        )
    }
}

/// What a process does to get a signal.
fn fault(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => "it touched memory that it does not have",
        libc::SIGBUS => "it touched a mapping with nothing behind it: the file was cut, or its file system was full",
        libc::SIGABRT => "it aborted itself",
        libc::SIGILL => "it ran an instruction that this machine does not have",
        libc::SIGFPE => "it calculated what has no result",
        libc::SIGSYS => "it made a system call that it may not make (seccomp)",
        libc::SIGPIPE => "it wrote to a pipe or socket that nobody reads any more",
        libc::SIGTRAP => "it ran into a breakpoint",
        _ => "a timer of its own ran out",
    }
}

fn core(f: &mut fmt::Formatter<'_>, pattern: &str) -> fmt::Result {
    match pattern.strip_prefix('|') {
        Some(command) => {
            let program = command.split_ascii_whitespace().next().unwrap_or_default();
            write!(f, "; its core went to `{program}`")
        }
        None if pattern.starts_with('/') => write!(f, "; its core is at `{pattern}`"),
        None => write!(f, "; its core is in its working directory, `{pattern}`"),
    }
}
