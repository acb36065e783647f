//! Reading, interpolation, settings, layers, fragments.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use super::{
    BuiltIn, Language, Layers, Node, NodeValue, Reading, Request, SourceFile, World, interpolate, merge, prune,
};
use crate::diag::{Problem, Problems};

fn world(directory: &Path, variables: &[(&str, &str)]) -> World {
    World {
        environment: variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>(),
        look_up_secrets: false,
        ..World::isolated(directory)
    }
}

fn yaml(text: &str) -> Node {
    let world = world(Path::new("/w"), &[("PW", "p@s$w0rd ${HOME}"), ("PORT", "8000"), ("EMPTY", "")]);
    super::read_yaml(text, "job.yaml", Reading { world: &world, job_id: "j1" }).unwrap()
}

fn yaml_problems(text: &str) -> String {
    let world = world(Path::new("/w"), &[]);
    super::read_yaml(text, "job.yaml", Reading { world: &world, job_id: "j1" }).unwrap_err().to_string()
}

fn get<'a>(node: &'a Node, path: &str) -> &'a Node {
    path.split('.').fold(node, |node, key| match &node.value {
        NodeValue::Map(map) => &map[key],
        NodeValue::List(items) => &items[key.parse::<usize>().unwrap()],
        _ => panic!("{path}: no {key}"),
    })
}

