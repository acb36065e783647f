//! The jobs and fragments of the documentation.

use super::support::{Folder, argv, data, folder, unit, variable};
use crate::harness::python;

fn job(name: &str) -> Folder {
    folder(&[(name, &data(&format!("policy/jobs/{name}")))])
}

/// A job and one fragment of the documentation beside it.
fn at_site(fragment: &str, job: &str) -> Folder {
    let text = data(&format!("policy/site-fragments/{fragment}"));
    folder(&[("job.lua", job), (&format!("site-fragments/{fragment}"), &text)])
}

const SMALL: &str = r#"
local gym = require "gymrun"
return gym.job {
  name = "small",
  services = { policy = gym.vllm { model = "m" } },
  servers = { s = gym.server { type = "resources_servers", implementation = "s" } },
  driver = { command = { "true" } },
}
"#;

#[test]
fn quickstart_in_lua_and_yaml_give_one_plan() {
    let lua = data("policy/jobs/quickstart.lua");
    let yaml = data("policy/jobs/quickstart.yaml");
    let folder = folder(&[("job.lua", &lua), ("job.yaml", &yaml)]);
    let plans = ["job.lua", "job.yaml"].map(|job| without_places(&folder, job));
    assert_eq!(plans[0], plans[1]);
}

/// A plan as JSON, but for what says where something was written.
fn without_places(folder: &Folder, job: &str) -> String {
    let mut json = serde_json::to_value(folder.plan(job)).expect("a plan is JSON");
    strip_places(&mut json);
    serde_json::to_string_pretty(&json).expect("JSON")
}

fn strip_places(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(map) => {
            map.retain(|key, _| !["location", "source", "job_file", "file"].contains(&key.as_str()));
            map.values_mut().for_each(strip_places);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(strip_places),
        _ => {}
    }
}

#[test]
fn quickstart_is_complete() {
    let plan = job("quickstart.lua").plan("quickstart.lua");
    let names: Vec<&str> = plan.units.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names, ["otel_collector", "policy_model", "weather", "agent", "driver"]);
    assert_eq!(argv(&plan, "driver"), ["python3", "driver.py", "--agent", "${url:agent}/run", "--rollouts", "8"]);
    assert_eq!(argv(&plan, "agent"), ["python3", "servers/agent.py", "--port", "${port:agent}"]);
    assert_eq!(variable(&plan, "agent", "MODEL_URL").as_deref(), Some("${url:policy_model}"));
    assert_eq!(variable(&plan, "driver", "ROLLOUTS_FILE").as_deref(), Some("${job:dir}/artifacts/rollouts.jsonl"));
    assert_eq!(unit(&plan, "agent").depends_on, ["policy_model", "weather"]);
    assert_eq!(plan.site[0].file, "<built-in local>");
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn nemo_gym_runs_the_real_servers() {
    let folder = job("nemo_gym.lua").variable("GYM_VENV", "/venv");
    let plan = folder.plan("nemo_gym.lua");
    let agent = unit(&plan, "my_agent");
    let mut needs = agent.depends_on.clone();
    needs.sort();
    assert_eq!(needs, ["example_single_tool_call", "policy_model"]);
    assert_eq!(argv(&plan, "my_agent")[0], "/venv/bin/python");
    assert_eq!(argv(&plan, "driver"), ["/venv/bin/gym", "eval", "run", "--no-serve"]);
    assert_eq!(variable(&plan, "my_agent", "NEMO_GYM_CONFIG_PATH").as_deref(), Some("my_agent"));
    assert_eq!(variable(&plan, "driver", "NEMO_GYM_CONFIG_PATH"), None);
    assert_eq!(variable(&plan, "my_agent", "OTEL_EXPORTER_OTLP_TIMEOUT").as_deref(), Some("2"));
    assert_eq!(variable(&plan, "my_agent", "PYTHONPATH").as_deref(), Some("${job:dir}/files/python"));
    assert_eq!(variable(&plan, "policy", "PYTHONPATH"), None);

    let config = |name: &str| -> serde_json::Value {
        serde_json::from_str(&variable(&plan, name, "NEMO_GYM_CONFIG_DICT").expect("a document")).expect("JSON")
    };
    let servers = config("my_agent");
    assert_eq!(
        servers["my_agent"],
        serde_json::json!({"responses_api_agents": {"simple_agent": {
            "entrypoint": "app.py", "host": "${host:my_agent}", "port": "${port:my_agent}",
            "resources_server": {"type": "resources_servers", "name": "example_single_tool_call"},
            "model_server": {"type": "responses_api_models", "name": "policy_model"},
        }}})
    );
    let model = &servers["policy_model"]["responses_api_models"]["openai_model"];
    assert_eq!(model["openai_base_url"], "${url:policy}/v1");
    assert!(servers["head_server"]["port"].is_number());
    assert_eq!(servers["dry_run"], false);
    assert!(servers.get("agent_name").is_none());

    let driver = config("driver");
    assert_eq!(driver["agent_name"], "my_agent");
    assert_eq!(driver["input_jsonl_fpath"], format!("{}/tasks.jsonl", folder.path().display()));
    assert_eq!(driver["output_jsonl_fpath"], "${job:dir}/artifacts/rollouts.jsonl");
    assert_eq!(driver["num_repeats"], 2);
    assert_eq!(driver["num_samples_in_parallel"], 4);
    assert_eq!(driver["require_complete"], true);
    let relay = &driver["my_agent_environment"]["environment_servers"]["legacy_agent"];
    assert_eq!(relay["port"], "${port:my_agent}");
    assert_eq!(relay["agent_server"]["name"], "my_agent");
    assert!(plan.files.iter().any(|file| file.path == "files/python/sitecustomize.py"));
}

