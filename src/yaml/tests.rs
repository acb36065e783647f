//! The reader against what people's files have done to other readers.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::{Yaml, YamlValue, read, write};

fn good(text: &str) -> Yaml {
    read(text, "job.yaml").unwrap()
}

fn bad(text: &str) -> String {
    read(text, "job.yaml").unwrap_err().to_string()
}

fn text_at<'a>(yaml: &'a Yaml, path: &str) -> &'a str {
    path.split('.').fold(yaml, |node, key| node.get(key).unwrap()).as_text().unwrap()
}

fn line(yaml: &Yaml, path: &str) -> u32 {
    path.split('.').fold(yaml, |node, key| node.get(key).unwrap()).location.line.unwrap()
}

fn keys(yaml: &Yaml) -> Vec<&str> {
    match &yaml.value {
        YamlValue::Map(map) => map.keys().map(String::as_str).collect(),
        _ => panic!("not a mapping: {yaml:?}"),
    }
}

#[test]
fn a_merge_key_brings_what_the_mapping_has_not() {
    let yaml =
        good("_base: &b {env: {A: \"1\"}, health_check: {timeout_seconds: 5}}\nserver:\n  <<: *b\n  command: [x]\n");
    assert_eq!(text_at(&yaml, "server.env.A"), "1");
    assert_eq!(text_at(&yaml, "server.health_check.timeout_seconds"), "5");
    assert_eq!(keys(yaml.get("server").unwrap()), ["command", "env", "health_check"]);
}

#[test]
fn the_mappings_own_key_wins_before_and_after_the_merge_key() {
    for server in ["<<: *b\n  t: 9", "t: 9\n  <<: *b"] {
        let yaml = good(&format!("_b: &b {{t: 5, u: 6}}\ns:\n  {server}\n"));
        assert_eq!(text_at(&yaml, "s.t"), "9");
        assert_eq!(text_at(&yaml, "s.u"), "6");
    }
}

#[test]
fn of_several_merged_mappings_the_first_wins_and_nested_ones_are_not_mixed() {
    let yaml = good("_a: &a {t: 1, e: {X: x}}\n_b: &b {t: 2, u: 2, e: {Y: y}}\ns: {<<: [*a, *b], v: 3}\n");
    assert_eq!(text_at(&yaml, "s.t"), "1");
    assert_eq!(text_at(&yaml, "s.u"), "2");
    assert_eq!(keys(yaml.get("s").unwrap().get("e").unwrap()), ["X"]);
    assert_eq!(text_at(&good("\"<<\": x\n"), "<<"), "x");
    assert!(bad("s: {<<: 5}\n").contains("`<<` merges a mapping"));
    assert!(bad("_a: &a {t: 1}\ns:\n  <<: *a\n  <<: *a\n").contains("<<: [*a, *b]"));
}

#[test]
fn a_key_that_stands_twice_is_named_with_both_lines() {
    let text = bad("servers:\n  a:\n    command: [x]\n    cwd: /\n    command: [y]\n");
    assert!(text.contains("servers.a.command: the key `command` stands more than once, on lines 3 and 5"), "{text}");
    assert!(text.contains("job.yaml:5"), "{text}");
    assert!(bad("s: {a: 1, a: 2}").contains("twice on line 1"));
    assert!(bad("a: 1\n\"a\": 2").contains("lines 1 and 2"));
    // All of them at once.
    assert_eq!(read("a: 1\na: 2\nb: 1\nb: 2\n", "job.yaml").unwrap_err().iter().count(), 2);
}

#[test]
fn scalars_stay_source_text() {
    let yaml = good(
        "a: 0510210600\nb: 00001\nc: no\nd: on\ne: 1e5\nf: 3090\ng: p@s$w0rd\nh: 1_000\ni: '0x10'\nj: 12:30:45\nk: .5\n",
    );
    for (key, text) in [
        ("a", "0510210600"),
        ("b", "00001"),
        ("c", "no"),
        ("d", "on"),
        ("e", "1e5"),
        ("f", "3090"),
        ("g", "p@s$w0rd"),
        ("h", "1_000"),
        ("i", "0x10"),
        ("j", "12:30:45"),
        ("k", ".5"),
    ] {
        assert_eq!(text_at(&yaml, key), text);
    }
    assert_eq!(keys(&good("8000: x\nyes: y\n")), ["8000", "yes"]);
}

