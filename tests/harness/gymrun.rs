//! The binary under test.

use std::path::Path;
use std::process::{Command, Stdio};

/// The root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Its path.
pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_gymrun")
}

/// A command line of it, from the root of the repository. What the machine or the shell of a developer says of telemetry,
/// proxies, sites and batch jobs does not reach it.
pub fn gymrun(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(repository()).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_uppercase();
        let meant = ["OTEL_", "NEMO_", "GYMRUN_", "SLURM_"].iter().any(|beginning| text.starts_with(beginning));
        if meant || text.ends_with("_PROXY") {
            command.env_remove(name);
        }
    }
    command.env("XDG_CONFIG_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-configuration"));
    command
}
