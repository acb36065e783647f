//! One child process: group, stdio, signals, and the one reaper.
//!
//! All children are spawned by one thread that lives as long as gymrun, because Linux ties a parent-death signal to the
//! thread that forked. One other thread waits for every process there is to wait for, those that gymrun adopted as a
//! subreaper included: there is no other `wait` anywhere. A child's end is told only after its start was. One lock, held
//! while a child is forked and executed, keeps the reaper from a child that is not known yet; another, held for moments
//! only, guards the list of children. Each child has one of its own: whoever signals its group holds that, and so does the
//! reaper before it takes the child away, so that the number is its own.

mod allocator;
mod blocking;
mod cgroup;
mod containment;
mod copy;
mod descriptors;
mod dispositions;
mod environment;
mod exit;
mod footprint;
mod guard;
mod helper;
mod inherited;
mod kill;
mod launch;
mod lines;
mod log;
mod os_signals;
mod program;
mod reaper;
mod registry;
mod showing;
mod spawn;
mod strangers;
mod terminal;
mod wait;

pub use allocator::set_up_allocator;
pub use blocking::keep_a_blocking_thread;
pub use cgroup::Cgroup;
pub use containment::{Containment, end_left_cgroup, left_in};
pub use copy::{Copier, CopyPlan, Finishing, Source, Turn};
pub use descriptors::take_all_descriptors;
pub use environment::Environment;
pub use exit::Exit;
pub use footprint::{share_one_heap, shed_free_memory, shed_memory, shed_memory_after, take_room_at_once};
pub use helper::Helper;
pub use kill::{freeze, kill_group, send_signal, signal_group, wake, wake_group};
pub use launch::{Launch, LaunchError, LaunchErrorKind, Output, Started};
pub use log::{Kept, Log, OnFailure};
pub use os_signals::{OsSignals, Told, hold_signals, told_meanwhile};
pub use program::in_words;
pub use reaper::{adopted, childless, children, launch, spawned_so_far};
pub use showing::{Destination, LineSink, Prefix};