#[test]
fn what_is_null_is_asked_for() {
    let yaml = good("n: ~\ne:\nq: ''\nt: !!str 12\n");
    let get = |key: &str| yaml.get(key).unwrap();
    assert!(get("n").as_null() && get("e").as_null() && !get("q").as_null());
    assert_eq!(get("t").as_text(), Some("12"));
}

#[test]
fn a_byte_order_mark_is_not_content() {
    assert_eq!(good("\u{feff}name: x\n"), good("name: x\n"));
    assert_eq!(good("\u{feff}"), good(""));
    assert!(good("").as_null());
}

#[test]
fn line_ends_of_windows_leave_no_trace() {
    let unix = "# c\nname: x\nscript: |\n  set -e\n  echo a\n\n  echo b\nfold: >-\n  a\n  b\nquoted: \"a\n  b\"\nl:\n- x\n- y z\n";
    assert_eq!(good(&unix.replace('\n', "\r\n")), good(unix));
    assert_eq!(text_at(&good(&unix.replace('\n', "\r\n")), "script"), "set -e\necho a\n\necho b\n");
    // What an author asks for by an escape is kept.
    assert_eq!(text_at(&good("a: \"x\\r\\n\"\r\n"), "a"), "x\r\n");
}

#[test]
fn an_alias_bomb_meets_the_limit() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        let _ = writeln!(text, "a{level}: &a{level} [{aliases}]");
    }
    let problem = bad(&text);
    assert!(problem.contains("alias limit"), "{problem}");
    assert!(problem.contains("job.yaml:"), "{problem}");
    // The same through merge keys and through one long text.
    assert!(bad(&text.replace("a0: &a0 [x,", "a0: &a0 [{k: v},")).contains("alias limit"));
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(64_000), vec!["*a"; 1000].join(", "));
    assert!(bad(&long).contains("alias limit"));
    assert!(bad("a: &a [*a]\n").contains("an alias inside of the value that it names"));
    assert!(bad("a: *b\n").contains("job.yaml:1"));
}

#[test]
fn nesting_is_bounded() {
    assert!(bad(&"[".repeat(5000)).contains("job.yaml:1"));
    let mut deep = String::new();
    for level in 0..3000 {
        deep.push_str(&" ".repeat(level));
        deep.push_str("a:\n");
    }
    assert!(bad(&deep).contains("nest deeper"));
    assert!(bad(&"- ".repeat(50_000)).contains("nest deeper"));
}

#[test]
fn one_document_a_file() {
    assert_eq!(text_at(&good("---\na: 1\n...\n"), "a"), "1");
    let text = bad("a: 1\n---\nb: 2\n");
    assert!(text.contains("second YAML document") && text.contains("job.yaml:2"), "{text}");
}

#[test]
fn tags_that_mean_something_are_kept_and_others_refused() {
    let yaml = good("a: !unset\nb: !off\nc: ! 12\nd: !!int 5\ne: !unset ~\n");
    assert_eq!(yaml.get("a").unwrap().tag.as_deref(), Some("unset"));
    assert_eq!(yaml.get("b").unwrap().tag.as_deref(), Some("off"));
    assert_eq!(yaml.get("e").unwrap().tag.as_deref(), Some("unset"));
    assert!(matches!(yaml.get("c").unwrap().value, YamlValue::Scalar { plain: false, .. }));
    assert!(matches!(yaml.get("d").unwrap().value, YamlValue::Scalar { plain: true, .. }));
    for (text, tag) in [("a: !env X", "!env"), ("a: !!binary X", "!!binary"), ("a: !!python/object:x {}", "!!python")] {
        let problem = bad(text);
        assert!(
            problem.contains("unknown tag") && problem.contains(tag) && problem.contains("job.yaml:1"),
            "{problem}"
        );
    }
}

