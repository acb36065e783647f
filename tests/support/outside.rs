//! What is seen from outside of a job: processes, by the mark that each of them carries.

use std::fs;
use std::time::{Duration, Instant};

/// Pids of the processes of a job that are no zombies, with their command lines.
pub fn alive(job_id: &str) -> Vec<(i32, String)> {
    let mark = format!("GYMRUN_PROCESS={job_id}:");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|b| *b == 0).any(|e| e.starts_with(mark.as_bytes())) {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&command).replace('\0', " ")));
        }
    }
    found
}

/// Zombies whose parent is `parent`.
pub fn zombies(parent: u32) -> usize {
    let stats = fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let mut fields = stat.rsplit_once(')').map_or("", |(_, tail)| tail).split_ascii_whitespace();
            fields.next() == Some("Z") && fields.next() == Some(parent.to_string().as_str())
        })
        .count()
}

/// Waits until `condition` gives something.
#[track_caller]
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether this process, and so what it starts, ignores a signal.
pub fn is_ignored(signal: nix::sys::signal::Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("of this process");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a line of every kernel");
    u64::from_str_radix(mask.trim(), 16).expect("hex") >> (signal as i32 - 1) & 1 == 1
}
