//! `lua/policy/python/sitecustomize.py`, in a Python with small stand-ins for NeMo Gym, nemo-lens and OpenTelemetry.
#![expect(clippy::disallowed_methods, reason = "a test may start python3")]

mod harness;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::{python, repository};

/// Files of a package, with their text.
type Package<'a> = &'a [(&'a str, &'a str)];

/// nemo-lens as the package registry has it, in what matters here.
const OLD_LENS: Package<'_> = &[
    ("nemo/lens/__init__.py", "from nemo.lens.groups import SpanGroup\n__version__ = '0.1.0'\n"),
    (
        "nemo/lens/groups.py",
        "class SpanGroup:\n    @classmethod\n    def resolve(cls, spec):\n        raise ValueError('unknown ' + spec)\n",
    ),
    ("nemo/lens/semconv.py", "NEMO_RUN_ID = 'nemo.run.id'\n"),
];
const NEW_LENS: Package<'_> = &[
    ("nemo/lens/__init__.py", "from nemo.lens.groups import SpanGroup\n__version__ = '0.2.0'\n"),
    ("nemo/lens/groups.py", "class SpanGroup: pass\nclass SpanRegistry: pass\n"),
    ("nemo/lens/semconv.py", "NV_DL_RANK = 'theirs'\nNV_DL_WORLD_SIZE = 'theirs'\n"),
];
const GYM: Package<'_> = &[("nemo_gym/__init__.py", ""), ("nemo_gym/telemetry/__init__.py", "")];
const OLD_GYM: Package<'_> = &[("nemo_gym/__init__.py", "")];
const SDK: Package<'_> = &[("opentelemetry/trace.py", ""), ("opentelemetry/sdk/__init__.py", "")];

/// What a server does when it sets its telemetry up.
const SET_UP: &str = "
import nemo_gym
from nemo.lens import SpanGroup
import opentelemetry.trace
from nemo.lens.semconv import NV_DL_RANK, NV_DL_WORLD_SIZE
from nemo.lens.groups import SpanRegistry
if NV_DL_RANK != 'theirs':
    SpanRegistry.register('gym', groups={'server', 'verify', 'job'}, presets={'default': {'server', 'job'}}, allow_override=True)
    print(NV_DL_RANK, sorted(SpanGroup.resolve('default, VERIFY')), sorted(SpanGroup.resolve('all')))
    print(SpanRegistry.resolve('verify,bogus'))
";

struct Python {
    program: &'static str,
    folder: PathBuf,
}

impl Python {
    /// A Python that finds those packages, and no others than its own.
    fn new(test: &str, packages: &[Package<'_>]) -> Option<Self> {
        let program = python()?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lens-compat").join(test);
        let _ = std::fs::remove_dir_all(&folder);
        for (file, text) in packages.iter().copied().flatten() {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("a package has a folder")).expect("writable");
            std::fs::write(path, text).expect("writable");
        }
        Some(Self { program, folder })
    }

    /// Runs a script with the module in front; `enabled` is `NEMO_GYM_OTEL_ENABLED`.
    fn run(&self, script: &str, enabled: &str) -> Output {
        let module = repository().join("lua/policy/python");
        Command::new(self.program)
            .args(["-c", script])
            .env("PYTHONPATH", std::env::join_paths([module, self.folder.clone()]).expect("no colon in the paths"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("NEMO_GYM_OTEL_ENABLED", enabled)
            .env_remove("NEMO_LENS_ENABLED")
            .output()
            .expect("python3 can be started")
    }
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_is_missing_is_added_and_said_in_one_line() {
    let Some(python) = Python::new("patched", &[GYM, OLD_LENS, SDK]) else { return };
    let (out, err) = texts(&python.run(SET_UP, "1"));
    assert_eq!(
        out,
        "nv.dl.rank ['job', 'server', 'verify'] ['job', 'server', 'verify']\n(frozenset({'verify'}), frozenset({'bogus'}))\n"
    );
    assert_eq!(
        err,
        "gymrun: lens-compat: patched nemo-lens 0.1.0 lacks NV_DL_RANK, NV_DL_WORLD_SIZE, SpanRegistry, which were added\n"
    );
}

#[test]
fn a_newer_nemo_lens_is_left_alone() {
    let Some(python) = Python::new("new", &[GYM, NEW_LENS, SDK]) else { return };
    assert_eq!(texts(&python.run(SET_UP, "true")), (String::new(), String::new()));
}

#[test]
fn telemetry_that_cannot_work_is_said() {
    let cases: [(&str, &[Package<'_>], &str); 4] = [
        ("no-lens", &[GYM, SDK], "nemo-lens is not installed in "),
        ("no-sdk", &[GYM, OLD_LENS, &SDK[..1]], "the OpenTelemetry SDK is not installed in "),
        ("old-gym", &[OLD_GYM, OLD_LENS, SDK], "this NeMo Gym has no telemetry (0.7.0 has)"),
        (
            "broken-lens",
            &[GYM, &[("nemo/lens/__init__.py", "import no_such_module\n")], SDK],
            "nemo-lens cannot be imported: No module named 'no_such_module'",
        ),
    ];
    for (name, packages, expected) in cases {
        let Some(python) = Python::new(name, packages) else { return };
        let script =
            "import nemo_gym\ntry:\n    import opentelemetry.trace, nemo.lens\nexcept ImportError:\n    pass\n";
        let (_, err) = texts(&python.run(script, "on"));
        assert!(err.starts_with(&format!("gymrun: lens-compat: no-telemetry {expected}")), "{name}: {err}");
        assert_eq!(err.lines().count(), 1, "{name}: {err}");
    }
}

#[test]
fn nothing_is_done_where_nobody_asks() {
    let Some(python) = Python::new("silent", &[OLD_GYM, OLD_LENS, SDK]) else { return };
    let script = "import nemo_gym, nemo.lens.groups as g; print(hasattr(g, 'SpanRegistry'))";
    assert_eq!(texts(&python.run(script, "0")), ("False\n".into(), String::new()), "telemetry is off");
    assert_eq!(texts(&python.run("print('hello')", "1")), ("hello\n".into(), String::new()), "no Gym");
}

#[test]
fn a_hidden_sitecustomize_runs_and_takes_its_place() {
    let Some(python) = Python::new("hidden", &[&[("sitecustomize.py", "print('it ran')\nNAME = 'theirs'\n")]]) else {
        return;
    };
    for enabled in ["0", "1"] {
        assert_eq!(
            texts(&python.run("import sitecustomize; print(sitecustomize.NAME)", enabled)).0,
            "it ran\ntheirs\n"
        );
    }
}
