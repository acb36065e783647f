//! `gymrun collector validate`, and configurations of several sources.

use std::process::Command;

use crate::harness::binary;

const MISTAKES: &str = "receivers:\n  otlp: {protocols: {grpc: {endpoint: nowhere, tls: {}}, http: {nobody: 1}}}\n  prometheus: {config: {scrape_configs: [{job_name: a, job_nam: b}]}}\n\
processors:\n  batch: {timeout: soon, send_batch_size: -1}\n  transform: {trace_statements: ['set(span.nme, 1)']}\n  memory_limiter: {}\n  bach: {}\n\
connectors:\n  span_metrics: {dimensions: [{}]}\n\
exporters:\n  file: {rotation: {max_megabytes: x}}\n  otlp_http: {timeout: 5s, compression: rar}\n  debug: {verbosity: loud}\n\
extensions:\n  health_check: {path: x}\n\
service:\n  extensions: [health_chek]\n  telemetry: {metrics: {level: all}}\n  pipelines:\n    traces: {receivers: [otlp], processors: [batch, batch], exporters: [fil, span_metrics]}\n    spans: {}\n";

/// Each line that has a mistake, and a word about it.
const FOUND: &[(u32, &str)] = &[
    (2, "`nowhere` is no address"),
    (2, "`tls` is not supported by this collector"),
    (2, "unknown key `nobody`"),
    (3, "unknown key `job_nam`"),
    (5, "`timeout` is no duration"),
    (5, "`send_batch_size` is -1"),
    (6, "nme"),
    (7, "`check_interval` must be greater than zero"),
    (8, "unknown processor type `bach`"),
    (10, "a dimension has one of `name` and `glob`"),
    (12, "expected an integer, found text"),
    (12, "`path` is missing"),
    (13, "at least one endpoint is needed"),
    (13, "`rar` is not a value of `compression`"),
    (14, "`loud` is no verbosity"),
    (16, "`path` must begin with `/`"),
    (18, "the extension `health_chek` is not declared"),
    (19, "`all` is not a value of `level`"),
    (21, "the processor `batch` is named twice"),
    (21, "the exporter `fil` is not declared"),
    (22, "`spans` is no signal of a pipeline"),
];

