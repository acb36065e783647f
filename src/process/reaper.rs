//! The thread that spawns, and the thread that waits.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use super::exit::Exit;
use super::launch::{Launch, LaunchError, LaunchErrorKind, Started};
use super::registry::{OnExit, Registry};
use super::terminal;
use super::wait::{Waited, wait};

type OnStart = Box<dyn FnOnce(Result<Started, LaunchError>) + Send>;

struct Request {
    launch: Launch,
    started: OnStart,
    exited: OnExit,
}

/// What the thread that spawns does, one after the other.
enum Errand {
    Spawn(Box<Request>),
    /// To say that everything before it is done.
    Answer(oneshot::Sender<()>),
}

struct Processes {
    registry: &'static Registry,
    errands: Mutex<mpsc::Sender<Errand>>,
}

/// The two threads, started at the first use. They live as long as the process: see the module's theory.
fn processes() -> &'static Processes {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    static PROCESSES: OnceLock<Processes> = OnceLock::new();
    PROCESSES.get_or_init(|| {
        let registry = REGISTRY.get_or_init(Registry::new);
        let (errands, inbox) = mpsc::channel::<Errand>();
        become_subreaper();
        let spawner = move || {
            registry.spawn_here();
            for errand in inbox {
                // This thread must not end: all children would die with it.
                let _ = catch_unwind(AssertUnwindSafe(|| match errand {
                    Errand::Spawn(request) => spawn(registry, *request),
                    // Whoever has given up waiting needs no answer.
                    Errand::Answer(reply) => drop(reply.send(())),
                }));
            }
        };
        // Nothing is spawned whose end nobody would hear of.
        if start_thread("reaper", move || reap(registry)) {
            start_thread("spawner", spawner);
        }
        Processes { registry, errands: Mutex::new(errands) }
    })
}

/// Who knows the children.
pub(super) fn registry() -> &'static Registry {
    processes().registry
}

/// Whether there is that thread. Without the one that spawns requests come back, which their owners notice.
fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name(name.into()).stack_size(512 * 1024).spawn(body).is_ok()
}

/// Orphans below gymrun become its children, so that none is lost.
fn become_subreaper() {
    // Kernels since 3.4 have it. Without it daemons are found no more, but nothing else changes.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

fn spawn(registry: &Registry, request: Request) {
    let Request { launch, started, exited } = request;
    let _gate = registry.begin_spawn();
    match launch.start() {
        Ok(child) => {
            let lent = child.lent;
            let ended = move |exit| {
                if lent {
                    terminal::take_back();
                }
                exited(exit);
            };
            let identity = child.identity;
            registry.insert(identity, Box::new(ended));
            started(Ok(child));
            // Only now, so that nobody hears of its end first.
            registry.announce(identity.pid);
        }
        Err(error) => started(Err(error)),
    }
}

fn reap(registry: &Registry) {
    loop {
        // Leaves the status where it is: it is taken under the right lock.
        match wait(None, libc::WEXITED | libc::WNOWAIT) {
            // This thread must not end either. One whose end could not be told is taken away in the next round.
            Waited::Ended(pid, _) => drop(catch_unwind(AssertUnwindSafe(|| registry.reap(pid)))),
            Waited::NoChildren => registry.wait_for_children(),
            Waited::Nothing => {}
        }
    }
}

/// Starts a child. `started` is called first, then, if it runs, `exited` at its end: both on threads of this module,
/// which must go on, so they must return at once. Exits are told in the order in which they are reaped.
pub fn launch(
    launch: Launch,
    started: impl FnOnce(Result<Started, LaunchError>) + Send + 'static,
    exited: impl FnOnce(Exit) + Send + 'static,
) {
    let request = Request { launch, started: Box::new(started), exited: Box::new(exited) };
    if let Err(Errand::Spawn(request)) = send(Errand::Spawn(Box::new(request))) {
        let message =
            "there is no thread that spawns children: more cannot be had (`ulimit -u`, or `pids.max` of a cgroup)";
        (request.started)(Err(LaunchError::new(LaunchErrorKind::System, message)));
    }
}

/// Waits until nothing is being spawned any more of what was asked for before: it runs, or could not be started, or was
/// given up and has got SIGKILL.
pub async fn spawned_so_far() {
    let (reply, done) = oneshot::channel();
    if send(Errand::Answer(reply)).is_ok() {
        let _ = done.await;
    }
}

/// Hands it to the thread that spawns; it comes back where there is none.
fn send(errand: Errand) -> Result<(), Errand> {
    let errands = processes().errands.lock().unwrap_or_else(PoisonError::into_inner);
    errands.send(errand).map_err(|mpsc::SendError(errand)| errand)
}

/// The children of gymrun that are the job's, except those that it spawned: orphans that it adopted.
///
/// A child may be among them in the moment in which it is spawned. That does no harm: it has no children of its own yet,
/// and its mark is that of a unit whose root is not known yet, or that it probes.
#[must_use]
pub fn adopted() -> Vec<i32> {
    registry().adopted()
}

/// All children of gymrun that are the job's: everything but what was there before gymrun used this module, and what
/// came of that.
#[must_use]
pub fn children() -> Vec<i32> {
    registry().children()
}

/// Whether gymrun has no child that is the job's, not even one that has ended: beyond doubt, since whatever loses its
/// parent becomes its child in the same moment.
#[must_use]
pub fn childless() -> bool {
    registry().childless()
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("launch", &self.launch).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Launch, launch, spawned_so_far};

    #[tokio::test]
    async fn what_was_asked_for_before_has_been_started() {
        let started = Arc::new(AtomicUsize::new(0));
        for _ in 0..20 {
            let count = Arc::clone(&started);
            launch(Launch::shell("exit 0"), move |_| _ = count.fetch_add(1, Ordering::SeqCst), drop);
        }
        spawned_so_far().await;
        assert_eq!(started.load(Ordering::SeqCst), 20);
    }
}
