//! The Lua VM: a thread of its own, bounded time and memory.
//!
//! Three things bound an author's code whatever it does. A hook that every coroutine inherits looks at the clock on each
//! line and now and then, and raises an error once the time is over; `pcall` and its kin raise it again (see
//! [`super::sandbox`]), so it cannot be swallowed. The allocator refuses to pass the memory limit. And the caller waits
//! with a deadline of its own: if the script is inside C then, where no hook is reached, the caller says which line ran
//! last and leaves the thread behind; the process is about to end with exit code 2.
//!
//! The shipped policy runs without the first two, which Lua would ask for at each instruction and mlua at each step. It takes
//! as much as the job is large.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use mlua::{HookTriggers, Lua, LuaOptions, StdLib, VmState};
use nix::sys::signal::{SigSet, Signal};

use super::failure::{LimitReached, problem_of};
use super::host::{Host, LogSink, host};
use super::sandbox;
use super::watch::Watch;
use crate::diag::{Problem, Problems};
use crate::inputs::World;

/// How much memory a script may use.
pub const MEMORY_LIMIT: usize = 256 * 1024 * 1024;
/// From where on Lua looks for what is not needed any more: a job's policy leaves less behind than it would cost to look.
const COLLECT_ABOVE: usize = 16 * 1024 * 1024;
/// What mlua takes for none.
const NO_LIMIT: usize = 0;
/// The stack of the thread: enough for the 200 nested C calls that Lua allows itself.
const STACK: usize = 16 * 1024 * 1024;
/// How long the hook has to notice the deadline before the caller gives up on it.
const PATIENCE: Duration = Duration::from_millis(250);

/// When the hook is reached: a loop within one line is met by counting.
const TRIGGERS: HookTriggers = HookTriggers::new().every_line().every_nth_instruction(10_000);

/// Runs `body` with a fresh VM on a thread of its own.
///
/// `close`: the process lives on, so the VM's memory is given back. Nobody waits for that.
///
/// A result that comes after the limit was met does not count: the script had swallowed the error.
pub fn run<T: Send + 'static>(
    world: &Arc<World>,
    job_id: &str,
    log: LogSink,
    close: bool,
    body: impl FnOnce(&Lua) -> Result<T, Problems> + Send + 'static,
) -> Result<T, Problems> {
    let watch = Arc::new(Watch::start(world.time_limit));
    let (sender, receiver) = sync_channel(1);
    let (world_inside, watch_inside, job_id) = (Arc::clone(world), Arc::clone(&watch), job_id.to_owned());
    let spawned = thread::Builder::new().name("policy".into()).stack_size(STACK).spawn(move || {
        leave_signals_to_others();
        let (lua, result) = match new_vm(Host::new(world_inside, watch_inside, job_id, log)) {
            Ok(lua) => {
                let result = body(&lua);
                (Some(lua), result)
            }
            Err(problems) => (None, Err(problems)),
        };
        let _ = sender.send(result);
        if !close {
            // The end of the process frees everything at once.
            std::mem::forget(lua);
        }
    });
    if let Err(error) = spawned {
        return Err(Problem::new(format!("cannot start the thread that reads the job: {error}")).into());
    }
    match receiver.recv_timeout(world.time_limit + PATIENCE) {
        _ if watch.expired() => Err(watch.problem().into()),
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(watch.problem().into()),
        Err(RecvTimeoutError::Disconnected) => {
            Err(Problem::new("reading the job ended without a result; this is a bug of gymrun")
                .in_file(watch.last_line())
                .into())
        }
    }
}

/// This thread may outlive the reading of the job, while gymrun holds signals back already: one that came here would end it.
/// A fault stays with who made it.
fn leave_signals_to_others() {
    let mut signals = SigSet::all();
    for fault in [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE, Signal::SIGABRT] {
        signals.remove(fault);
    }
    // It can only fail for want of a set.
    let _ = signals.thread_block();
}

