//! Looks at what still lives of units, as the walk of descendants finds it. All that are asked for at the same time are one
//! look: the list of gymrun's own children is the same for all of them, and with many units it is long.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use super::slot::Slot;
use crate::process;
use crate::procfs::{Members, Proc, Stat};

type Asked = (Arc<Slot>, oneshot::Sender<Vec<Stat>>);

/// Where looks are asked for.
#[derive(Clone, Debug)]
pub(super) struct Looks {
    asked: mpsc::UnboundedSender<Asked>,
}

impl Looks {
    /// Starts the task that looks.
    pub(super) fn start() -> Self {
        let (asked, mut inbox) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut all: Vec<Asked> = Vec::new();
            while inbox.recv_many(&mut all, usize::MAX).await > 0 {
                // Whoever else has learnt just now that its process has ended asks first.
                yield_now().await;
                while let Ok(asked) = inbox.try_recv() {
                    all.push(asked);
                }
                let (slots, replies): (Vec<_>, Vec<_>) = all.drain(..).unzip();
                for (reply, found) in replies.into_iter().zip(look(&slots)) {
                    // One that is not waited for any more needs no answer.
                    let _ = reply.send(found);
                }
            }
        });
        Self { asked }
    }

    /// Everything that lives of a unit after this was called, its root included.
    pub(super) async fn look(&self, slot: &Arc<Slot>) -> Vec<Stat> {
        let (reply, found) = oneshot::channel();
        // The task lives as long as this does, unless the runtime is over.
        let _ = self.asked.send((Arc::clone(slot), reply));
        found.await.unwrap_or_default()
    }
}

/// Of each unit what lives, in the same order.
fn look(slots: &[Arc<Slot>]) -> Vec<Vec<Stat>> {
    let running: Vec<bool> = slots.iter().map(|slot| slot.running()).collect();
    // Asked for after that: what a process leaves behind is gymrun's own child before its end is known.
    let mut adopted = process::adopted();
    // A child that was reaped while they were listed looks like one of them.
    let proc = Proc::default();
    adopted.retain(|pid| proc.stat(*pid).is_some_and(|stat| stat.alive()));
    // Of one that has ended nothing else is left.
    let known = |(slot, running): (&Arc<Slot>, bool)| slot.members().filter(|_| running || !adopted.is_empty());
    let members: Vec<Option<Members>> = slots.iter().zip(running).map(known).collect();
    let spawned: Vec<Members> = members.iter().flatten().cloned().collect();
    let mut found = proc.members(&spawned, &adopted).into_iter();
    members.iter().map(|members| members.as_ref().and_then(|_| found.next()).unwrap_or_default()).collect()
}
