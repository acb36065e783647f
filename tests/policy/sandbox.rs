//! What a script must not reach, and what it may count on.

use super::support::{argv, folder, plan, problems};

/// Runs `attempt` in a job, where `check(name, condition)` notes what should not be.
fn all_hold(checks: &str) {
    let script = format!(
        "local gym = require 'gymrun'\nlocal failed = {{}}\n\
         local function check(name, condition) if not condition then failed[#failed + 1] = name end end\n\
         {checks}\n\
         return gym.job {{ name = 'x', driver = {{ command = gym.args('failed', failed) }} }}"
    );
    assert_eq!(argv(&plan(&script), "driver"), ["failed"], "{checks}");
}

#[test]
fn there_are_no_files_processes_or_insides() {
    all_hold(
        "for _, name in ipairs { 'io', 'debug', 'package', 'dofile', 'loadfile', 'collectgarbage', 'ffi', 'jit' } do
           check(name, _G[name] == nil)
         end
         for _, name in ipairs { 'execute', 'exit', 'remove', 'rename', 'tmpname', 'setlocale', 'difftime' } do
           check('os.' .. name, os[name] == nil)
         end
         check('string.dump', string.dump == nil and ('').dump == nil)
         check('require io', not pcall(require, 'io'))
         check('require debug', not pcall(require, 'debug'))
         check('require up', not pcall(require, '../x') and not pcall(require, '...x') and not pcall(require, '/etc/passwd'))",
    );
}

#[test]
fn compiled_code_is_not_loaded() {
    all_hold(
        r"check('header', not load('\27Lua'))
          check('mode', not load('\27LuaS', 'x', 'b'))
          check('reader', not load(function() return '\27Lua' end, 'x', 'bt'))
          check('text', load('return 1 + 1')() == 2)
          check('environment', load('return x', 'x', 't', { x = 7 })() == 7)
          check('own environment', load('return require')() == require)",
    );
}

#[test]
fn what_others_use_cannot_be_changed() {
    all_hold(
        r"check('string', not pcall(function() string.format = nil end))
          check('rawset', not pcall(rawset, string, 'format', nil))
          check('table', not pcall(function() table.insert = print end))
          check('module', not pcall(function() gym.args = nil end))
          check('policy', not pcall(function() require('policy.vllm').command = nil end))
          check('metatable of strings', type(getmetatable('')) ~= 'table')
          check('metatable of modules', type(getmetatable(gym)) ~= 'table' and not pcall(setmetatable, gym, {}))
          check('metatable of the globals', type(getmetatable(_G)) ~= 'table')
          check('late', not pcall(function() gym.port().x = 1 end) and type(getmetatable(gym.port())) ~= 'table')",
    );
    // Globals of one's own are one's own: the policy and the fragments still see Lua's.
    let plan = plan(
        "local gym = require 'gymrun'\npairs, ipairs, tostring, type, next, setmetatable = nil, nil, nil, nil, nil, nil\n\
         rawset(_G, 'os', nil)\n\
         return gym.job { name = 'x', services = { p = gym.vllm { model = 'm' } }, driver = { command = { 'true' } } }",
    );
    assert_eq!(argv(&plan, "p")[1], "serve");
}

#[test]
fn finalizers_are_not_available() {
    let problems = problems("setmetatable({}, { __gc = function() end })");
    assert!(problems.contains("finalizers"), "{problems}");
    assert!(problems.contains("--> job.lua:1"), "{problems}");
}

#[test]
fn the_environment_is_the_one_that_was_given() {
    let plan = folder(&[(
        "job.lua",
        "local gym = require 'gymrun'\n\
         return gym.job { name = 'x', driver = { command = gym.args(os.getenv 'GIVEN', os.getenv 'PATH', os.getenv 'HOME', 'end') } }",
    )])
    .variable("GIVEN", "yes")
    .plan("job.lua");
    assert_eq!(argv(&plan, "driver"), ["yes", "end"]);
}