fn shown(node: &Node) -> String {
    match &node.value {
        NodeValue::Plain(text) => format!("plain {text}"),
        NodeValue::Text(text) => format!("text {text}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_variable_is_read_once_and_other_dollars_are_text() {
    let node = yaml("A: \"${env:PW}\"\nB: \"o$ne\"\nC: \"$${HOME}\"\nD: a$$b$\nE: $$${x}\nF: p@s$w0rd\n");
    let literal = |key: &str| match &get(&node, key).value {
        NodeValue::Text(text) => text.as_literal().unwrap().to_owned(),
        NodeValue::Plain(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(literal("A"), "p@s$w0rd ${HOME}");
    assert_eq!(literal("B"), "o$ne");
    assert_eq!(literal("C"), "${HOME}");
    assert_eq!(literal("D"), "a$$b$");
    assert_eq!(literal("E"), "$${x}");
    assert_eq!(literal("F"), "p@s$w0rd");
}

#[test]
fn every_form_is_read() {
    let node = yaml(
        "a: ${env:NOPE:-d:-e}\nb: ${secret:X}\nc: ${runtime:X}/${runtime:Y:-z}\nd: ${port:self}\ne: ${port:n.k}\n\
         f: ${host:n}\ng: ${url:n}/v1\nh: ${job:dir}/a\ni: ${job:id}\nj: ${file:f.txt}\nk: ${env:PORT}\nl: \"${env:PORT}\"\nm: ${env:EMPTY}\n",
    );
    for (key, expected) in [
        ("a", "plain d:-e"),
        ("b", "text <X>"),
        ("c", "text ${runtime:X}/${runtime:Y:-z}"),
        ("d", "text ${port:self}"),
        ("e", "text ${port:n.k}"),
        ("f", "text ${host:n}"),
        ("g", "text ${url:n}/v1"),
        ("h", "text ${job:dir}/a"),
        ("i", "plain j1"),
        ("j", "text ${job:dir}/files/f.txt"),
        ("k", "plain 8000"),
        ("l", "text 8000"),
        ("m", "plain "),
    ] {
        assert_eq!(shown(get(&node, key)), expected, "{key}");
    }
}

#[test]
fn a_wrong_form_is_named_with_its_place() {
    let text =
        yaml_problems("a:\n  b: [x, \"${HOME}\"]\nc: ${foo:x}\nd: ${env:NOPE}\ne: ${port:}\nf: ${url:a\ng: ${job:x}\n");
    assert!(
        text.contains("a.b[2]: unknown form `${HOME}`\n  --> job.yaml:2\n  hint: did you mean `${env:HOME}`?"),
        "{text}"
    );
    assert!(text.contains("c: unknown form `${foo:x}`\n  --> job.yaml:3\n  hint: known: ${env:X}"), "{text}");
    assert!(text.contains("d: the variable `NOPE` is not set\n  --> job.yaml:4"), "{text}");
    assert!(
        text.contains("e: unknown form") && text.contains("f: `${url:a` has no `}`") && text.contains("g: unknown"),
        "{text}"
    );
}

#[test]
fn scratch_keys_of_the_root_are_left_out_and_never_expanded() {
    let node = yaml("_a: &a {X: \"${env:NOPE}\"}\n_b: &b [1]\nenv: {_X: 1}\nl: *b\n");
    let NodeValue::Map(map) = &node.value else { panic!() };
    assert_eq!(map.keys().collect::<Vec<_>>(), ["env", "l"]);
    assert_eq!(shown(get(&node, "env._X")), "plain 1");
}

#[test]
fn marks_stand_alone() {
    let node = yaml("a: !unset\nb: !off\nc: ~\nd:\n");
    assert_eq!(get(&node, "a").value, NodeValue::Unset);
    assert_eq!(get(&node, "b").value, NodeValue::Bool(false));
    assert_eq!(get(&node, "c").value, NodeValue::Null);
    assert_eq!(get(&node, "d").value, NodeValue::Null);
    assert!(yaml_problems("a: !off x\n").contains("`!off` stands alone"));
}

#[test]
fn layers_merge_by_shape() {
    let lower = yaml("s: 1\nm: {a: 1, b: {c: 1}}\nl: [1, 2]\nscrape: [{job_name: x}]\ne: {X: 1, Y: 2}\nh: {p: 1}\n");
    let upper = yaml("s: 2\nm: {b: {d: 2}, a: !unset}\nl: [3]\nscrape: [{job_name: y}]\ne: {X: !off}\nh: false\n");
    let mut merged = merge(lower, upper);
    prune(&mut merged);
    assert_eq!(shown(get(&merged, "s")), "plain 2");
    let NodeValue::Map(m) = &get(&merged, "m").value else { panic!() };
    assert_eq!(m.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!((shown(get(&merged, "m.b.c")), shown(get(&merged, "m.b.d"))), ("plain 1".into(), "plain 2".into()));
    let NodeValue::List(l) = &get(&merged, "l").value else { panic!() };
    assert_eq!(l.len(), 1);
    assert_eq!(shown(get(&merged, "scrape.1.job_name")), "plain y");
    assert_eq!(get(&merged, "e.X").value, NodeValue::Bool(false));
    assert_eq!(shown(get(&merged, "e.Y")), "plain 2");
    assert_eq!(shown(get(&merged, "h")), "plain false");
    // Each value keeps its own line.
    assert_eq!(get(&merged, "m.b.c").location.line, Some(2));
}

fn set(arguments: &[&str]) -> Result<Node, Problems> {
    let world = world(Path::new("/w"), &[]);
    let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
    super::settings(&arguments, Reading { world: &world, job_id: "j1" })
}

#[test]
fn settings_are_yaml_at_a_path() {
    let node = set(&[
        "otel.headers.\"a.b\"=x=y",
        "driver.command=[a, '${url:p}']",
        "driver.env={_X: 0510}",
        "driver.env.Y=no",
        "a=1",
        "a=2",
        "b=",
    ])
    .unwrap();
    let NodeValue::Map(headers) = &get(&node, "otel.headers").value else { panic!() };
    assert_eq!(shown(&headers["a.b"]), "plain x=y");
    assert_eq!(shown(get(&node, "driver.command.1")), "text ${url:p}");
    assert_eq!(shown(get(&node, "driver.env._X")), "plain 0510");
    assert_eq!(shown(get(&node, "driver.env.Y")), "plain no");
    assert_eq!(shown(get(&node, "a")), "plain 2");
    assert_eq!(get(&node, "b").value, NodeValue::Null);
    assert_eq!(get(&node, "driver.command").location.to_string(), "<command line>");
}

#[test]
fn wrong_settings_are_all_named() {
    let text = set(&["a", ".b=1", "c.\"d=1", "e={", "_f=1", "g=${x}", "driver.command[1]=x"]).unwrap_err().to_string();
    for part in [
        "--set `a`: there is no `=`",
        "a part of the path is empty",
        "a quote is not closed",
        "error: e: not valid YAML",
        "`_f` is a scratch key",
        "g: unknown form `${x}`",
        "--set `driver.command[1]=x`: a list is set as a whole, `key=[a, b]`, not by item",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("<command line>:"), "{text}");
}

const BUILT_IN: [BuiltIn; 1] = [BuiltIn { name: "local", language: Language::Yaml, text: "cluster: local\n" }];

fn collect(world: &World, site: &[&str]) -> Result<Layers, Problems> {
    let site: Vec<String> = site.iter().map(|s| (*s).to_owned()).collect();
    let request = Request { world, job_id: "j1", site: &site, set: &[], output_path: None, built_in: &BUILT_IN };
    request.collect(Path::new("job.yaml"), &mut |file: &SourceFile| {
        Err(Problem::new(format!("no Lua here: {}", file.display)).into())
    })
}

fn write(directory: &Path, file: &str, text: &str) {
    let path = directory.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn names(layers: &Layers) -> Vec<(&str, &str)> {
    layers.fragments.iter().map(|f| (f.source.name.as_str(), f.source.file.as_str())).collect()
}

#[test]
fn fragments_are_found_ordered_and_used_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "job.yaml", "name: x\nsite: [top, other]\n");
    write(root, "site-fragments/top.yaml", "extends: [base, local]\n");
    write(root, "more/base.yaml", "extends: local\n");
    write(root, "more/top.yaml", "cluster: shadowed\n");
    write(root, "config/gymrun/site-fragments/other.yaml", "extends: base\n");
    let config = root.join("config");
    let world = world(root, &[("GYMRUN_SITE_PATH", "nope:more"), ("XDG_CONFIG_HOME", config.to_str().unwrap())]);
    let layers = collect(&world, &[]).unwrap();
    assert_eq!(
        names(&layers),
        [
            ("local", "<built-in local>"),
            ("base", "more/base.yaml"),
            ("top", "site-fragments/top.yaml"),
            ("other", "config/gymrun/site-fragments/other.yaml"),
        ]
    );
    assert!(!matches!(&layers.job.value, NodeValue::Map(map) if map.contains_key("site")));
    // --site replaces the job's.
    assert_eq!(names(&collect(&world, &["local"]).unwrap()).len(), 1);
}

#[test]
fn without_a_site_the_environment_then_default_then_local() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "job.yaml", "name: x\n");
    let first = |variables: &[(&str, &str)]| names(&collect(&world(root, variables), &[]).unwrap())[0].0.to_owned();
    assert_eq!(first(&[]), "local");
    write(root, "site-fragments/default.yaml", "cluster: here\n");
    assert_eq!(first(&[]), "default");
    write(root, "site-fragments/mine.yaml", "cluster: mine\n");
    assert_eq!(first(&[("GYMRUN_SITE", " mine , local")]), "mine");
}

#[test]
fn wrong_fragments_are_all_named() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "job.yaml", "name: x\nsite:\n- locl\n- a\n- twice\n- ../x\n- bad\n- script\n");
    write(root, "site-fragments/a.yaml", "extends: b\n");
    write(root, "site-fragments/b.yaml", "\nextends: a\n");
    write(root, "site-fragments/twice.yaml", "a: 1\n");
    write(root, "site-fragments/twice.lua", "");
    write(root, "site-fragments/bad.yaml", "a: 1\na: 2\n");
    write(root, "site-fragments/script.lua", "");
    let text = collect(&world(root, &[]), &[]).unwrap_err().to_string();
    for part in [
        "there is no site fragment `locl`\n  --> job.yaml:3\n  hint: did you mean `local`?",
        "in a circle: a -> b -> a\n  --> site-fragments/b.yaml:2",
        "`twice` is there twice: `site-fragments/twice.lua` and `site-fragments/twice.yaml`\n  --> job.yaml:5",
        "`../x` is no name of a site fragment",
        "site-fragments/bad.yaml:2",
        "no Lua here: site-fragments/script.lua",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn job_files_that_cannot_be_read_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    assert!(collect(&world(root, &[]), &[]).unwrap_err().to_string().contains("cannot read the file: no such file"));
    std::fs::write(root.join("job.yaml"), b"name: x\nfoo: \xff\n").unwrap();
    let text = collect(&world(root, &[]), &[]).unwrap_err().to_string();
    assert!(text.contains("not UTF-8\n  --> job.yaml:2"), "{text}");
    write(root, "job.yaml", "job: {}\ncompute: {}\n");
    let text = collect(&world(root, &[]), &[]).unwrap_err().to_string();
    assert!(text.contains("compute: a `gym eval submit` file") && text.contains("job.yaml:2"), "{text}");
    let world = world(root, &[]);
    let problem = SourceFile::read_job(Path::new("job.toml"), &world).unwrap_err();
    assert!(problem.to_string().contains("`.lua`"), "{problem}");
    std::fs::write(root.join("bom.yaml"), "\u{feff}name: x\n").unwrap();
    assert_eq!(SourceFile::read_job(Path::new("bom.yaml"), &world).unwrap().text, "name: x\n");
}

#[test]
fn the_whole_text_stays_one_text() {
    let world = world(Path::new("/w"), &[]);
    let text = interpolate("a${url:x}/b$${c}${job:id}", Reading { world: &world, job_id: "j1" }).unwrap();
    assert_eq!(text.segments().len(), 3);
    assert_eq!(text.to_string(), "a${url:x}/b$${c}j1");
}
