//! The supervisors that are measured, each told in its own words to run the same children.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Job, Kit};

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervisor {
    Gymrun,
    /// A bare loop of Rust's `Command`: the floor.
    Loop,
    /// The same with a cgroup for each child: the floor of what contains them.
    ContainedLoop,
    Bash,
    S6,
    Supervisord,
    Honcho,
    Circus,
}

impl Supervisor {
    /// In the order of the tables.
    pub const ALL: [Self; 8] = [
        Self::Gymrun,
        Self::Loop,
        Self::ContainedLoop,
        Self::Bash,
        Self::S6,
        Self::Supervisord,
        Self::Honcho,
        Self::Circus,
    ];

    /// As the tables name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gymrun => "gymrun",
            Self::Loop => "bare loop",
            Self::ContainedLoop => "bare loop, cgroups",
            Self::Bash => "bash",
            Self::S6 => "s6",
            Self::Supervisord => "supervisord",
            Self::Honcho => "honcho",
            Self::Circus => "circus",
        }
    }

    /// Whether it can be started.
    pub fn there(self, kit: &Kit) -> bool {
        match self {
            Self::Gymrun | Self::Loop | Self::Bash => true,
            Self::ContainedLoop => kit.cgroups.is_some(),
            Self::S6 => kit.s6.is_some(),
            Self::Supervisord | Self::Honcho | Self::Circus => kit.python.is_some(),
        }
    }

    /// How long it runs before it is told to stop: some look at their children only once a second.
    pub const fn settles_in(self) -> Duration {
        match self {
            Self::Supervisord | Self::Circus => Duration::from_millis(1200),
            _ => Duration::from_millis(300),
        }
    }

    /// Its command line, for so many children that say through `fifo` that they run.
    pub(super) fn command(self, kit: &Kit, count: usize, fifo: &Path, folder: &Path) -> Command {
        let child = format!("{} {}", kit.child().display(), fifo.display());
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("writes");
        let script = |name: &str| {
            let bin = kit.python.as_ref().and_then(|python| python.parent()).expect("asked for before");
            Command::new(bin.join(name))
        };
        let each = |say: &dyn Fn(usize) -> String| (1..=count).map(say).collect::<String>();
        match self {
            Self::Gymrun => kit.gymrun("run", &Job::of_children(kit, count, fifo).write(folder), folder),
            Self::Loop => {
                let mut command = Command::new(&kit.own);
                command.arg("bare-loop").arg(count.to_string()).arg(kit.child()).arg(fifo);
                command
            }
            Self::ContainedLoop => {
                let mut command = Command::new(&kit.own);
                command.arg("contained-loop").arg(count.to_string());
                command.arg(kit.cgroups.as_ref().expect("asked for before")).arg(kit.child()).arg(fifo);
                command
            }
            Self::Bash => {
                let mut text = "trap 'kill $(jobs -p) 2>/dev/null' TERM\n".to_owned();
                let _ = write!(text, "for i in $(seq {count}); do {child} & done\nwait\nwait\n");
                write("all.sh", &text);
                let mut command = Command::new("bash");
                command.arg(folder.join("all.sh"));
                command
            }
            Self::S6 => {
                for number in 1..=count {
                    let run = folder.join(format!("s6/p{number}/run"));
                    fs::create_dir_all(run.parent().expect("a parent")).expect("a folder");
                    fs::write(&run, format!("#!/bin/sh\nexec {child}\n")).expect("writes");
                    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).expect("a mode");
                }
                let bin = kit.s6.as_ref().expect("asked for before");
                let mut command = Command::new(bin.join("s6-svscan"));
                command.arg(folder.join("s6"));
                command
            }
            Self::Supervisord => {
                let here = folder.display();
                let mut text = format!(
                    "[supervisord]\nnodaemon=true\nlogfile={here}/supervisord.log\npidfile={here}/pid\nchildlogdir={here}\n"
                );
                text += &each(&|number| format!("[program:p{number}]\ncommand={child}\n"));
                write("supervisord.conf", &text);
                let mut command = script("supervisord");
                command.arg("-c").arg(folder.join("supervisord.conf"));
                command
            }
            Self::Honcho => {
                write("Procfile", &each(&|number| format!("p{number}: exec {child}\n")));
                let mut command = script("honcho");
                command.arg("-d").arg(folder).arg("-f").arg(folder.join("Procfile")).arg("start");
                command
            }
            Self::Circus => {
                let here = folder.display();
                let mut text = format!("[circus]\nendpoint=ipc://{here}/e\npubsub_endpoint=ipc://{here}/q\nstatsd=0\n");
                text += &each(&|number| format!("[watcher:w{number}]\ncmd={child}\nnumprocesses=1\n"));
                write("circus.ini", &text);
                let mut command = script("circusd");
                command.arg(folder.join("circus.ini"));
                command
            }
        }
    }
}