#[test]
fn without_the_lens_module_nothing_is_put_in_front() {
    let folder = job("nemo_gym.lua");
    let mut request = folder.request("nemo_gym.lua");
    request.set = vec!["telemetry.lens_compat=false".into()];
    let plan = gymrun::policy::load(request).expect("a plan");
    assert_eq!(variable(&plan, "my_agent", "PYTHONPATH"), None);
    assert!(!plan.files.iter().any(|file| file.path.ends_with("sitecustomize.py")));
}

#[test]
fn the_agent_of_an_evaluation_is_a_server() {
    let text = super::support::problems(
        r#"local gym = require "gymrun"
        return gym.job { name = "x", driver = gym.eval { agent = "my_agnt", input = "t.jsonl" },
          servers = { my_agent = gym.server { type = "responses_api_agents", implementation = "simple_agent" } } }"#,
    );
    assert!(text.contains("driver.agent: there is no server `my_agnt`"), "{text}");
    assert!(text.contains("did you mean `my_agent`"), "{text}");
}

#[test]
fn a_root_gives_the_plain_command() {
    let plan = super::support::plan(
        r#"local gym = require "gymrun"
        return gym.job { name = "x", servers = { a = gym.server {
          type = "resources_servers", implementation = "weather", root = "/gym", python = "/venv/bin/python" } } }"#,
    );
    assert_eq!(argv(&plan, "a"), ["/venv/bin/python", "app.py"]);
    assert_eq!(unit(&plan, "a").cwd, "/gym/resources_servers/weather");
}

#[test]
fn many_servers_come_from_a_loop() {
    let plan = job("many_servers.lua").plan("many_servers.lua");
    assert_eq!(plan.units.len(), 1 + 1 + 17 + 1);
    assert_eq!(variable(&plan, "codebench_07", "SHARD").as_deref(), Some("6"));
    assert_eq!(variable(&plan, "codebench_07", "CODEBENCH_WORKERS").as_deref(), Some("2"));
    let urls = variable(&plan, "agent", "SHARD_URLS").expect("set");
    assert!(urls.starts_with("${url:codebench_01},${url:codebench_02},"), "{urls}");
    assert_eq!(argv(&plan, "driver"), ["python", "run.py", "--shards", "${job:dir}/files/shards.json"]);
    assert_eq!(unit(&plan, "agent").depends_on.len(), 16);
    let file = plan.files.iter().find(|file| file.path == "files/shards.json").expect("the file");
    let mut references = 0;
    file.contents.visit_texts(&mut |text| references += text.references().count());
    assert_eq!((references, file.mode), (16, 0o600));
    let debug = job("many_servers.lua").variable("DEBUG", "1").plan("many_servers.lua");
    assert_eq!(argv(&debug, "driver").last().map(String::as_str), Some("--debug"));
}

#[test]
fn one_command_alone_is_a_job() {
    let plan = job("wrap_one.lua").plan("wrap_one.lua");
    let names: Vec<&str> = plan.units.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names, ["otel_collector", "driver"]);
    assert_eq!(argv(&plan, "driver").last().map(String::as_str), Some("1e-5"));
    assert_eq!(variable(&plan, "driver", "PROMETHEUS_PORT").as_deref(), Some("9464"));
    assert_eq!(plan.scrape.len(), 1);
    assert_eq!(plan.attributes["experiment"], gymrun::plan::Tree::Text("lr-sweep".into()));
}

#[test]
fn the_laptop_is_one_fragment_in_both_languages() {
    let plans = ["laptop.lua", "laptop.yaml"].map(|fragment| {
        let folder = at_site(fragment, SMALL).variable("HOME", "/home/me");
        let mut request = folder.request("job.lua");
        request.site = vec!["laptop".into()];
        let plan = gymrun::policy::load(request).unwrap_or_else(|problems| panic!("{fragment}: {problems}"));
        assert_eq!(plan.output_path, "/home/me/gymrun-jobs");
        assert_eq!(plan.cluster, "local");
        assert_eq!(argv(&plan, "s")[0], "/home/me/gym/.venv/bin/python");
        let mut json = serde_json::to_value(&plan).expect("JSON");
        strip_places(&mut json);
        // The scratch folder is not the same.
        json.to_string().replace(&folder.path().display().to_string(), "FOLDER")
    });
    assert_eq!(plans[0], plans[1]);
}

