//! Hooks, peers, `gym.eval`, values of Lua.

use super::super::check;
use super::case::{Case, good, process};
use crate::diag::Location;
use crate::inputs::{Layers, Node, NodeValue, Reading, read_yaml, settings};
use crate::plan::{Text, Tree};
use crate::policy::spec::{Detail, EnvValue, Hook, HookForm};

fn peer_job() -> Node {
    let world = Case::default().world();
    let reading = Reading { world: &world, job_id: "j1" };
    let mut node = read_yaml(
        "name: x\nservers:\n  r: {type: resources_servers, command: [x]}\n  a: {type: responses_api_agents, command: [x], config: {n: 1, z: 007, f: 1e-5, t: true, x: ~}}\n",
        "jobs/job.yaml",
        reading,
    )
    .unwrap();
    let NodeValue::Map(root) = &mut node.value else { panic!() };
    let NodeValue::Map(servers) = &mut root["servers"].value else { panic!() };
    let NodeValue::Map(agent) = &mut servers["a"].value else { panic!() };
    let NodeValue::Map(config) = &mut agent["config"].value else { panic!() };
    let peer = |name: &str| Node { value: NodeValue::Peer(name.into()), location: Location::new("jobs/job.yaml", 4) };
    config.insert("resources".into(), peer("r"));
    config.insert("other".into(), peer("nope"));
    node
}

#[test]
fn a_peer_is_type_and_name_and_a_dependency() {
    let case = Case::default();
    let layers = Layers {
        unreadable: crate::diag::Problems::new(),
        job_file: "jobs/job.yaml".into(),
        fragments: Vec::new(),
        job: peer_job(),
        settings: settings(&["otel.enabled=false".into()], Reading { world: &case.world(), job_id: "j1" }).unwrap(),
    };
    let checked = check(layers, "j1", &case.world());
    let said = checked.problems.to_string();
    assert!(said.contains("servers.a.config.other: gym.peer: there is no server `nope`"), "{said}");
    let Detail::Server(server) = &process(&checked.spec, "a").detail else { panic!() };
    let text = |text: &str| Tree::Text(Text::literal(text));
    assert_eq!(server.config["resources"].get("type"), Some(&text("resources_servers")));
    assert_eq!(server.config["resources"].get("name"), Some(&text("r")));
    assert_eq!(process(&checked.spec, "a").depends_on[0].value, "r");
    // Free configuration has YAML's types, but no number is changed.
    assert_eq!(server.config["n"], Tree::Int(1));
    assert_eq!(server.config["z"], text("007"));
    assert_eq!(server.config["f"], Tree::Float(1e-5));
    assert_eq!((&server.config["t"], &server.config["x"]), (&Tree::Bool(true), &Tree::Null));
}

