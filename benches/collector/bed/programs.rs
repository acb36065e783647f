//! The programs that are measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::config::Ports;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// `gymrun collector` of this build, or of the one that `GYMRUN_BENCH_GYMRUN` names.
    Gymrun,
    /// The reference: `GYMRUN_TEST_OTELCOL`, or `otelcol` on the path.
    Otelcol,
    /// Rotel's agent: `GYMRUN_BENCH_ROTEL`, or `rotel-agent` on the path. Its own options, no configuration file.
    Rotel,
    /// The floor of receiving: this program again, as a server whose handler drops the body.
    Discard,
}

impl Program {
    /// As the tables name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gymrun => "gymrun",
            Self::Otelcol => "otelcol",
            Self::Rotel => "rotel",
            Self::Discard => "discard handler",
        }
    }

    /// Where it is, if it is there.
    pub fn path(self) -> Option<PathBuf> {
        match self {
            Self::Gymrun => {
                let other = std::env::var_os("GYMRUN_BENCH_GYMRUN").map(PathBuf::from);
                Some(other.unwrap_or_else(|| env!("CARGO_BIN_EXE_gymrun").into()))
            }
            Self::Otelcol => find("GYMRUN_TEST_OTELCOL", "otelcol"),
            Self::Rotel => find("GYMRUN_BENCH_ROTEL", "rotel-agent"),
            Self::Discard => std::env::current_exe().ok(),
        }
    }

    /// Whether a health check says when it is ready.
    pub const fn has_health_check(self) -> bool {
        matches!(self, Self::Gymrun | Self::Otelcol)
    }

    /// Its command line; `core` is the one core that it may use.
    pub(super) fn command(self, config: &Path, ports: Ports, core: Option<usize>) -> Command {
        let path = self.path().expect("asked for before");
        let mut command = match core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.arg("--cpu-list").arg(core.to_string()).arg(path);
                command
            }
            None => Command::new(path),
        };
        let address = |port: u16| format!("127.0.0.1:{port}");
        match self {
            Self::Gymrun => command.arg("collector").arg("--config").arg(config),
            Self::Otelcol => command.arg("--config").arg(config),
            Self::Rotel => command
                .args(["start", "--exporter", "blackhole", "--otlp-http-endpoint", &address(ports.http)])
                .args(["--otlp-grpc-endpoint", &address(ports.grpc)]),
            Self::Discard => command.args(["discard", "--port", &ports.http.to_string()]),
        };
        command
    }
}

fn find(variable: &str, name: &str) -> Option<PathBuf> {
    let told = std::env::var_os(variable).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = told.into_iter().chain(std::env::split_paths(&path).map(|folder| folder.join(name)));
    candidates.find(|candidate| candidate.is_file())
}
