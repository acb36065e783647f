//! The Python peers.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A way of sampling in Python.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `task/*/children` and `smaps_rollup` with the standard library.
    Walk,
    /// `Process.children(recursive=True)` and `memory_full_info()`.
    Psutil,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Walk => "walk",
            Self::Psutil => "psutil",
        }
    }
}

/// One of the bench's scripts.
pub fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/sampler").join(name)
}

pub fn interpreter() -> String {
    std::env::var("GYMRUN_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Whether the interpreter has a module.
pub fn has(module: &str) -> bool {
    let import = format!("import {module}");
    let status = Command::new(interpreter()).args(["-c", &import]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

pub fn describe() -> String {
    let has = ["psutil", "yaml", "pydantic"].map(|m| format!("{m} {}", if has(m) { "there" } else { "absent" }));
    format!("Python is `{}`: {}.", interpreter(), has.join(", "))
}

/// What a sampler in Python found and needed.
pub struct Measured {
    pub processes: usize,
    /// Bytes.
    pub pss: u64,
    /// CPU microseconds of a sample: the median.
    pub cpu: f64,
}

/// Samples a tree so many times, `pause` seconds apart.
pub fn sample(mode: Mode, root: i32, times: usize, pause: f64) -> Measured {
    let arguments = [mode.word().to_owned(), root.to_string(), times.to_string(), pause.to_string()];
    let output = Command::new(interpreter())
        .arg(script("walk.py"))
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .expect("a Python interpreter");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the script's answer");
    Measured {
        processes: usize::try_from(said["processes"].as_u64().expect("a number")).expect("a small number"),
        pss: said["pss"].as_u64().expect("a number"),
        cpu: said["cpu_us"].as_f64().expect("a number"),
    }
}
