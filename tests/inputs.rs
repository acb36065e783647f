//! Jobs in YAML as people write them, right and wrong: what they become, and what is said of them.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::float_cmp, reason = "numbers as they stand in a file, not computed ones")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gymrun::diag::Problems;
use gymrun::inputs::World;
use gymrun::plan::{Plan, Readiness, Unit, Value, VariableValue};
use gymrun::policy::{Request, load};

fn world(directory: &Path, variables: &[(&str, &str)]) -> World {
    let environment = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    World { environment, ..World::isolated(directory) }
}

/// A job in a directory of its own, with settings.
fn load_text(text: &str, variables: &[(&str, &str)], set: &[&str]) -> Result<Plan, Problems> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("job.yaml"), text).unwrap();
    let mut request = Request::new("job.yaml", world(directory.path(), variables));
    request.set = set.iter().map(|s| (*s).to_owned()).collect();
    // What is compared is the same in every directory.
    request.output_path = Some("/out".into());
    load(request)
}

/// A job that must be good.
fn good(text: &str, variables: &[(&str, &str)]) -> Plan {
    let plan = load_text(text, variables, &[]).unwrap();
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    plan
}

/// What is said of a job that must be bad.
fn bad(text: &str) -> String {
    load_text(text, &[], &[]).unwrap_err().to_string()
}

fn unit<'a>(plan: &'a Plan, name: &str) -> &'a Unit {
    plan.unit(name).unwrap()
}

fn env(plan: &Plan, process: &str, name: &str) -> String {
    match &unit(plan, process).env[name].value {
        VariableValue::Set(Value::Text(text)) => text.as_literal().unwrap().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_problem_of_a_bad_job_is_said_at_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bad-jobs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "yaml" || e == "lua"));
    files.sort();
    assert!(!files.is_empty());
    let mut different = Vec::new();
    for file in files {
        let said = load(Request::new(&file, world(&folder, &[]))).unwrap_err().to_string();
        let expected = file.with_extension("txt");
        if std::env::var_os("GYMRUN_BLESS").is_some() {
            std::fs::write(&expected, &said).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != said {
            different.push(format!("{}:\n{said}", file.display()));
        }
    }
    assert!(different.is_empty(), "GYMRUN_BLESS=1 rewrites what is expected.\n{}", different.join("\n"));
}

const SERVER: &str = "type: resources_servers\n    command: [x]\n";

#[test]
fn p01_merge_keys_bring_shared_defaults() {
    let plan = good(
        "_base: &b {env: {A: \"1\"}, health_check: {timeout_seconds: 5}}\nname: x\nservers:\n  s:\n    <<: *b\n    \
         type: resources_servers\n    command: [x]\n",
        &[],
    );
    assert_eq!(env(&plan, "s", "A"), "1");
    assert_eq!(timeout(&plan, "s"), 5.0);
}

fn timeout(plan: &Plan, process: &str) -> f64 {
    match &unit(plan, process).readiness {
        Readiness::Probe(probe) => probe.timeout_seconds,
        other => panic!("{other:?}"),
    }
}

#[test]
fn p02_an_own_key_wins_over_a_merged_one_in_both_orders() {
    for own in ["<<: *b\n    health_check: {timeout_seconds: 9}", "health_check: {timeout_seconds: 9}\n    <<: *b"] {
        let text = format!(
            "_base: &b {{health_check: {{timeout_seconds: 5}}}}\nname: x\nservers:\n  s:\n    {own}\n    {SERVER}"
        );
        assert_eq!(timeout(&good(&text, &[]), "s"), 9.0);
    }
}

#[test]
fn p03_a_duplicate_key_names_both_lines() {
    let said = bad(&format!("name: x\nservers:\n  s:\n    {SERVER}    command: [y]\n"));
    assert!(said.contains("`command`") && said.contains("lines 5 and 6"), "{said}");
}

