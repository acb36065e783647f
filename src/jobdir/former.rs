//! What a former attempt in the same job directory left, if it did not end as it should.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::open_file;

/// How much of the events is looked at: what is wanted stands at the begin.
const BEGIN: u64 = 1 << 20;

/// A former attempt that has no `result.json`: its gymrun was killed, or the machine stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// Where its files are now.
    pub directory: PathBuf,
    /// The pid that its gymrun had.
    pub pid: Option<i32>,
    /// The cgroup of its processes, if it had one.
    pub cgroup: Option<PathBuf>,
}

impl Former {
    /// Reads a former attempt's directory; `None` if it ended as it should.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        if directory.join("result.json").exists() {
            return None;
        }
        let mut former = Self { directory: directory.to_owned(), pid: None, cgroup: None };
        if let Ok(file) = open_file(&directory.join("events.jsonl")) {
            // A line that is torn says nothing.
            for event in BufReader::new(file.take(BEGIN)).lines().map_while(Result::ok) {
                let event: Value = serde_json::from_str(&event).unwrap_or_default();
                match event["event"].as_str() {
                    Some("job_started") => former.pid = event["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()),
                    Some("contained") => former.cgroup = event["cgroup"].as_str().map(PathBuf::from),
                    _ => {}
                }
            }
        }
        Some(former)
    }

    /// What a person is told of it: without what became of its processes.
    #[must_use]
    pub fn sentence(&self) -> String {
        let by = self.pid.map(|pid| format!(" (gymrun's pid was {pid})")).unwrap_or_default();
        format!("the former attempt did not end cleanly{by}; its files are in `{}`", self.directory.display())
    }
}

#[cfg(test)]
mod tests {
    use super::Former;

    #[test]
    fn what_is_known_of_it_is_read_from_whole_lines() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let write = |name: &str, text: &str| std::fs::write(scratch.path().join(name), text).expect("a scratch file");
        assert_eq!(Former::read(scratch.path()).expect("no result").pid, None);
        write(
            "events.jsonl",
            "{\"event\":\"job_started\",\"pid\":42}\nnot JSON\n{\"event\":\"contained\",\"by\":\"cgroup\",\"cgroup\":\"/c/gymrun-42-1\"}\n{\"event\":\"job_sta",
        );
        let former = Former::read(scratch.path()).expect("no result");
        assert_eq!((former.pid, former.cgroup.as_deref()), (Some(42), Some("/c/gymrun-42-1".as_ref())));
        assert!(former.sentence().contains("pid was 42"), "{}", former.sentence());
        std::fs::remove_file(scratch.path().join("events.jsonl")).expect("is there");
        nix::unistd::mkfifo(&scratch.path().join("events.jsonl"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert_eq!(Former::read(scratch.path()).expect("no result").pid, None, "it is not waited for");
        write("result.json", "{}");
        assert_eq!(Former::read(scratch.path()), None);
    }
}