#[test]
fn what_is_promised_is_there() {
    all_hold(
        r"check('utf8', utf8.char(228) == 'ä')
          check('os', type(os.time()) == 'number' and os.date('!%Y', 0) == '1970' and os.clock() >= 0)
          check('coroutine', coroutine.wrap(function() coroutine.yield(5) end)() == 5)
          local yielded = coroutine.wrap(function() return pcall(function() coroutine.yield(3) end) end)
          check('yield across pcall', yielded() == 3 and yielded() == true)
          check('goto', (function() goto done ::done:: return true end)())
          local keys = {}
          for k in pairs { zebra = 1, apple = 2, [10] = 3, [2] = 4 } do keys[#keys + 1] = tostring(k) end
          check('pairs', table.concat(keys, ' ') == '2 10 apple zebra')
          local seen = 0
          local t = { a = 1, b = 2, c = 3 }
          for k in pairs(t) do t[k] = nil seen = seen + 1 end
          check('pairs while clearing', seen == 3 and next(t) == nil)
          check('pairs meta', select(2, pcall(function() for k in pairs(setmetatable({}, { __pairs = function() return function(_, k) return not k and 'x' or nil end end })) do return k end end)) == 'x')
          check('integer', math.type(3 // 1) == 'integer')",
    );
}

#[test]
fn neighbours_can_be_required() {
    let folder = folder(&[
        (
            "jobs/job.lua",
            "local gym = require 'gymrun'\nlocal lib = require 'lib'\nlocal deep = require 'sub.deep'\n\
          return gym.job { name = 'x', driver = { command = gym.args(lib.words, deep, require('lib') == lib and 'once') } }",
        ),
        ("jobs/lib.lua", "return { words = { 'a', 'b' } }"),
        ("jobs/sub/deep/init.lua", "return 'deep'"),
    ]);
    assert_eq!(argv(&folder.plan("jobs/job.lua"), "driver"), ["a", "b", "deep", "once"]);
}

#[test]
fn a_module_that_is_not_there_is_named() {
    let problems = problems("local x = 1\nrequire 'nothing.here'");
    assert!(problems.contains("module `nothing.here` not found"), "{problems}");
    assert!(problems.contains("nothing/here.lua"), "{problems}");
    assert!(problems.contains("--> job.lua:2"), "{problems}");
    let problems = super::support::problems("require 'policy.colector'");
    assert!(problems.contains("did you mean `collector`"), "{problems}");
}

#[test]
fn modules_that_need_each_other_are_refused() {
    let problems =
        folder(&[("job.lua", "return require 'a'"), ("a.lua", "return require 'b'"), ("b.lua", "return require 'a'")])
            .problems("job.lua");
    assert!(problems.contains("requires itself"), "{problems}");
    assert!(problems.contains("--> b.lua:1"), "{problems}");
}

#[test]
fn a_folder_of_policy_comes_first() {
    let folder = folder(&[
        (
            "job.lua",
            "local gym = require 'gymrun'\nreturn gym.job { name = 'x', services = { p = gym.vllm { model = 'm' } } }",
        ),
        ("own/policy/vllm.lua", "return { command = function(process) return { 'mine', process.model } end }"),
    ]);
    let path = folder.path().join("own").display().to_string();
    assert_eq!(argv(&folder.variable("GYMRUN_LUA_PATH", &path).plan("job.lua"), "p"), ["mine", "m"]);
}

/// What a site's own policy does wrong is told with its place, like what an author's file does; what an author does wrong is
/// told with the author's.
#[test]
fn errors_in_a_folder_of_policy_have_their_place() {
    let job =
        "local gym = require 'gymrun'\nreturn gym.job {\n name = 'x', services = { p = gym.vllm { model = 'm' } } }";
    for (policy, message, line) in [
        ("return {\n command = function(process) return process.model.x.y end }", "attempt to index a nil value", ":2"),
        ("return {\n command = = 1 }", "unexpected symbol near '='", ":2"),
        ("\u{1b}Lua", "the file is bytecode", ""),
        ("error('no such cluster')", "no such cluster", ":1"),
    ] {
        // Lua shortens long names in its messages.
        for parent in ["own", "a-folder-with-a-name-that-is-longer-than-what-lua-shows-of-one-in-its-messages"] {
            let file = format!("{parent}/policy/vllm.lua");
            let folder = folder(&[("job.lua", job), (&file, policy)]);
            let path = folder.path().join(parent).display().to_string();
            let said = folder.variable("GYMRUN_LUA_PATH", &path).problems("job.lua");
            assert!(said.contains(message) && said.contains(&format!("--> {file}{line}\n")), "{policy}: {said}");
        }
    }
}

#[test]
fn bytecode_is_named_with_its_file() {
    for name in ["job.lua", "beside.lua"] {
        let mut files = vec![("job.lua", "return require 'beside'"), ("beside.lua", "return {}")];
        for file in &mut files {
            if file.0 == name {
                file.1 = "\u{1b}LuaT";
            }
        }
        let said = folder(&files).problems("job.lua");
        assert!(said.contains("the file is bytecode") && said.contains(&format!("--> {name}\n")), "{said}");
    }
}

#[test]
fn marks_line_ends_and_a_first_line_for_the_shell_do_not_matter() {
    let script = "\u{feff}#!/usr/bin/env gymrun\r\nlocal gym = require 'gymrun'\r\n\r\nreturn gym.job { name = 'x',\r\n driver = { comand = { 'a' } } }\r\n";
    let problems = problems(script);
    assert!(problems.contains("--> job.lua:4"), "{problems}");
    assert!(problems.contains("did you mean `command`"), "{problems}");
}
