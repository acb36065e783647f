//! Looks at what still lives of units, as the walk of descendants and their cgroups tell it. All that are asked for at the
//! same time are one look: the list of gymrun's own children is the same for all of them, and with many units it is long.
//!
//! They are taken on a thread of their own, which is there from the first on. What has ended is taken away in the same
//! breath, and while the kernel does that, signals go out and ends are heard. One that takes too long holds up no stop: what
//! it does not tell in time is found at the very end.

use std::sync::{Arc, mpsc as blocking};
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::slot::Slot;
use crate::process;
use crate::procfs::{Members, Proc, Stat};

/// How long anybody waits for a look. What it takes to read has limits of its own, so that it is longer only where the kernel
/// itself does not answer; a busy machine is no reason to take what lives for gone.
const LIMIT: Duration = Duration::from_secs(5);

/// What lives of a unit.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// By the walk.
    pub(super) walked: Vec<Stat>,
    /// The pids in its cgroup. An empty one is taken away: then nothing ever will live there.
    pub(super) grouped: Vec<i32>,
}

/// Whose look it is, and whether its cgroup is looked at, too.
struct Wish {
    slot: Arc<Slot>,
    grouped: bool,
}

type Asked = (Wish, oneshot::Sender<Found>);
type Batch = (Vec<Wish>, oneshot::Sender<Vec<Found>>);

/// Where looks are asked for.
#[derive(Clone, Debug)]
pub(super) struct Looks {
    asked: mpsc::UnboundedSender<Asked>,
}

impl Looks {
    /// Starts the task that gathers what is asked for; looks read `proc`.
    pub(super) fn start(proc: Proc) -> Self {
        let (asked, mut inbox) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut all: Vec<Asked> = Vec::new();
            let mut looker = None;
            while inbox.recv_many(&mut all, usize::MAX).await > 0 {
                // Whoever else has learnt just now that its process has ended asks first.
                yield_now().await;
                while let Ok(asked) = inbox.try_recv() {
                    all.push(asked);
                }
                let (wishes, replies): (Vec<_>, Vec<_>) = all.drain(..).unzip();
                let looker = looker.get_or_insert_with(|| start_thread(proc.clone()));
                for (reply, found) in replies.into_iter().zip(take(looker, &proc, wishes).await) {
                    // One that is not waited for any more needs no answer.
                    let _ = reply.send(found);
                }
            }
        });
        Self { asked }
    }

    /// Everything that lives of a unit after this was called, its root included, as far as the walk finds it.
    pub(super) async fn walk(&self, slot: &Arc<Slot>) -> Vec<Stat> {
        self.ask(slot, false).await.walked
    }

    /// The same, and what lives in its cgroup.
    pub(super) async fn look(&self, slot: &Arc<Slot>) -> Found {
        self.ask(slot, true).await
    }

    async fn ask(&self, slot: &Arc<Slot>, grouped: bool) -> Found {
        let (reply, found) = oneshot::channel();
        // The task lives as long as this does, unless the runtime is over.
        let _ = self.asked.send((Wish { slot: Arc::clone(slot), grouped }, reply));
        timeout(LIMIT, found).await.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// The thread that looks.
fn start_thread(proc: Proc) -> blocking::Sender<Batch> {
    let (batches, inbox) = blocking::channel::<Batch>();
    // Where there can be no more threads nobody takes the batches out, which is noticed at each.
    let _ = thread::Builder::new().name("looks".into()).stack_size(256 << 10).spawn(move || {
        for (wishes, reply) in inbox {
            let _ = reply.send(look(&proc, &wishes));
        }
    });
    batches
}

async fn take(looker: &blocking::Sender<Batch>, proc: &Proc, wishes: Vec<Wish>) -> Vec<Found> {
    let (reply, found) = oneshot::channel();
    match looker.send((wishes, reply)) {
        Ok(()) => found.await.unwrap_or_default(),
        Err(blocking::SendError((wishes, _))) => look(proc, &wishes),
    }
}

/// Of each unit what lives, in the same order.
fn look(proc: &Proc, wishes: &[Wish]) -> Vec<Found> {
    let walked = walk(proc, wishes);
    let grouped = wishes.iter().map(|wish| {
        let cgroup = wish.slot.cgroup.as_ref().filter(|cgroup| wish.grouped && !cgroup.remove_if_empty());
        cgroup.map(|cgroup| cgroup.pids()).unwrap_or_default()
    });
    walked.into_iter().zip(grouped).map(|(walked, grouped)| Found { walked, grouped }).collect()
}

fn walk(proc: &Proc, wishes: &[Wish]) -> Vec<Vec<Stat>> {
    let running: Vec<bool> = wishes.iter().map(|wish| wish.slot.running()).collect();
    // Asked for after that: what a process leaves behind is gymrun's own child before its end is known.
    let mut adopted = process::adopted();
    // A child that was reaped while they were listed looks like one of them.
    adopted.retain(|pid| proc.stat(*pid).is_some_and(|stat| stat.alive()));
    // Of one that has ended nothing else is left.
    let known = |(wish, running): (&Wish, bool)| wish.slot.members().filter(|_| running || !adopted.is_empty());
    let members: Vec<Option<Members>> = wishes.iter().zip(running).map(known).collect();
    let spawned: Vec<Members> = members.iter().flatten().cloned().collect();
    let mut found = proc.members(&spawned, &adopted).into_iter();
    members.iter().map(|members| members.as_ref().and_then(|_| found.next()).unwrap_or_default()).collect()
}
