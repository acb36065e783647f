//! Hooks: order, copies, results, table forms, arguments.

use super::support::{Folder, argv, folder, unit, variable};
use gymrun::plan::Tree;

const JOB: &str = r#"
local gym = require "gymrun"
return gym.job {
  name = "x",
  site = { "below", "above" },
  services = { p = gym.vllm { model = "m", env = { HF_TOKEN = "text" } } },
  attributes = { experiment = "e" },
  driver = { command = { "d" }, env = { MINE = "author" } },
}
"#;

fn site(below: &str, above: &str) -> Folder {
    let fragment = |base: &str, body: &str| {
        format!("local gym = require 'gymrun'\nreturn gym.site {{ extends = '{base}',\n{body} }}")
    };
    folder(&[
        ("job.lua", JOB),
        ("site-fragments/below.lua", &fragment("local", below)),
        ("site-fragments/above.lua", &fragment("below", above)),
    ])
}

#[test]
fn each_fragment_gets_what_the_one_below_made() {
    let plan = site(
        "attributes = function(job, a) a.team = 'rl' a.kept = true a.number = 3 return a end,
         launch = function(job, process, argv) return gym.args('inner', argv) end,
         environment = function(job, process, env) env.LAYER = 'below' env.GONE = 'x' return env end,
         scrape = function(job, targets) targets[#targets + 1] = { job_name = 'ib', port = 9315, nodes = 'all', labels = { fabric = 'ib0' } } return targets end,
         collector = function(job, config) config.processors.batch.timeout = '5s' return config end",
        "attributes = function(job, a) a.team = a.team .. '-2' return a end,
         launch = function(job, process, argv) return gym.args('outer', argv) end,
         environment = function(job, process, env) env.LAYER = env.LAYER .. '+above' env.GONE = nil env.TAKEN = false return env end,
         scrape = function(job, targets) for _, t in ipairs(targets) do t.scrape_interval_seconds = 5 end return targets end,
         collector = function(job, config) config.processors.batch.send_batch_size = 100 return config end",
    )
    .plan("job.lua");
    assert_eq!(plan.attributes["team"], Tree::Text("rl-2".into()));
    assert_eq!(plan.attributes["kept"], Tree::Bool(true));
    assert_eq!(plan.attributes["number"], Tree::Int(3));
    assert_eq!(plan.attributes["experiment"], Tree::Text("e".into()));
    assert_eq!(argv(&plan, "driver"), ["outer", "inner", "d"]);
    assert_eq!(argv(&plan, "otel_collector")[..3], ["outer", "inner", "gymrun"].map(str::to_owned));
    assert_eq!(variable(&plan, "driver", "LAYER").as_deref(), Some("below+above"));
    assert_eq!(unit(&plan, "driver").env["LAYER"].source, "hook environment of above");
    assert_eq!(variable(&plan, "driver", "GONE"), None);
    assert_eq!(variable(&plan, "driver", "TAKEN").as_deref(), Some("<unset>"));
    assert_eq!(unit(&plan, "driver").env["GYMRUN_NAME"].source, "gymrun");
    let target = plan.scrape.iter().find(|target| target.job_name == "ib").expect("the target");
    assert_eq!(target.targets[0].as_literal(), Some("localhost:9315"));
    assert_eq!(target.rest["scrape_interval_seconds"], Tree::Int(5));
    let batch = plan.collector.as_ref().and_then(|c| c.config.get("processors")?.get("batch").cloned());
    assert_eq!(
        serde_json::to_value(batch).expect("JSON"),
        serde_json::json!({"send_batch_size": 100, "timeout": "5s"})
    );
}

#[test]
fn a_hook_that_forgets_to_return_is_named() {
    for (hook, what) in [
        ("attributes = function(job, a) a.x = 1 end", "attributes"),
        ("scrape = function(job, t) end", "targets"),
        ("environment = function(job, process, env) end", "env"),
        ("launch = function(job, process, argv) end", "argv"),
        ("collector = function(job, config) end", "config"),
    ] {
        let text = site(hook, "").problems("job.lua");
        let name = hook.split(' ').next().expect("a word");
        assert!(text.contains(&format!("the hook `{name}` of fragment `below` returned nothing")), "{text}");
        assert!(text.contains("--> site-fragments/below.lua:3"), "{text}");
        assert!(text.contains(&format!("return {what}")), "{text}");
        assert_eq!(text.matches("error:").count(), 1, "{text}");
    }
}

#[test]
fn results_are_checked() {
    for (hook, expected) in [
        ("attributes = function(job, a) a.x = 1.5 return a end", "attributes.x"),
        ("attributes = function(job, a) return 5 end", "attributes"),
        ("attributes = function(job, a) a.t = gym.secret('S', 'd') return a end", "secret"),
        (
            "scrape = function(job, t) t[1] = { jobname = 'x', targets = { 'a:1' } } return t end",
            "did you mean `job_name`",
        ),
        ("scrape = function(job, t) t[1] = { job_name = 'x' } return t end", "neither `targets` nor `port`"),
        ("environment = function(job, process, env) env.X = true return env end", "environment.X"),
        ("launch = function(job, process, argv) return {} end", "argv is empty"),
        ("launch = function(job, process, argv) return { 'a', nil, 'b' } end", "hole at index 2"),
        ("launch = function(job, process, argv) return gym.args(argv, gym.secret('S', 'd')) end", "secret"),
        (
            "launch = function(job, process, argv) return gym.args(argv, gym.port 'nobody') end",
            "there is no process `nobody`",
        ),
        ("collector = function(job, config) config.x = print return config end", "collector.x"),
    ] {
        let text = site(hook, "").problems("job.lua");
        assert!(text.contains(expected), "{hook}\n{text}");
    }
}

#[test]
fn errors_in_a_hook_name_their_line() {
    let text = site("launch = function(job, process, argv)\n local x = nil\n return x.y end", "").problems("job.lua");
    assert!(text.contains("hook `launch` of fragment `below`"), "{text}");
    assert!(text.contains("--> site-fragments/below.lua:5"), "{text}");
}

#[test]
fn job_and_process_are_read_only_and_strict() {
    for (hook, expected) in [
        ("launch = function(job, process, argv) job.name = 'y' return argv end", "job is read-only"),
        ("launch = function(job, process, argv) process.name = 'y' return argv end", "process is read-only"),
        ("launch = function(job, process, argv) process.env.X = 'y' return argv end", "read-only"),
        ("launch = function(job, process, argv) return gym.args(argv, job.nam) end", "job has no field `nam`"),
        ("launch = function(job, process, argv) return gym.args(argv, process.knd) end", "did you mean `kind`"),
        ("launch = function(job, process, argv) return gym.args(argv, job.slurm.acount) end", "did you mean `account`"),
        (
            "launch = function(job, process, argv) return gym.args(argv, job.otel.endpont) end",
            "did you mean `endpoint`",
        ),
    ] {
        let text = site(hook, "").problems("job.lua");
        assert!(text.contains(expected), "{hook}\n{text}");
    }
}

#[test]
fn what_a_hook_is_shown() {
    let plan = site(
        "launch = function(job, process, argv)
           if process.kind ~= 'service' then return argv end
           return gym.args(argv, process.name, process.type, process.port, process.env.HF_TOKEN, process.health_check.type,
             process.stop_signal, process.model, job.name, job.id, job.user, job.cluster, job.model, #job.site, job.site[1],
             job.services.p.port, job.driver.argv[1], job.otel.component, job.slurm.account, job.nodes[1],
             job.telemetry.enabled and 'on', job.services.nobody and 'somebody', process.argv[1], process.container, #process.mounts)
         end",
        "",
    )
    .plan("job.lua");
    let argv = argv(&plan, "p");
    let shown: Vec<&str> = argv[7..].iter().map(String::as_str).collect();
    assert_eq!(
        shown,
        [
            "p",
            "vllm",
            "8000",
            "<HF_TOKEN>",
            "http",
            "TERM",
            "m",
            "x",
            "j1",
            "tester",
            "local",
            "m",
            "3",
            "local",
            "8000",
            "d",
            "gym-vllm",
            "localhost",
            "on",
            "vllm",
            "0",
        ]
    );
}

#[test]
fn each_call_gets_its_own_copy() {
    let plan = site(
        "environment = function(job, process, env) kept = kept or env kept[process.name] = '1' return env end",
        "",
    )
    .plan("job.lua");
    // The table kept from the first process is not the one of the second.
    assert_eq!(variable(&plan, "driver", "driver"), None);
}

#[test]
fn table_forms_do_the_same() {
    let folder = folder(&[
        ("job.lua", JOB),
        (
            "site-fragments/below.yaml",
            "extends: local\nattributes: {team: rl, build: 0510}\n\
          scrape: [{job_name: ib, port: 9315, nodes: all}]\nenvironment: {A: no, GONE: !off, API_KEY: k}\n\
          launch: {prefix: [nice, -n, 5]}\ncollector: {processors: {batch: {timeout: 5s}}}\n",
        ),
        (
            "site-fragments/above.lua",
            "return require('gymrun').site { attributes = function(job, a) a.team = a.team .. '!' return a end }",
        ),
    ]);
    let plan = folder.plan("job.lua");
    assert_eq!(plan.attributes["team"], Tree::Text("rl!".into()));
    assert_eq!(argv(&plan, "driver"), ["nice", "-n", "5", "d"]);
    assert_eq!(variable(&plan, "driver", "A").as_deref(), Some("no"));
    assert_eq!(variable(&plan, "driver", "GONE").as_deref(), Some("<unset>"));
    assert_eq!(variable(&plan, "driver", "API_KEY").as_deref(), Some("<API_KEY>"));
    assert!(plan.scrape.iter().any(|target| target.job_name == "ib"));
    let batch = plan.collector.as_ref().and_then(|c| c.config.get("processors")?.get("batch")?.get("timeout").cloned());
    assert_eq!(batch, Some(Tree::Text("5s".into())));
}

#[test]
fn hooks_of_later_issues_say_so() {
    for hook in ["process", "step", "check", "sbatch"] {
        let text = site(&format!("{hook} = function(...) return ... end"), "").problems("job.lua");
        assert!(text.contains("not supported yet") && text.contains(hook), "{text}");
    }
    let text = site("lanch = function(...) return ... end", "").problems("job.lua");
    assert!(text.contains("did you mean `launch`"), "{text}");
}
