//! What all parts share: the programs, running supervisors, and what can be seen of them from outside.

mod fifo;
mod guard;
mod job;
mod kit;
mod observe;
mod peers;
mod running;

pub use fifo::Fifo;
pub use guard::{Guard, Sweep};
pub use job::Job;
pub use kit::{Kit, scratch};
pub use observe::{Memory, Watched, cpu_of_children, cpu_of_children_since};
pub use peers::Supervisor;
pub use running::Running;
