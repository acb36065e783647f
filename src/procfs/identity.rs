//! One process: what `/proc/PID/stat` says of it.

use std::fs;
use std::io;
use std::path::PathBuf;

/// A process beyond doubt: its pid, and when it started (in clock ticks since the machine booted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The process id.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`.
    pub started: u64,
}

/// The fields of `/proc/PID/stat` that supervision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Pid and start time.
    pub identity: Identity,
    /// `R`, `S`, `D`, `Z`, ...
    pub state: char,
    /// The parent's pid.
    pub parent: i32,
    /// The process group.
    pub group: i32,
    /// The session.
    pub session: i32,
}

impl Stat {
    /// Whether it can still do anything: neither a zombie nor dead.
    #[must_use]
    pub fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    fn parse(text: &str) -> Option<Self> {
        // The command's name stands in parentheses and may hold anything, parentheses and blanks included.
        let (head, tail) = text.rsplit_once(')')?;
        let pid = head.split_once(' ')?.0.parse().ok()?;
        let mut fields = tail.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self { identity: Identity { pid, started }, state, parent, group, session })
    }
}

/// A /proc file system.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
}

impl Default for Proc {
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl Proc {
    /// Another root, as tests need it.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The path of a file of a process.
    pub(super) fn file(&self, pid: i32, name: &str) -> PathBuf {
        let mut path = self.root.join(pid.to_string());
        path.push(name);
        path
    }

    /// The path of a file that belongs to no process.
    pub(super) fn global(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What the kernel says of a process; `None` if there is none.
    #[must_use]
    pub fn stat(&self, pid: i32) -> Option<Stat> {
        // The name may be no UTF-8.
        let bytes = fs::read(self.file(pid, "stat")).ok()?;
        Stat::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Who a pid is now.
    #[must_use]
    pub fn identity(&self, pid: i32) -> Option<Identity> {
        self.stat(pid).map(|s| s.identity)
    }

    /// Whether that very process still runs (a zombie does not).
    #[must_use]
    pub fn alive(&self, identity: Identity) -> bool {
        self.stat(identity.pid).is_some_and(|s| s.identity == identity && s.alive())
    }

    /// All pids.
    pub(super) fn pids(&self) -> io::Result<Vec<i32>> {
        let mut pids = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            if let Some(pid) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) {
                pids.push(pid);
            }
        }
        Ok(pids)
    }

    /// What a process runs: its program and, where that is an interpreter, the script. Nothing else, since arguments may
    /// hold secrets.
    #[must_use]
    pub fn command(&self, pid: i32) -> String {
        let bytes = fs::read(self.file(pid, "cmdline")).unwrap_or_default();
        let shown = shown_command(&bytes);
        if !shown.is_empty() {
            return shown;
        }
        fs::read_to_string(self.file(pid, "comm")).map(|c| format!("[{}]", c.trim())).unwrap_or_default()
    }
}

const INTERPRETERS: [&str; 11] = ["python", "pypy", "bash", "dash", "zsh", "sh", "perl", "ruby", "node", "java", "lua"];

fn shown_command(line: &[u8]) -> String {
    let mut words = line.split(|b| *b == 0).map(String::from_utf8_lossy);
    let first = words.next().unwrap_or_default();
    // A process that has named itself anew has everything in one word.
    let program = first.split_ascii_whitespace().next().unwrap_or_default().to_owned();
    let file = program.rsplit('/').next().unwrap_or_default();
    let bare = file.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let script = match (INTERPRETERS.contains(&bare), words.next(), words.next()) {
        (true, Some(option), Some(module)) if bare == "python" && option == "-m" => format!("-m {module}"),
        (true, Some(script), _) if !script.starts_with('-') => script.into_owned(),
        _ => String::new(),
    };
    // A script is the name of a file or a module.
    let named = !script.is_empty() && !script.contains(['=', '\n', '@']) && script.len() <= 256;
    if named { format!("{program} {script}") } else { program }
}

#[cfg(test)]
mod tests {
    use super::{Proc, Stat, shown_command};

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 20 1844";
        let stat = Stat::parse(text).expect("well formed");
        assert_eq!((stat.identity.pid, stat.identity.started), (42, 98765));
        assert_eq!((stat.parent, stat.group, stat.session, stat.state), (7, 42, 41, 'S'));
        assert!(Stat::parse("42 (cut").is_none());
    }

    #[test]
    fn a_command_shows_its_program_and_its_script_and_no_argument() {
        let shown = |words: &[&str]| shown_command(words.join("\0").as_bytes());
        assert_eq!(shown(&["/usr/bin/python3.12", "app.py", "--token", "s3cret", ""]), "/usr/bin/python3.12 app.py");
        assert_eq!(shown(&["python", "-m", "vllm.entrypoints", "s3cret"]), "python -m vllm.entrypoints");
        assert_eq!(shown(&["bash", "-c", "curl -H s3cret"]), "bash");
        assert_eq!(shown(&["curl", "https://user:s3cret@host"]), "curl");
        assert_eq!(shown(&["serve --token=s3cret"]), "serve");
        assert_eq!(shown(&[""]), "");
    }

    #[test]
    fn this_process_is_alive_and_another_start_time_is_another_process() {
        let proc = Proc::default();
        let own = proc.identity(i32::try_from(std::process::id()).expect("pids are small")).expect("it runs");
        assert!(proc.alive(own));
        assert!(!proc.alive(super::Identity { started: own.started + 1, ..own }));
        assert!(proc.stat(i32::MAX).is_none());
    }
}