/// A VM with the sandbox in place, and the limits as well if code runs in it that is neither ours nor called by
/// [`line_by_line`].
fn new_vm(host: Host) -> Result<Lua, Problems> {
    let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::UTF8 | StdLib::COROUTINE | StdLib::OS;
    let lua = Lua::new_with(libraries, LuaOptions::new()).map_err(|e| bug(&e))?;
    lua.gc_stop();
    let is_ours = host.policy_folder().is_none();
    host.watch.note_ours(is_ours);
    lua.set_app_data(host);
    if !is_ours {
        bound(&lua).map_err(|e| bug(&e))?;
    }
    sandbox::install(&lua).map_err(|error| problem_of(&lua, &error))?;
    Ok(lua)
}

/// Runs an author's code: each line of it is noted before it runs.
pub fn line_by_line<T>(lua: &Lua, body: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
    bound(lua)?;
    host(lua)?.watch.note_ours(false);
    let result = body();
    if host(lua)?.policy_folder().is_none() {
        host(lua)?.watch.note_ours(true);
        lua.remove_global_hook();
        lua.set_memory_limit(NO_LIMIT)?;
    }
    result
}

/// From here on time and memory are limited.
fn bound(lua: &Lua) -> mlua::Result<()> {
    lua.set_memory_limit(MEMORY_LIMIT)?;
    let watch = Arc::clone(&host(lua)?.watch);
    lua.set_global_hook(TRIGGERS, move |lua, debug| {
        watch.note(debug);
        collect_if_large(lua);
        if watch.check() { Err(mlua::Error::external(LimitReached)) } else { Ok(VmState::Continue) }
    })
}

/// Lets Lua collect from here on if it holds enough. Where no hook looks in time, the memory limit makes it collect.
pub fn collect_if_large(lua: &Lua) {
    if lua.used_memory() > COLLECT_ABOVE
        && let Some(host) = lua.app_data_ref::<Host>()
        && !host.collects.replace(true)
    {
        lua.gc_restart();
    }
}

fn bug(error: &mlua::Error) -> Problems {
    Problem::new(format!("cannot start Lua: {error}")).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use nix::sys::signal::{SigSet, Signal};

    use super::{leave_signals_to_others, line_by_line, run};
    use crate::inputs::World;
    use crate::policy::LogSink;

    #[test]
    fn a_thread_that_may_outlive_the_reading_takes_no_signal() {
        let mask = std::thread::spawn(|| {
            leave_signals_to_others();
            SigSet::thread_get_mask()
        });
        let mask = mask.join().expect("it ends").expect("a mask");
        let has = |signals: &[Signal]| signals.iter().filter(|signal| mask.contains(**signal)).count();
        assert_eq!(has(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1]), 5);
        assert_eq!(has(&[Signal::SIGSEGV, Signal::SIGBUS]), 0);
    }

    #[test]
    fn what_a_script_leaves_behind_is_collected() {
        let world = Arc::new(World { time_limit: Duration::from_mins(1), ..World::isolated("/") });
        let held = run(&world, "j", LogSink::silent(), true, |lua| {
            let script = "for i = 1, 20000 do\n local s = (\"x\"):rep(50000) .. i\nend";
            line_by_line(lua, || lua.load(script).set_name("@job.lua").exec()).expect("it runs");
            Ok(lua.used_memory())
        })
        .expect("it ends");
        assert!(held < 64 * 1024 * 1024, "{held} bytes of a GiB are still held");
    }

    #[test]
    fn an_author_is_not_blamed_for_the_time_that_the_shipped_policy_takes() {
        let world = Arc::new(World { time_limit: Duration::from_secs(1), ..World::isolated("/") });
        let (over, wait) = channel::<()>();
        let problems = run(&world, "j", LogSink::silent(), true, move |lua| {
            line_by_line(lua, || lua.load("local x = 1").set_name("@job.lua").exec()).expect("it runs");
            let _ = wait.recv();
            Ok(())
        })
        .expect_err("it takes too long");
        drop(over);
        let problems = format!("{problems:?}");
        assert!(problems.contains("gymrun's own policy was still at work"), "{problems}");
        assert!(!problems.contains("job.lua"), "{problems}");
    }
}