#[test]
fn a_syntax_error_has_its_line() {
    for (text, place) in [
        ("a: 1\nb: [1, 2\nc: 3\n", "job.yaml:3"),
        ("a:\n\tb: 2\n", "job.yaml:2"),
        ("a: \"x\n", "job.yaml:"),
        ("a: b: c\n", "job.yaml:1"),
        ("a: 1\n b: 2\n", "job.yaml:2"),
        ("a: @x\n", "job.yaml:1"),
        ("- a\nb: c\n", "job.yaml:2"),
        ("{a: 1}: x\n", "job.yaml:1"),
        ("a: 1\n: 2\n", "job.yaml:2"),
        ("a: x\0y", "job.yaml:1"),
    ] {
        let problem = bad(text);
        assert!(problem.contains(place), "{text:?}: {problem}");
    }
}

#[test]
fn every_value_has_its_line() {
    let yaml = good(
        "# first\na:\n  b: |\n    x\n    y\n  c:\n    - 1\n    -\n      d: 2\n_x: &x {k: 1}\nz: {<<: *x, o: *x}\n",
    );
    assert_eq!(line(&yaml, "a"), 2);
    assert_eq!(line(&yaml, "a.b"), 3);
    assert_eq!(line(&yaml, "a.c"), 6);
    assert_eq!(line(&yaml, "z.k"), 10);
    assert_eq!(line(&yaml, "z.o"), 11);
    let YamlValue::List(items) = &yaml.get("a").unwrap().get("c").unwrap().value else { panic!() };
    assert_eq!(items[0].location.line, Some(7));
    assert_eq!(items[1].location.line, Some(9));
}

#[test]
fn written_yaml_comes_back_as_it_was() {
    let value = json!({"b": ["", "no", "0123", "1e5", "~", "a: b", "x\ny\n", " lead", "trail ", "#c", "é", "\t", "$x", "*a", "!t", "-", "2001-01-01", "<<", "=", "y", "012", "1_0", "0b1", "1:30", "on", "0o7", "+1", ".5", "1.", ".inf", "null", "'", "\"", "{", "%x", "@x", "`", "|", ">", "?", ":", "---"],
                       "a": {"z": 1, "n": null, "t": true, "f": 1.5, "e": {}, "l": []}});
    let text = write(&value);
    let yaml = good(&text);
    let YamlValue::List(items) = &yaml.get("b").unwrap().value else { panic!() };
    for (item, original) in items.iter().zip(value["b"].as_array().unwrap()) {
        assert_eq!(item.as_text(), original.as_str(), "{text}");
        assert!(!item.as_null(), "{original} in {text}");
    }
    assert_eq!(serde_yaml::from_str::<serde_json::Value>(&text).unwrap(), value, "to other readers too");
    assert_eq!(write(&value), text);
    for text in ["no", "2001-01-01", "1_0", "1:30", "<<", "=", "y"] {
        assert_eq!(write(&text), format!("\"{text}\"\n"), "every reader must take it for text");
    }
    assert_eq!(write(&"${env:X}"), "${env:X}\n");
    assert_eq!(write(&json!([[1, [2]], {"a": [{"b": {}}], "c": "d"}])), "- - 1\n  - - 2\n- a:\n  - b: {}\n  c: d\n");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_panics(text in "[-a:{}\\[\\],&*!|>'\"#%@?~ \t\r\n0.<$\\\\\u{feff}\0é]{0,60}") {
        let _ = read(&text, "job.yaml");
    }

    #[test]
    fn any_text_survives_writing(text in any::<String>(), word in "[a-z$/_][a-z0-9 :#{}|'\"\\[\\]&*!,.-]{0,12}") {
        for text in [text.replace('\0', ""), word] {
            let yaml = read(&write(&json!({"k": [{"a": text, "b": {text.as_str(): [text]}}]})), "x").unwrap();
            let expected = json!({"k": [{"a": text, "b": {text.as_str(): [text]}}]});
            prop_assert_eq!(plain(&yaml), expected);
        }
    }
}

fn plain(yaml: &Yaml) -> serde_json::Value {
    match &yaml.value {
        YamlValue::Scalar { text, .. } => json!(text),
        YamlValue::List(items) => items.iter().map(plain).collect(),
        YamlValue::Map(map) => map.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
    }
}
