//! Probes that are commands.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::plan::Stdin;
use crate::process::{Exit, Launch, Output, kill_group, launch_and_wait};

/// A command to run, in the directory and environment of the process that is probed.
#[derive(Clone, Debug)]
pub struct Command {
    /// argv; not empty.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Where a bare program name is looked up.
    pub search: Option<OsString>,
}

/// Kills a probe that nobody waits for any more.
struct Guard {
    group: Option<i32>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            kill_group(group);
        }
    }
}

/// Runs the command; good if it ends with 0.
pub(super) async fn ask(command: &Command) -> Result<(), String> {
    let launch = Launch {
        argv: command.argv.clone(),
        environment: command.environment.clone(),
        cwd: command.cwd.clone(),
        search: command.search.clone(),
        stdin: Stdin::Null,
        output: Output::Null,
    };
    let (started, exit) = launch_and_wait(launch).await.map_err(|e| e.to_string())?;
    let mut guard = Guard { group: Some(started.identity.pid) };
    let ended = exit.await;
    guard.group = None;
    match ended {
        Ok(Exit::Code(0)) => Ok(()),
        Ok(Exit::Code(code)) => Err(format!("exited {code}")),
        Ok(Exit::Signal(signal)) => Err(format!("ended by signal {signal}")),
        Err(_) => Err("ended in an unknown way".into()),
    }
}
