//! Trees of processes to be sampled.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::options::Node;
use crate::python;

/// Children of each process.
pub const FAN_OUT: usize = 10;
/// Threads of a Python server.
const THREADS: usize = 4;

/// A tree whose processes are all there; it ends with this.
pub struct Tree {
    process: Child,
}

impl Tree {
    /// Small processes of one thread.
    pub fn small(count: usize, kibibytes: usize) -> Self {
        let own = std::env::current_exe().expect("a bench has a file");
        let mut command = Command::new(own);
        let numbers = [count, FAN_OUT, kibibytes, 0].map(|number| number.to_string());
        command.arg("node").args(numbers);
        Self::start(command, count)
    }

    /// Idle Python servers of four threads.
    pub fn python(count: usize) -> Self {
        let mut command = Command::new(python::interpreter());
        command.args(Self::python_arguments(count));
        Self::start(command, count)
    }

    pub fn python_arguments(count: usize) -> Vec<String> {
        let script = python::script("server.py").display().to_string();
        std::iter::once(script).chain([count, FAN_OUT, THREADS].map(|number| number.to_string())).collect()
    }

    fn start(mut command: Command, count: usize) -> Self {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a process");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        assert_eq!(lines.take(count).map_while(Result::ok).count(), count, "the tree is not whole");
        Self { process }
    }

    pub fn root(&self) -> i32 {
        self.process.id().cast_signed()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // All the others die with their parents.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A process of a tree.
pub fn live(node: &Node) {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).expect("prctl");
    let held = vec![1_u8; node.kibibytes << 10];
    let own = std::env::current_exe().expect("a bench has a file");
    let first = node.fan_out * node.index + 1;
    let children: Vec<Child> = (first..(first + node.fan_out).min(node.count))
        .map(|child| {
            let numbers = [node.count, node.fan_out, node.kibibytes, child].map(|number| number.to_string());
            Command::new(&own).arg("node").args(numbers).spawn().expect("a child")
        })
        .collect();
    println!("there");
    std::io::stdout().flush().expect("somebody reads");
    loop {
        std::thread::sleep(Duration::from_hours(1));
        std::hint::black_box((&held, &children));
    }
}
