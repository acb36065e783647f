//! Jobs in Lua: what goes wrong in them is said with its place; functions of `require "gymrun"`.

use super::support::{argv, folder, plan, problems, variable};

#[test]
fn an_error_in_a_helper_names_the_key_and_the_helper() {
    let text = folder(&[
        (
            "job.lua",
            "local gym = require 'gymrun'\nlocal lib = require 'lib'\n\
          return gym.job { name = 'x', servers = { web = lib.server() } }",
        ),
        (
            "lib.lua",
            "local gym = require 'gymrun'\nlocal M = {}\nfunction M.server()\n\
          return gym.server { type = 'resources_servers', command = { 'a' }, prt = 1 }\nend\nreturn M",
        ),
    ])
    .problems("job.lua");
    assert!(text.contains("servers.web.prt: unknown key"), "{text}");
    assert!(text.contains("--> lib.lua:4"), "{text}");
    assert!(text.contains("did you mean `port`"), "{text}");
}

#[test]
fn a_script_that_gives_no_job_is_told_once() {
    for (script, expected) in [
        ("return {", "near <eof>"),
        ("local x =\nreturn 1 +", "unexpected symbol"),
        ("", "returns nothing"),
        ("return nil", "returns nothing"),
        ("return function() end", "returns a function"),
        ("return 'x'", "returns a string"),
        ("return 1", "returns a number"),
        ("error({ code = 1 })", "raised an error that is no text but a table"),
        ("error()", "nil"),
        ("error('went wrong')", "went wrong"),
        ("error('went wrong', 0)", "went wrong"),
        ("local x = nil\nx.y = 1", "attempt to index a nil value"),
        ("return require('gymrun').site {}", "returns gym.site, not gym.job"),
        ("return require('gymrun').job(5)", "takes one table"),
        ("return require('gymrun').jb {}", "nil value"),
    ] {
        let text = problems(script);
        assert!(text.contains(expected), "{script}\n{text}");
        assert_eq!(text.matches("error:").count(), 1, "{script}\n{text}");
        assert!(text.contains("--> job.lua"), "{script}\n{text}");
        assert!(!text.contains("panicked") && !text.contains("stack traceback"), "{script}\n{text}");
    }
}

#[test]
fn a_syntax_error_names_its_line() {
    let text = problems("local a = 1\nlocal b = = 2\n");
    assert!(text.contains("--> job.lua:2"), "{text}");
}

#[test]
fn a_hole_is_found_where_it_is() {
    for (command, expected) in [
        ("{ 'vllm', nil, 'serve' }", "`command` has a hole at index 2"),
        ("{ nil, 'serve' }", "`command` has a hole at index 1"),
        ("{ 'a', [3] = 'b' }", "`command` has a hole at index 2"),
        ("{ 'a', [0] = 'b' }", "lists begin at 1"),
        ("{ 'a', flag = 'b' }", "named key `flag`"),
        ("{ 'a', [true] = 'b' }", "keys are text"),
        ("{ 'a', print }", "is a function"),
        ("{ 'a', coroutine.create(print) }", "is a thread"),
        ("{ 'a', 0/0 }", "not a finite number"),
        ("{ 'a', '\\0' }", "NUL"),
        ("{ 'a', '\\xff' }", "UTF-8"),
        ("setmetatable({ 'a' }, {})", "metatable"),
    ] {
        let script = format!("return {{ name = 'x',\n driver = {{ command = {command} }} }}");
        let text = problems(&script);
        assert!(text.contains(expected), "{command}\n{text}");
        assert!(text.contains("driver.command"), "{command}\n{text}");
    }
}

#[test]
fn whole_floats_are_integers_and_others_are_not() {
    let with_port = |port: &str| {
        format!(
            "local gym = require 'gymrun'\nreturn gym.job {{ name = 'x', services = {{ p = {{ command = {{ 'a' }}, port = {port} }} }} }}"
        )
    };
    let plan = plan(&with_port("16000 / 2"));
    assert_eq!(plan.unit("p").expect("p").port, Some(gymrun::plan::PortChoice::Fixed(8000)));
    let text = problems(&with_port("8000.5"));
    assert!(text.contains("services.p.port") && text.contains("8000.5"), "{text}");
}

