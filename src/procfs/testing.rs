//! Real processes for tests.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A process with one child, for which it never waits; both end with this. A child of the test itself would not do: other
/// tests of the same process have its reaper run, which waits for everybody.
pub(crate) struct Family {
    parent: Child,
    /// The pid of the child.
    pub(crate) child: i32,
}

impl Family {
    /// The child runs this command of a shell.
    #[expect(clippy::disallowed_methods, reason = "these processes are none of gymrun's")]
    pub(crate) fn start(command: &str) -> Self {
        // As long as the parent is a shell it would wait.
        let after = "until grep -qx sleep /proc/$$/comm; do :; done";
        let script = format!("{{ {after}; {command}; }} >/dev/null & echo $!; exec sleep 300");
        let mut parent = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut line = String::new();
        BufReader::new(parent.stdout.take().expect("a pipe")).read_line(&mut line).expect("a pid");
        Self { parent, child: line.trim().parse().expect("a pid") }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child), nix::sys::signal::Signal::SIGKILL);
        let _ = self.parent.kill();
        // Whoever reaps it: by then it has ended.
        let _ = self.parent.wait();
    }
}
