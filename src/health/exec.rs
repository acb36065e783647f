//! Probes that are commands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::ask::Bad;
use crate::plan::Stdin;
use crate::process::{Cgroup, Environment, Exit, Helper, Launch, Output};

/// A command to run, in the directory and environment of the process that is probed.
#[derive(Clone, Debug)]
pub struct Command {
    /// argv; not empty.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub environment: Arc<Environment>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Where a bare program name is looked up.
    pub search: Option<OsString>,
    /// The cgroup of the process that is probed: what a probe leaves behind goes with it.
    pub cgroup: Option<Arc<Cgroup>>,
}

/// Runs the command; good if it ends with 0. Given up, it is killed with its whole group.
pub(super) async fn ask(command: &Command) -> Result<(), Bad> {
    let launch = Launch {
        argv: command.argv.clone(),
        environment: Arc::clone(&command.environment),
        cwd: command.cwd.clone(),
        search: command.search.clone(),
        stdin: Stdin::Null,
        output: Output::Null,
        cgroup: command.cgroup.clone(),
    };
    let bad = |text: String| Err(Bad::costly(text));
    let probe = match Helper::start(launch).await {
        Ok(probe) => probe,
        Err(error) => return bad(error.to_string()),
    };
    match probe.end().await {
        Some(Exit::Code(0)) => Ok(()),
        Some(Exit::Code(code)) => bad(format!("exited {code}")),
        Some(Exit::Signal(signal)) => bad(format!("ended by signal {signal}")),
        None => bad("ended in an unknown way".into()),
    }
}
