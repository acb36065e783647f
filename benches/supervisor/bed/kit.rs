//! The programs that take part.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Compiled helpers, and where the peers are.
pub struct Kit {
    folder: TempDir,
    /// gymrun of this build, or the one that `GYMRUN_BENCH_GYMRUN` names.
    pub gymrun: PathBuf,
    /// This program, for its other roles.
    pub own: PathBuf,
    /// The venv's interpreter.
    pub python: Option<PathBuf>,
    /// The folder with s6's programs.
    pub s6: Option<PathBuf>,
    /// The root of the cgroups of version 2, if it can be written.
    pub cgroups: Option<PathBuf>,
}

impl Kit {
    /// Compiles what is written in C.
    pub fn make() -> Self {
        let folder = scratch();
        for (name, source) in
            [("child", include_str!("../programs/child.c")), ("nothing", include_str!("../programs/nothing.c"))]
        {
            let path = folder.path().join(name).with_extension("c");
            std::fs::write(&path, source).expect("writes");
            let compiled = Command::new("cc").args(["-O2", "-o"]).arg(folder.path().join(name)).arg(&path).status();
            assert!(compiled.is_ok_and(|status| status.success()), "cc cannot compile {name}.c");
        }
        let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
        let python = named("GYMRUN_BENCH_PYTHON");
        let s6 = named("GYMRUN_BENCH_S6");
        for (there, variable) in [(python.is_some(), "GYMRUN_BENCH_PYTHON"), (s6.is_some(), "GYMRUN_BENCH_S6")] {
            if !there {
                println!("{variable} names nothing: its peers are absent.");
            }
        }
        Self {
            folder,
            gymrun: named("GYMRUN_BENCH_GYMRUN").unwrap_or_else(|| env!("CARGO_BIN_EXE_gymrun").into()),
            own: std::env::current_exe().expect("this program"),
            python,
            s6,
            cgroups: ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
                .map(PathBuf::from)
                .into_iter()
                .find(|root| nix::unistd::eaccess(&root.join("cgroup.procs"), nix::unistd::AccessFlags::W_OK).is_ok()),
        }
    }

    /// The child that costs nothing but its start.
    pub fn child(&self) -> PathBuf {
        self.folder.path().join("child")
    }

    /// `return 0`.
    pub fn nothing(&self) -> PathBuf {
        self.folder.path().join("nothing")
    }
}

/// A folder of its own, in memory where that is possible.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a folder")
}