#[test]
fn hooks_stand_beside_the_layers() {
    let site = "
otel: {endpoint: false, service_name: s}
attributes: {team: rl, n: 5, zip: 0123, ok: true, ratio: 1.50}
scrape: [{job_name: ib, port: 9315, labels: {fabric: 0}, relabel_configs: [{source_labels: [a], regex: \"(.*)$\", modulus: 8}]}]
environment: {A: no, B: !off}
launch: {prefix: [nice, -n, 5]}
collector: {service: {telemetry: {logs: {level: debug}}}}
";
    let spec = Case {
        site,
        job: "name: x\nattributes: {mine: 1}\nscrape: [{job_name: j, targets: [\"localhost:1\"]}]\n",
        ..Case::default()
    }
    .good();
    let hooks = &spec.fragments[0].hooks;
    assert_eq!(hooks.keys().copied().collect::<Vec<_>>(), Hook::ALL);
    let HookForm::Attributes(attributes) = &hooks[&Hook::Attributes].form else { panic!() };
    let text = |text: &str| Tree::Text(Text::literal(text));
    assert_eq!(attributes["n"].value, Tree::Int(5));
    assert_eq!((&attributes["zip"].value, &attributes["ratio"].value), (&text("0123"), &text("1.50")));
    assert_eq!(attributes["ok"].value, Tree::Bool(true));
    let HookForm::Scrape(targets) = &hooks[&Hook::Scrape].form else { panic!() };
    assert_eq!((targets[0].port, targets[0].nodes.as_str()), (Some(9315), "all"));
    assert_eq!(targets[0].relabel_configs[0].get("modulus"), Some(&Tree::Int(8)));
    let HookForm::Environment(environment) = &hooks[&Hook::Environment].form else { panic!() };
    assert_eq!(environment["B"].value, EnvValue::Unset);
    let HookForm::Launch { prefix } = &hooks[&Hook::Launch].form else { panic!() };
    assert_eq!(prefix.len(), 3);
    assert_eq!(spec.attributes["mine"].value, Tree::Int(1));
    assert_eq!(spec.scrape.len(), 1);
    // Wrong ones, and those of later versions.
    let said = Case {
        site: "otel: {endpoint: false, service_name: s}\nlaunch: [nice]\nscrpe: []\nsbatch: {}\nservices: {}\n",
        job: "name: x\nlaunch: {}\n",
        ..Case::default()
    }
    .said();
    for part in [
        "launch: a function, or a mapping is due, not a list",
        "scrpe: unknown key\n  --> site/here.yaml:3\n  hint: did you mean `scrape`?",
        "sbatch: not supported yet",
        "services: unknown key\n  --> site/here.yaml:5\n  hint: `services` belongs in a job",
        "launch: unknown key\n  --> jobs/job.yaml:2\n  hint: `launch` belongs in a site fragment",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn results_of_hooks_are_checked_like_what_people_write() {
    let node =
        |text: &str| read_yaml(text, "<hook>", Reading { world: &Case::default().world(), job_id: "j1" }).unwrap();
    assert_eq!(super::super::arguments(&node("[a, 5, \"${port:self}\"]"), "launch").unwrap().len(), 3);
    assert!(super::super::arguments(&node("[]"), "launch").unwrap_err().to_string().contains("argv is empty"));
    assert!(super::super::arguments(&node("[~]"), "launch").unwrap_err().to_string().contains("launch[1]: a hole"));
    assert!(
        super::super::variables(&node("{A: [x]}"), "environment").unwrap_err().to_string().contains("environment.A")
    );
    assert!(
        super::super::attributes(&node("{A: \"${secret:X}\"}"), "attributes")
            .unwrap_err()
            .to_string()
            .contains("secret")
    );
    assert!(super::super::targets(&node("[{job_name: x}]"), "scrape").unwrap_err().to_string().contains("scrape[1]"));
    assert!(super::super::document(&node("{a: {b: 1}}"), "collector").is_ok());
}

#[test]
fn gym_eval_reads_its_paths_beside_its_file() {
    let spec = good("name: x\ndriver: {type: eval, agent: a, input: tasks.jsonl, repeats: 2, executable: bin/gym}\n");
    let Detail::Driver(driver) = &process(&spec, "driver").detail else { panic!() };
    let eval = driver.eval.as_ref().unwrap();
    assert_eq!(eval.input.as_literal(), Some("/home/tester/jobs/tasks.jsonl"));
    assert_eq!(eval.output.to_string(), "${job:dir}/artifacts/rollouts.jsonl");
    assert_eq!((eval.repeats, eval.concurrency, eval.require_complete), (2, None, true));
    assert_eq!(eval.executable, "/home/tester/jobs/bin/gym");
    let said = Case { job: "name: x\ndriver: {type: eval, command: [x]}\n", ..Case::default() }.said();
    for part in [
        "driver.command: the key is not one of this kind",
        "driver.agent: the key `agent` is missing",
        "driver.input: the key",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn values_of_lua_are_held_to_their_kinds() {
    let place = || Location::new("job.lua", 3);
    let node = |value| Node { value, location: place() };
    let map = |entries: Vec<(&str, NodeValue)>| {
        NodeValue::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), node(value))).collect())
    };
    let text = |text: &str| NodeValue::Text(Text::literal(text));
    let server = map(vec![
        ("type", text("resources_servers")),
        (
            "command",
            NodeValue::List(vec![
                node(text("x")),
                node(NodeValue::Int(5)),
                node(NodeValue::Bool(false)),
                node(NodeValue::Float(1.5)),
            ]),
        ),
        ("port", NodeValue::Float(8000.5)),
        ("grace_seconds", NodeValue::Float(f64::NAN)),
        ("num_workers", NodeValue::Float(2.0)),
        ("cwd", NodeValue::Int(3)),
        ("depends_on", map(Vec::new())),
        (
            "env",
            map(vec![
                ("A", NodeValue::Bool(true)),
                ("B", NodeValue::Int(1)),
                ("C", NodeValue::Float(1.5)),
                ("D", NodeValue::Function(1)),
            ]),
        ),
    ]);
    let job = node(map(vec![("name", text("x")), ("servers", map(vec![("s", server)]))]));
    let case = Case::default();
    let layers = Layers {
        unreadable: crate::diag::Problems::new(),
        job_file: "job.lua".into(),
        fragments: Vec::new(),
        job,
        settings: settings(&["otel.enabled=false".into()], Reading { world: &case.world(), job_id: "j1" }).unwrap(),
    };
    let checked = check(layers, "j1", &case.world());
    let said = checked.problems.to_string();
    for part in [
        "servers.s.command[3]: `false` in a list",
        "servers.s.command[4]: text or a whole number is due, not the number `1.5`",
        "servers.s.port: a port",
        "not the number `8000.5`",
        "servers.s.grace_seconds: a number, 0 or more, is due, not the number `NaN`",
        "servers.s.cwd: a path is due, not the number `3`",
        "servers.s.env.A: text or a whole number, or false is due, not the boolean `true`",
        "servers.s.env.C: text or a whole number",
        "servers.s.env.D: text or a whole number, or false is due, not a function",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(said.matches("error:").count(), 8, "{said}");
    let Detail::Server(server) = &process(&checked.spec, "s").detail else { panic!() };
    assert_eq!(server.num_workers, 2);
}

#[test]
fn defaults_that_are_values_are_what_their_keys_take() {
    for table in super::super::tables::ALL {
        for key in table.keys() {
            if let super::super::kinds::Default::Value(value) = key.default {
                let node = Node { value: NodeValue::Plain(value.into()), location: Location::file("x") };
                let mut problems = crate::diag::Problems::new();
                super::super::check::check(&node, &key.takes, &super::super::path::Path::Of(key.name), &mut problems);
                assert!(problems.is_empty(), "{}: {problems}", table.title);
            }
        }
    }
}
