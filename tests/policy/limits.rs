//! Scripts that do not end, or want too much: they are ended, and the line is named.

use super::support::folder;

/// A script that must be ended by the clock, at that line.
fn ended_at(script: &str, line: u32) {
    let problems = folder(&[("job.lua", script)]).hurried().problems("job.lua");
    assert!(problems.contains("did not end within 0.3 s"), "{script}\n{problems}");
    assert!(problems.contains(&format!("--> job.lua:{line}")), "{script}\n{problems}");
}

#[test]
fn an_endless_loop() {
    ended_at("local x = 1\nwhile true do end", 2);
    ended_at("local function f() return f() end\nreturn f()", 1);
}

#[test]
fn a_loop_that_catches_its_own_end() {
    ended_at("while true do pcall(function() while true do end end) end", 1);
    ended_at("while true do xpcall(function() while true do end end, function(e) return e end) end", 1);
    ended_at("pcall(function() while true do end end)\nreturn { name = 'x' }", 1);
    ended_at("local x <close> = setmetatable({}, { __close = function() while true do end end }) while true do end", 1);
}

#[test]
fn a_loop_in_a_coroutine() {
    ended_at("while true do coroutine.resume(coroutine.create(function() while true do end end)) end", 1);
    ended_at("coroutine.wrap(function() while true do end end)()", 1);
    ended_at(
        "local c = coroutine.create(function() while true do pcall(coroutine.yield) end end) while true do coroutine.resume(c) end",
        1,
    );
}

#[test]
fn a_loop_inside_of_a_callback() {
    ended_at("string.gsub('x', 'x', function() while true do end end)", 1);
    ended_at("table.sort({ 1, 2, 3 }, function() while true do end end)", 1);
    ended_at("load(function() while true do end end)", 1);
    ended_at("tostring(setmetatable({}, { __tostring = function() while true do end end }))", 1);
    ended_at("error(setmetatable({}, { __tostring = function() while true do end end }))", 1);
}

/// The thread with the match is left behind and would keep a processor busy for all other tests: a process of its own.
#[test]
fn a_pattern_that_backtracks_inside_of_c() {
    let itself = std::env::current_exe().expect("a test knows itself");
    #[expect(clippy::disallowed_methods, reason = "the test runs itself, not a child of a job")]
    let output = std::process::Command::new(itself)
        .args(["--exact", "limits::backtracks", "--ignored"])
        .output()
        .expect("a test can run itself");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "leaves a busy thread behind; run by `a_pattern_that_backtracks_inside_of_c`"]
fn backtracks() {
    ended_at("local s = ('a'):rep(40)\nlocal p = ('.-'):rep(20) .. 'b'\nreturn s:find(p)", 3);
}

#[test]
fn memory_is_bounded() {
    for script in [
        "local t = {}\nwhile true do t[#t + 1] = ('x'):rep(1000000) .. #t end",
        "return ('x'):rep(1 << 40)",
        "local s = 'x'\nwhile true do s = s .. s end",
        "return (('x'):rep(100000000)):rep(10)",
    ] {
        let problems = folder(&[("job.lua", script)]).problems("job.lua");
        assert!(problems.contains("memory") || problems.contains("too large"), "{script}\n{problems}");
        assert!(problems.contains("--> job.lua:"), "{script}\n{problems}");
    }
}

/// The shipped policy runs without limits; what a site puts in its place does not.
#[test]
fn the_policy_of_a_site_is_bounded_too() {
    let job =
        "local gym = require 'gymrun'\nreturn gym.job { name = 'x', services = { p = gym.vllm { model = 'm' } } }";
    for (script, expected) in [
        ("local t = {} while true do t[#t + 1] = ('x'):rep(1000000) .. #t end", "memory"),
        (
            "return { command = function() local t = {} while true do t[#t + 1] = ('x'):rep(1000000) .. #t end end }",
            "memory",
        ),
        ("return { command = function() while true do end end }", "did not end within 0.3 s"),
    ] {
        let folder = folder(&[("job.lua", job), ("own/policy/vllm.lua", script)]);
        let path = folder.path().join("own").display().to_string();
        let folder = folder.variable("GYMRUN_LUA_PATH", &path);
        let folder = if expected == "memory" { folder } else { folder.hurried() };
        let problems = folder.problems("job.lua");
        assert!(problems.contains(expected), "{script}\n{problems}");
    }
}

#[test]
fn values_that_grow_by_sharing_are_refused() {
    for (script, expected) in [
        ("local t = {}\nfor i = 1, 40 do t = { t, t } end\nreturn { name = 'x', gym_config = { t = t } }", "values"),
        (
            "local gym = require 'gymrun'\nlocal t = {}\nfor i = 1, 40 do t = { t, t } end\nreturn gym.job { name = 'x', gym_config = { t = t } }",
            "parts",
        ),
        (
            "local gym = require 'gymrun'\nlocal t = gym.port('a')\nfor i = 1, 60 do t = t .. t end",
            "larger than 16 MiB",
        ),
        (
            "local gym = require 'gymrun'\nlocal t = {}\nt.t = t\nreturn gym.job { name = 'x', gym_config = t }",
            "contains itself",
        ),
        ("local gym = require 'gymrun'\nlocal t = { 1 }\nt[2] = t\nreturn gym.args(t)", "contains itself"),
        (
            "local t = {}\nlocal u = t\nfor i = 1, 100 do u.t = {} u = u.t end\nreturn { name = 'x', gym_config = t }",
            "nested deeper",
        ),
    ] {
        let problems = folder(&[("job.lua", script)]).problems("job.lua");
        assert!(problems.contains(expected), "{script}\n{problems}");
        assert!(problems.contains("job.lua"), "{script}\n{problems}");
    }
}

#[test]
fn deep_recursion_is_an_error_like_any_other() {
    for script in [
        "local function f() return 1 + f() end\nreturn f()",
        "local t = setmetatable({}, {})\ngetmetatable(t).__index = function(_, k) return t[k] end\nreturn t.x",
        "local s = ('('):rep(100000)\nreturn assert(load('return ' .. s))",
    ] {
        let problems = folder(&[("job.lua", script)]).problems("job.lua");
        assert!(problems.contains("overflow") || problems.contains("too many"), "{script}\n{problems}");
    }
}

#[test]
fn a_fragment_and_a_hook_are_bounded_too() {
    let job = "local gym = require 'gymrun'\nreturn gym.job { name = 'x', site = { 's' }, driver = { command = { 'true' } } }";
    for (fragment, line) in [
        ("while true do end", 1),
        (
            "local gym = require 'gymrun'\nreturn gym.site { extends = 'local',\n  launch = function(_, _, a)\n while true do end return a end }",
            4,
        ),
    ] {
        let problems = folder(&[("job.lua", job), ("site-fragments/s.lua", fragment)]).hurried().problems("job.lua");
        assert!(problems.contains("did not end"), "{problems}");
        assert!(problems.contains(&format!("site-fragments/s.lua:{line}")), "{problems}");
    }
}