fn validate(arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
    let mut command = Command::new(binary());
    command.args(["collector", "validate"]).args(arguments).env_clear().envs(environment.iter().copied());
    let output = command.output().expect("runs");
    (output.status.code().expect("a code"), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The block of a problem: its first line, and the lines that belong to it.
fn told(text: &str, place: &str, words: &str) -> bool {
    text.contains(place) && text.contains(words)
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.yaml");
    std::fs::write(&file, MISTAKES).expect("writes");
    let (code, text) = validate(&["--config", file.to_str().expect("text")], &[]);
    assert_eq!(code, 1, "{text}");
    for (line, words) in FOUND {
        assert!(told(&text, &format!("bad.yaml:{line}\n"), words), "{line}: {words}: {text}");
    }
    // Nothing was started or written.
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn sources_are_joined_and_each_problem_names_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writes");
        path.display().to_string()
    };
    let base = path("base.yaml", "receivers: {otlp: {protocols: {http: }}}\nexporters: {debug: }\n");
    let service = "service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}";
    let (code, text) = validate(&["--config", &base, "--config", "env:SERVICE"], &[("SERVICE", service)]);
    assert_eq!((code, text.as_str()), (0, ""));
    let more = path("more.yaml", "\n\nexporters: {debug: {verbosity: 7}, nop: {x: 1}}\n");
    let file = format!("file:{more}");
    let sources = ["--config", &base, "--config", &file, "--config", "yaml:processors: {btch: }"];
    let (code, text) = validate(&[&sources[..], &["--config", "env:SERVICE"]].concat(), &[("SERVICE", service)]);
    assert_eq!(code, 1);
    for words in [
        "more.yaml:3\n",
        "expected text, found an integer",
        "unknown key `x`",
        "unknown processor type `btch`",
        "<yaml>:1\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (code, text) = validate(&["--config", "env:NOT_THERE", "--config", "/no/such.yaml", "--config", "http:x"], &[]);
    assert_eq!(code, 1);
    for words in ["`NOT_THERE` is not set", "/no/such.yaml", "cannot come from `http:`"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// `--set` says more than all files, wherever it stands.
#[test]
fn settings_win_over_sources() {
    let base = "yaml:{receivers: {otlp: {protocols: {http: }}}, exporters: {debug/a: {verbosity: loud}}, \
                service: {pipelines: {traces: {receivers: [otlp], exporters: [debug/a]}}}}";
    assert_eq!(validate(&["--config", base], &[]).0, 1);
    for set in [
        "exporters.debug/a.verbosity=detailed",
        "exporters::debug/a::verbosity=${env:HOW}",
        " exporters.debug/a = {verbosity: basic}",
    ] {
        let (code, text) = validate(&["--set", set, "--config", base], &[("HOW", "normal")]);
        assert_eq!((code, text.as_str()), (0, ""), "{set}");
    }
    let list = "service.pipelines.traces.exporters=[debug/a, nobody]";
    let (code, text) = validate(&["--config", base, "--set", "exporters.debug/a.verbosity=basic", "--set", list], &[]);
    assert!(code == 1 && text.contains("`nobody` is not declared"), "{text}");
    // The place of a mistake is its key, and there is no line; what was said for it may be secret.
    for (set, key, words) in [
        ("exporters.debug/a.verbosity= loud-secret", "exporters.debug/a.verbosity", "is no verbosity"),
        (" exporters = {otlp_http/a: {endpoint: 1, nobody: }}", "exporters", "unknown key `nobody`"),
        ("exporters.debug/a=[secret, {", "exporters.debug/a", "not valid YAML"),
    ] {
        let (code, text) = validate(&["--config", &base.replace("loud", "basic"), "--set", set], &[]);
        assert!(code == 1 && text.contains(words), "{set}: {text}");
        assert!(text.contains(&format!("--set {key}\n")) && !text.contains("<yaml>"), "{set}: {text}");
    }
    let (code, text) = validate(&["--config", base, "--set", "exporters.debug/a.verbosity"], &[]);
    assert!(code == 2 && text.contains("there is no `=` in it"), "{text}");
}

/// Whoever writes a user and a password where there is no place for them is told so without them.
#[test]
fn the_user_of_an_address_is_not_shown() {
    for (section, words) in [
        ("exporters: {otlp_grpc: {endpoint: 'us3r:${env:VALUE}@a:1'}}", "no place for"),
        ("exporters: {otlp_grpc: {endpoint: 'us3r:${env:VALUE}@a:99999'}}", "between 0 and 65535"),
        ("exporters: {otlp_http: {endpoint: 'http://us3r:${env:VALUE}@a:bad/'}}", "is no URL"),
        ("exporters: {otlp_http: {endpoint: 'us3r:${env:VALUE}@a:1'}}", "`endpoint`"),
        ("receivers: {otlp: {protocols: {http: {endpoint: 'us3r:${env:VALUE}@a'}}}}", "is no address"),
        (
            "receivers: {prometheus: {config: {scrape_configs: [{job_name: a, static_configs: [{targets: ['us3r:${env:VALUE}@a:1']}]}]}}}",
            "no address of a target",
        ),
    ] {
        let (code, text) = validate(&["--config", &format!("yaml:{section}")], &[("VALUE", "p4ssw0rd-1")]);
        assert!(code == 1 && text.contains(words), "{section}: {text}");
        assert!(!text.contains("p4ssw0rd") && !text.contains("us3r"), "{section}: {text}");
    }
}

/// A warning alone is no mistake; a command line without a file is one, with the code of all such mistakes.
#[test]
fn warnings_are_said_and_do_no_harm() {
    let yaml = "yaml:{receivers: {otlp: {protocols: {http: {nobody: 1}}}}, exporters: {debug: }, \
                service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}}";
    let (code, text) = validate(&["--config", yaml], &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("warning") && text.contains("unknown key `nobody`"), "{text}");
    assert_eq!(validate(&[], &[]).0, 2);
}
