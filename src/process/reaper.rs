//! The thread that spawns, and the thread that waits.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use super::exit::Exit;
use super::launch::{Launch, LaunchError, LaunchErrorKind, Started};
use super::terminal;
use crate::procfs::Proc;

type OnStart = Box<dyn FnOnce(Result<Started, LaunchError>) + Send>;
type OnExit = Box<dyn FnOnce(Exit) + Send>;

struct Request {
    launch: Launch,
    started: OnStart,
    exited: OnExit,
}

#[derive(Default)]
struct Registry {
    /// Children that were spawned and not reaped yet.
    children: Mutex<HashMap<i32, OnExit>>,
    /// There is a new child to wait for.
    spawned: Condvar,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, OnExit>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Processes {
    registry: &'static Registry,
    requests: Mutex<mpsc::Sender<Request>>,
}

/// The two threads, started at the first use. They live as long as the process: see the module's theory.
fn processes() -> &'static Processes {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    static PROCESSES: OnceLock<Processes> = OnceLock::new();
    PROCESSES.get_or_init(|| {
        let registry = REGISTRY.get_or_init(Registry::default);
        let (requests, inbox) = mpsc::channel::<Request>();
        become_subreaper();
        start_thread("spawner", move || {
            for request in inbox {
                // This thread must not end: all children would die with it.
                let _ = catch_unwind(AssertUnwindSafe(|| spawn(registry, request)));
            }
        });
        start_thread("reaper", move || reap(registry));
        Processes { registry, requests: Mutex::new(requests) }
    })
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) {
    // Without threads there are no children either: the request's reply is dropped then, which its owner notices.
    let _ = thread::Builder::new().name(name.into()).stack_size(512 * 1024).spawn(body);
}

/// Orphans below gymrun become its children, so that none is lost.
fn become_subreaper() {
    // Kernels since 3.4 have it. Without it daemons are found no more, but nothing else changes.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

fn spawn(registry: &Registry, request: Request) {
    let Request { launch, started, exited } = request;
    let mut children = registry.lock();
    match launch.start() {
        Ok(child) => {
            let lent = child.lent;
            let ended = move |exit| {
                if lent {
                    terminal::take_back();
                }
                exited(exit);
            };
            children.insert(child.identity.pid, Box::new(ended));
            // Still under the lock, so that nobody hears of its end first.
            started(Ok(child));
            registry.spawned.notify_all();
        }
        Err(error) => started(Err(error)),
    }
}

fn reap(registry: &Registry) {
    loop {
        // Leaves the status where it is: it is taken below, under the lock.
        let waited = wait(libc::WEXITED | libc::WNOWAIT);
        let mut children = registry.lock();
        if matches!(waited, Waited::NoChildren)
            && matches!(wait(libc::WEXITED | libc::WNOHANG | libc::WNOWAIT), Waited::NoChildren)
        {
            drop(registry.spawned.wait(children).unwrap_or_else(PoisonError::into_inner));
            continue;
        }
        while let Waited::Ended(pid, exit) = wait(libc::WEXITED | libc::WNOHANG) {
            if let Some(exited) = children.remove(&pid) {
                exited(exit);
            }
        }
    }
}

enum Waited {
    Ended(i32, Exit),
    Nothing,
    NoChildren,
}

#[expect(unsafe_code, reason = "nix loses the status of a process that a real-time signal ended")]
fn wait(flags: libc::c_int) -> Waited {
    // SAFETY: zeroed is a valid siginfo_t, the kernel fills it in, and its fields are read only where it says so.
    unsafe {
        let mut info = std::mem::zeroed::<libc::siginfo_t>();
        if libc::waitid(libc::P_ALL, 0, &raw mut info, flags) != 0 {
            let error = std::io::Error::last_os_error().raw_os_error();
            return if error == Some(libc::ECHILD) { Waited::NoChildren } else { Waited::Nothing };
        }
        match (info.si_pid(), info.si_code) {
            (0, _) => Waited::Nothing,
            (pid, libc::CLD_EXITED) => Waited::Ended(pid, Exit::Code(info.si_status())),
            (pid, _) => Waited::Ended(pid, Exit::Signal(info.si_status())),
        }
    }
}

/// Starts a child. `started` is called first, then, if it runs, `exited` at its end: both on threads of this module and
/// under its lock, so they must return at once. Exits are told in the order in which they are reaped.
pub fn launch(
    launch: Launch,
    started: impl FnOnce(Result<Started, LaunchError>) + Send + 'static,
    exited: impl FnOnce(Exit) + Send + 'static,
) {
    let request = Request { launch, started: Box::new(started), exited: Box::new(exited) };
    let requests = processes().requests.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(mpsc::SendError(request)) = requests.send(request) {
        let message = "cannot start the thread that spawns children";
        (request.started)(Err(LaunchError::new(LaunchErrorKind::System, message)));
    }
}

/// Starts a child and gives its end as a future, for short helpers such as an `exec` probe.
pub async fn launch_and_wait(description: Launch) -> Result<(Started, oneshot::Receiver<Exit>), LaunchError> {
    let (started, start) = oneshot::channel();
    let (exited, exit) = oneshot::channel();
    launch(
        description,
        move |result| {
            // If nobody waits any more, the child is stopped by its guard's owner or at the end of the job.
            let _ = started.send(result);
        },
        move |status| {
            let _ = exited.send(status);
        },
    );
    let lost = || LaunchError::new(LaunchErrorKind::System, "the thread that spawns children is gone");
    let started = start.await.map_err(|_| lost())??;
    Ok((started, exit))
}

/// The children of gymrun that it did not spawn: orphans that it adopted.
#[must_use]
pub fn adopted() -> Vec<i32> {
    let own = nix::unistd::getpid().as_raw();
    // Under the lock, so that a child that is being spawned is not taken for a stranger.
    let children = processes().registry.lock();
    Proc::default().children(own).into_iter().filter(|pid| !children.contains_key(pid)).collect()
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("launch", &self.launch).finish_non_exhaustive()
    }
}
