//! One process: what `/proc/PID/stat` says of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::kept::read;

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
    /// Its threads; 0 once all have ended.
    pub threads: u32,
    /// CPU time of all its threads, ended ones included, in the kernel's clock ticks.
    pub own_ticks: u64,
    /// CPU time of the children that it has waited for, and of those that they waited for, in clock ticks.
    pub waited_ticks: u64,
    /// Whether it still runs the program of the process that forked it.
    pub(super) forked: bool,
    /// Where its stack begins, which each exec chooses anew; 0 if that is not told.
    pub(super) stack: u64,
}

/// `PF_FORKNOEXEC` of the kernel's flags of a task.
const FORKED: u64 = 0x40;

impl Stat {
    /// Whether it can still do anything: neither a zombie nor dead. One whose first thread has ended lives on in the
    /// others, though the kernel calls it a zombie.
    #[must_use]
    pub fn alive(&self) -> bool {
        match self.state {
            'X' | 'x' => false,
            'Z' => self.threads > 1,
            _ => true,
        }
    }

    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        // The command's name stands in parentheses and may hold anything, parentheses and blanks included.
        let name_end = text.iter().rposition(|b| *b == b')')?;
        let (head, tail) = (&text[..name_end], text.get(name_end + 2..)?);
        let pid = number(head.split(|b| *b == b' ').next()?)?;
        let mut fields = tail.split(u8::is_ascii_whitespace);
        let state = char::from(*fields.next()?.first()?);
        let mut field = |skipped: usize| fields.nth(skipped);
        let parent = number(field(0)?)?;
        let group = number(field(0)?)?;
        let session = number(field(0)?)?;
        let flags: u64 = number(field(2)?)?;
        let own = number::<u64>(field(4)?)?.saturating_add(number(field(0)?)?);
        // Signed, and no kernel has said anything below 0.
        let waited = number::<u64>(field(0)?)?.saturating_add(number(field(0)?)?);
        let threads = number(field(2)?)?;
        let started = number(field(1)?)?;
        let stack = field(5).and_then(number).unwrap_or_default();
        Some(Self {
            identity: Identity { pid, started },
            state,
            parent,
            group,
            session,
            threads,
            own_ticks: own,
            waited_ticks: waited,
            forked: flags & FORKED != 0,
            stack,
        })
    }
}

/// A number in digits.
pub(super) fn number<T: FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
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

    /// Whether it is the kernel's own, whose pids system calls know, too.
    pub(super) fn is_live(&self) -> bool {
        self.root == Path::new("/proc")
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
        Stat::parse(&read(&self.file(pid, "stat")).ok()?)
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

    /// A variable of a process, as it was at its last exec; `None` if it has none or cannot be looked at.
    #[must_use]
    pub fn variable(&self, pid: i32, name: &str) -> Option<String> {
        let of = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
        let mut found = None;
        self.images("environ", &[pid], |_, entries| found = entries.split(|byte| *byte == 0).find_map(of));
        found.map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// What a process runs: its program and, where that is an interpreter, the script. Nothing else, since arguments may
    /// hold secrets.
    #[must_use]
    pub fn command(&self, pid: i32) -> String {
        let mut shown = String::new();
        self.images("cmdline", &[pid], |_, line| shown = shown_command(line));
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
        // Line breaks and bytes that are no UTF-8 may stand in a name, too.
        for name in [&b"a) b (c)"[..], b") R 1 1 1", b"\n\xff) Z", b""] {
            let text =
                [b"42 (", name, b") S 7 42 41 0 -1 4194624 1 2 3 4 5 6 7 8 20 0 9 0 98765 1000 20 18 1 2 77 0\n"];
            let stat = Stat::parse(&text.concat()).expect("well formed");
            assert_eq!((stat.identity.pid, stat.identity.started), (42, 98765));
            assert_eq!((stat.parent, stat.group, stat.session, stat.state), (7, 42, 41, 'S'));
            assert_eq!((stat.own_ticks, stat.waited_ticks, stat.threads, stat.stack), (11, 15, 9, 77));
            assert!(stat.forked);
        }
        for cut in ["42 (cut", "42 (cut)", "42 (cut) ", "42 (cut) S 1 2", "", "42 (a) S x"] {
            assert!(Stat::parse(cut.as_bytes()).is_none(), "{cut}");
        }
        let most = "42 (a) S 1 1 1 0 -1 0 1 2 3 4 18446744073709551615 18446744073709551615 1 2 20 0 1 0 7";
        assert_eq!(Stat::parse(most.as_bytes()).expect("well formed").own_ticks, u64::MAX);
    }

    #[test]
    fn a_first_thread_that_ended_is_not_the_end_of_the_others() {
        let stat = |state: char, threads: u32| {
            let text = format!("42 (a) {state} 7 42 41 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 98765");
            Stat::parse(text.as_bytes()).expect("well formed")
        };
        assert!(stat('Z', 2).alive());
        assert!(!stat('Z', 0).alive() && !stat('Z', 1).alive() && !stat('X', 2).alive());
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