#[test]
fn the_workstation_wraps_every_process() {
    let folder = at_site("workstation.lua", SMALL);
    let mut request = folder.request("job.lua");
    request.site = vec!["workstation".into()];
    let plan = gymrun::policy::load(request).expect("a plan");
    assert_eq!(plan.ports.auto, (20000, 20099));
    assert_eq!(plan.ports.avoid, [20080]);
    assert_eq!(plan.cluster, "ws-07");
    assert_eq!(argv(&plan, "policy")[..5], ["nice", "-n", "5", "/opt/vllm/bin/vllm", "serve"].map(str::to_owned));
    assert_eq!(argv(&plan, "otel_collector")[..5], ["nice", "-n", "5", "gymrun", "collector"].map(str::to_owned));
    assert_eq!(variable(&plan, "policy", "TMPDIR").as_deref(), Some("/scratch/tester"));
    let source = &unit(&plan, "policy").env["TMPDIR"].source;
    assert_eq!(source, "hook environment of workstation");
    let jobs: Vec<&str> = plan.scrape.iter().map(|target| target.job_name.as_str()).collect();
    assert_eq!(jobs, ["gym-vllm/policy", "dcgm"]);
    let collector = plan.collector.as_ref().expect("a collector");
    assert_eq!(collector.endpoint.as_deref(), Some("http://127.0.0.1:14318"));
    assert!(collector.config.get("exporters").and_then(|e| e.get("otlp_http/managed")).is_some());
}

#[test]
fn a_url_with_a_path_is_the_same_in_both_languages() {
    let yaml =
        "name: x\nservers:\n  a: {type: resources_servers, command: [a]}\ndriver:\n  command: [d, \"${url:a}/v1\"]\n";
    let lua = r#"local gym = require "gymrun"
        return gym.job { name = "x", servers = { a = gym.server { type = "resources_servers", command = { "a" } } },
          driver = { command = { "d", gym.url("a", "/v1") } } }"#;
    let folder = folder(&[("job.lua", lua), ("job.yaml", yaml)]);
    let words = ["job.lua", "job.yaml"].map(|job| unit(&folder.plan(job), "driver").argv.clone());
    assert_eq!(words[0], words[1]);
}

#[test]
fn arguments_after_the_dashes_are_the_drivers() {
    let folder = job("quickstart.lua");
    let mut request = folder.request("quickstart.lua");
    request.driver_arguments = vec!["--seed".into(), "1e5".into()];
    let plan = gymrun::policy::load(request).expect("a plan");
    assert_eq!(argv(&plan, "driver")[6..], ["--seed", "1e5"].map(str::to_owned));
}

#[test]
fn shell_text_and_pre_commands_run_in_bash() {
    let plan = super::support::plan(
        r#"local gym = require "gymrun"
        return gym.job { name = "x",
          services = {
            a = { shell = "exec a $X" },
            b = { command = { "b", "two words" }, pre_command = "module load b" },
          } }"#,
    );
    assert_eq!(argv(&plan, "a"), ["bash", "-c", "exec a $X", "bash"]);
    assert_eq!(argv(&plan, "b"), ["bash", "-c", "module load b\nexec \"$@\"", "bash", "b", "two words"]);
}

/// Without `root` a server looks for its folder with its own Python, then is `python app.py` there.
#[test]
fn a_gym_server_finds_its_folder() {
    let Some(python) = python() else { return };
    let folder = folder(&[
        ("job.lua", &data("policy/jobs/nemo_gym.lua")),
        ("packages/nemo_gym/__init__.py", ""),
        (
            "packages/responses_api_agents/simple_agent/app.py",
            "import os, sys\nprint(os.getcwd(), os.environ['PWD'], sys.argv)\n",
        ),
    ]);
    let mut request = folder.request("job.lua");
    request.set = vec![format!("process_defaults.servers.python={python}")];
    let plan = gymrun::policy::load(request).expect("a plan");
    let run = |name: &str| {
        let argv = argv(&plan, name);
        #[expect(clippy::disallowed_methods, reason = "the test looks at a command alone, without a job around it")]
        let output = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .env("PYTHONPATH", folder.path().join("packages"))
            .current_dir(folder.path())
            .output()
            .expect("python3 starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (good, said, complaint) = run("my_agent");
    let own = folder.path().join("packages/responses_api_agents/simple_agent").display().to_string();
    assert!(good, "{complaint}");
    assert_eq!(said, format!("{own} {own} ['app.py']\n"));
    let (good, _, complaint) = run("policy_model");
    assert!(!good && complaint.contains("openai_model/app.py"), "{complaint}");
}