#[test]
fn p04_p05_p08_text_stays_text() {
    let plan = good(
        "name: 8000\nservices:\n  3090:\n    command: [a, 0510210600, no, 1e5, 3090, 1.50, ~x, 0x1F]\n    model: 007\ndriver:\n  \
         command: [x]\n  env: {ACCT: 0510210600, ID: 00001, COUNTRY: no, MODE: on, F: false, P: p@s$w0rd, E: 1e5, D: 2001-01-01}\n",
        &[],
    );
    assert_eq!(plan.name, "8000");
    assert_eq!(unit(&plan, "3090").model.as_deref(), Some("007"));
    let argv: Vec<&str> = unit(&plan, "3090").argv.iter().map(|word| word.as_literal().unwrap()).collect();
    assert_eq!(argv, ["a", "0510210600", "no", "1e5", "3090", "1.50", "~x", "0x1F"]);
    for (name, value) in [
        ("ACCT", "0510210600"),
        ("ID", "00001"),
        ("COUNTRY", "no"),
        ("MODE", "on"),
        ("F", "false"),
        ("P", "p@s$w0rd"),
        ("E", "1e5"),
        ("D", "2001-01-01"),
    ] {
        assert_eq!(env(&plan, "driver", name), value);
    }
    let said = bad("name: x\ndriver:\n  command: [x]\n  env:\n    NULLISH: ~\n");
    assert!(said.contains("driver.env.NULLISH: text or a whole number is due, not null"), "{said}");
    assert!(said.contains("job.yaml:5") && said.contains("`\"\"`"), "{said}");
}

#[test]
fn p06_p07_byte_order_marks_and_windows_line_ends_change_nothing() {
    let text = "name: x\ndriver:\n  shell: |\n    set -e\n    echo hi\n  env:\n    A: >-\n      a\n      b\n";
    let plain = good(text, &[]);
    let other = good(&format!("\u{feff}{}", text.replace('\n', "\r\n")), &[]);
    let json = |plan: &Plan| serde_json::to_value(&plan.units[1]).unwrap();
    assert_eq!(json(&plain)["argv"], json(&other)["argv"]);
    assert!(!json(&other).to_string().contains("\\r"), "{}", json(&other));
    assert_eq!(env(&other, "driver", "A"), "a b");
}

#[test]
fn p09_nothing_is_expanded_twice() {
    let plan = good(
        "name: x\ndriver:\n  command: [x]\n  env: {A: \"${env:PW}\", B: \"o$ne\", C: \"$${HOME}\"}\n",
        &[("PW", "p@s$w0rd ${HOME}"), ("HOME", "/h")],
    );
    assert_eq!(env(&plan, "driver", "A"), "p@s$w0rd ${HOME}");
    assert_eq!(env(&plan, "driver", "B"), "o$ne");
    assert_eq!(env(&plan, "driver", "C"), "${HOME}");
}

#[test]
fn p10_p12_slips_are_named_with_path_line_and_what_was_meant() {
    let said = bad(&format!("name: x\nservers:\n  b:\n    {SERVER}  a:\n    {SERVER}    dependson: [b]\n"));
    assert!(
        said.contains("servers.a.dependson: unknown key\n  --> job.yaml:9\n  hint: did you mean `depends_on`?"),
        "{said}"
    );
    let said = bad(&format!("name: x\nservers:\n  b:\n    {SERVER}  a:\n    {SERVER}    depends_on: [nope]\n"));
    assert!(said.contains("servers.a.depends_on[1]: server `a` depends on unknown `nope`"), "{said}");
    assert!(said.contains("job.yaml:9\n  hint: known: a, b"), "{said}");
}

#[test]
fn p11_an_alias_bomb_is_refused() {
    let mut text = String::from("name: x\n_a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        let _ = writeln!(text, "_a{level}: &a{level} [{aliases}]");
    }
    assert!(bad(&text).contains("alias limit"));
}

#[test]
fn the_command_line_is_the_top_layer() {
    let job = "name: x\ndriver: {command: [x], env: {A: 1, B: 2}}\n";
    let set = ["driver.env.A=007", "driver.env.B=!unset", "telemetry.span_groups=all", "cluster=c"];
    let plan = load_text(job, &[("NEMO_GYM_OTEL_SPAN_GROUPS", "job")], &set).unwrap();
    assert_eq!(env(&plan, "driver", "A"), "007");
    assert_eq!(unit(&plan, "driver").env["A"].source, "<command line>");
    assert!(!unit(&plan, "driver").env.contains_key("B"));
    assert_eq!(env(&plan, "driver", "NEMO_GYM_OTEL_SPAN_GROUPS"), "all");
    assert_eq!((plan.cluster.as_str(), plan.output_path.as_str()), ("c", "/out"));
    let said = load_text(job, &[], &["driver.comand=[y]"]).unwrap_err().to_string();
    assert!(
        said.contains("driver.comand: unknown key\n  --> <command line>\n  hint: did you mean `command`?"),
        "{said}"
    );
}

#[test]
fn the_reference_of_keys_is_what_the_tables_say() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/keys.md");
    let text = gymrun::policy::schema::reference();
    if std::env::var_os("GYMRUN_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == text, "docs/reference/keys.md differs from the tables: GYMRUN_BLESS=1 rewrites it");
}