#[test]
fn every_problem_is_said_at_once() {
    let text = problems(
        "local gym = require 'gymrun'\nreturn gym.job { name = 'x',\n  servers = {\n\
         a = gym.server { type = 'nothing', command = { 'a' } },\n\
         b = gym.server { type = 'resources_servers', command = { 'b' }, depends_on = { 'nope' } },\n\
         c = gym.server { type = 'resources_servers', comand = { 'c' } },\n } }",
    );
    for part in ["servers.a.type", "job.lua:4", "nope", "job.lua:5", "servers.c.comand", "job.lua:6"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn late_values_are_looked_at_in_no_way() {
    for (expression, expected) in [
        ("tostring(gym.port 'a')", "gym.join or gym.format"),
        ("('%s'):format(gym.port 'a')", "known at launch only"),
        ("table.concat { gym.port 'a' }", "concat"),
        ("#gym.port 'a'", "measured"),
        ("gym.port 'a' < gym.port 'b'", "compared"),
        ("gym.port 'a' + 1", "arithmetic"),
        ("(gym.url 'a'):upper()", "asked for a method"),
        ("gym.quote(gym.url 'a')", "late value"),
        ("gym.format('%d', gym.port 'a')", "`%s`"),
        ("gym.format('%s')", "no value"),
        ("gym.format('%')", "write `%%`"),
        ("'x' .. gym.json { gym.port 'a' }", "whole value of `env` or `files`"),
        ("gym.port 'a' .. 1.5", "got number"),
        ("gym.port(5)", "must be text"),
        ("gym.file()", "needs a name"),
        ("gym.env 'NOT_SET'", "`NOT_SET` is not set"),
    ] {
        let text = problems(&format!("local gym = require 'gymrun'\nlocal x = {expression}"));
        assert!(text.contains(expected), "{expression}\n{text}");
        assert!(text.contains("--> job.lua:2"), "{expression}\n{text}");
    }
}

#[test]
fn functions_of_the_module() {
    let job = r#"
local gym = require "gymrun"
local base = gym.server { type = "resources_servers", command = { "a" }, env = { A = "1", B = "2" } }
local checks = {
  gym.join({ "a", 1, "b" }, "-") == "a-1-b",
  gym.format("%s %d %5.1f %%", "a", 2, 2.25) == "a 2   2.2 %",
  gym.quote("it's") == [["it's"]] or gym.quote("it's"),
  #gym.args("a", nil, false, { "b", { 3, nil } }, gym.list {}) == 3,
  gym.json { b = 1, a = { true, gym.list {} }, c = {} } == '{"a":[true,[]],"b":1,"c":{}}',
  gym.yaml { a = "no" }:find "no" ~= nil,
  gym.user().name == "tester" and gym.user().uid == 1000,
  gym.here() == gym.here("x"):sub(1, -3),
  gym.job_id() == "j1",
  gym.env("NOT_SET", "default") == "default",
  base.env.A == "1" and #base.command == 1 and next(base.env) ~= nil,
  not pcall(function() base.env.A = "2" end),
  gym.extend(base, { env = { B = gym.unset, C = "3" } }).env.C == "3",
  gym.extend(base, { command = { "b", "c" } }).command[2] == "c",
  #gym.filter({ 1, 2, 3, 4 }, function(x) return x % 2 == 0 end) == 2,
  gym.port "a" ~= gym.port "a",
}
local failed = {}
for i = 1, 16 do if checks[i] ~= true then failed[#failed + 1] = i .. "=" .. (type(checks[i]) == "string" and checks[i] or "wrong") end end
gym.log("a line", 1)
return gym.job {
  name = "x",
  servers = { s = gym.extend(base, { env = { B = gym.unset, C = gym.url("s", "/x") .. "?p=" .. gym.port() } }) },
  files = { ["f.yaml"] = gym.yaml { port = gym.port "s" } },
  driver = { command = gym.args("failed", failed), env = { F = gym.file "f.yaml", D = gym.job_dir(), J = gym.json { p = gym.port "s" } } },
}
"#;
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let folder = folder(&[("job.lua", job)]);
    let mut request = folder.request("job.lua");
    let sink = std::sync::Arc::clone(&lines);
    request.log = gymrun::policy::LogSink::new(move |line| sink.lock().expect("not poisoned").push(line.to_owned()));
    let plan = gymrun::policy::load(request).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(argv(&plan, "driver"), ["failed"]);
    assert_eq!(lines.lock().expect("not poisoned").as_slice(), ["a line 1"]);
    assert_eq!(variable(&plan, "s", "C").as_deref(), Some("${url:s}/x?p=${port:s}"));
    assert_eq!(variable(&plan, "s", "A").as_deref(), Some("1"));
    assert_eq!(variable(&plan, "s", "B"), None);
    assert_eq!(variable(&plan, "driver", "F").as_deref(), Some("${job:dir}/files/f.yaml"));
    assert_eq!(variable(&plan, "driver", "D").as_deref(), Some("${job:dir}"));
    assert_eq!(variable(&plan, "driver", "J").as_deref(), Some(r#"{"p":"${port:s}"}"#));
}

#[test]
fn constructors_of_later_issues_say_so() {
    for (job, path) in [
        ("services = { p = gym.vllm_pd { model = 'm' } }", "services.p"),
        ("services = { p = gym.ray {} }", "services.p"),
        ("environments = { e = gym.environment { config_paths = { 'a' } } }", "environments"),
        ("sandboxes = { s = gym.sandbox {} }", "sandboxes"),
    ] {
        let text = problems(&format!("local gym = require 'gymrun'\nreturn gym.job {{ name = 'x', {job} }}"));
        assert!(text.contains("not supported yet") && text.contains(path), "{job}\n{text}");
    }
}
