//! The processes of the machine, seen from outside.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;

/// A process told apart from a later one of the same pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    start: String,
}

impl Process {
    /// `None` if there is none or only a zombie, which is gone for all but its parent.
    pub fn find(pid: u32) -> Option<Self> {
        let fields = stat(&PathBuf::from(format!("/proc/{pid}")))?;
        (fields.first()? != "Z").then_some(())?;
        Some(Self { pid, start: fields.get(19)?.clone() })
    }

    pub fn is_gone(&self) -> bool {
        Self::find(self.pid).as_ref() != Some(self)
    }
}

/// Every process below `pid`, itself left out.
pub fn descendants_of(pid: u32) -> Vec<Process> {
    let mut found = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
                found.extend(Process::find(child));
                parents.push(child);
            }
        }
    }
    found
}

/// The processes of a job that are no zombies, by the variable that each of them carries: pid and command line.
pub fn of_job(job_id: &str) -> Vec<(u32, String)> {
    let mark = format!("GYMRUN_PROCESS={job_id}:");
    let carries = |folder: &PathBuf| has_variable(folder, |variable| variable.starts_with(mark.as_bytes()));
    all().filter(|(_, folder)| carries(folder)).map(|(pid, folder)| (pid, command_line(&folder))).collect()
}

/// How many zombies `parent` has.
pub fn zombies(parent: u32) -> usize {
    let parent = parent.to_string();
    all().filter_map(|(_, folder)| stat(&folder)).filter(|fields| fields[0] == "Z" && fields[1] == parent).count()
}

/// Whether this process, and so what it starts, ignores a signal.
pub fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("of this process");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a line of every kernel");
    u64::from_str_radix(mask.trim(), 16).expect("hex") >> (signal as i32 - 1) & 1 == 1
}

/// Pid and folder below /proc.
fn all() -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir("/proc").expect("Linux").flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

/// The fields behind the name: state, parent and so on.
fn stat(folder: &std::path::Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_ascii_whitespace().map(str::to_owned).collect())
}

fn command_line(folder: &std::path::Path) -> String {
    let bytes = fs::read(folder.join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
}

fn has_variable(folder: &std::path::Path, is_meant: impl Fn(&[u8]) -> bool) -> bool {
    fs::read(folder.join("environ")).unwrap_or_default().split(|byte| *byte == 0).any(is_meant)
}

/// Looks at all processes again and again: command lines, and whose they are.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
    seen: Arc<Mutex<HashMap<String, bool>>>,
}

impl Watch {
    /// `mark` is a variable with its value, by which the job's own are known.
    pub fn start(mark: Vec<u8>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(HashMap::new()));
        let thread = {
            let (stop, seen) = (Arc::clone(&stop), Arc::clone(&seen));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let mut seen = seen.lock().expect("no thread panics with it");
                    for (_, folder) in all() {
                        *seen.entry(command_line(&folder)).or_insert(false) |=
                            has_variable(&folder, |variable| variable == mark);
                    }
                    drop(seen);
                    std::thread::sleep(Duration::from_millis(100));
                }
            })
        };
        Self { stop, thread, seen }
    }

    /// The command lines of all, and of the job's own.
    pub fn stop(self) -> (BTreeSet<String>, BTreeSet<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the watch does not panic");
        let seen = self.seen.lock().expect("no thread panics with it");
        let own = seen.iter().filter(|(_, own)| **own).map(|(line, _)| line.clone()).collect();
        (seen.keys().cloned().collect(), own)
    }
}
