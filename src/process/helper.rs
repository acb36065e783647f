//! Children that somebody waits for, such as an `exec` probe.

use tokio::sync::oneshot;

use super::exit::Exit;
use super::kill::kill_group;
use super::launch::{Launch, LaunchError, LaunchErrorKind};
use super::reaper::launch;
use crate::procfs::Identity;

/// A child that runs for as long as somebody waits for it: dropped, its whole group is killed.
#[derive(Debug)]
pub struct Helper {
    identity: Identity,
    exit: oneshot::Receiver<Exit>,
}

impl Helper {
    /// Starts one. Whoever gives that up before it runs leaves nothing behind either.
    pub async fn start(description: Launch) -> Result<Self, LaunchError> {
        let (told, start) = oneshot::channel();
        let (exited, exit) = oneshot::channel();
        launch(
            description,
            // What nobody takes any more is dropped: here, or with the other end of the channel.
            move |result| drop(told.send(result.map(|started| Self { identity: started.identity, exit }))),
            move |status| {
                let _ = exited.send(status);
            },
        );
        let lost = || LaunchError::new(LaunchErrorKind::System, "the thread that spawns children is gone");
        start.await.map_err(|_| lost())?
    }

    /// Waits for its end; `None` if nobody knows how it ended.
    pub async fn end(mut self) -> Option<Exit> {
        (&mut self.exit).await.ok()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // One that has been reaped gets nothing.
        let _ = kill_group(self.identity);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Helper;
    use crate::process::{Exit, Launch};
    use crate::procfs::Proc;

    /// A command line that no other process has.
    fn unique() -> String {
        format!("{}.{}", 4_000 + fastrand::u32(..1_000), 1_000_000 + fastrand::u32(..1_000_000))
    }

    fn running(word: &str) -> usize {
        let own = i32::try_from(std::process::id()).expect("pids are small");
        let below = Proc::default().descendants(&Proc::default().children(own));
        let says = |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| contains(&c, word));
        below.iter().filter(|pid| says(pid)).count()
    }

    fn contains(bytes: &[u8], word: &str) -> bool {
        bytes.windows(word.len()).any(|part| part == word.as_bytes())
    }

    fn eventually(condition: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(Instant::now() < end, "it never came true");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[tokio::test]
    async fn a_helper_ends_as_it_says() {
        assert_eq!(Helper::start(Launch::shell("exit 3")).await.expect("it starts").end().await, Some(Exit::Code(3)));
        let killed = Helper::start(Launch::shell("kill -9 $$")).await.expect("it starts");
        assert_eq!(killed.end().await, Some(Exit::Signal(9)));
    }

    #[tokio::test]
    async fn a_helper_that_is_given_up_leaves_nothing_whenever_that_is() {
        let word = unique();
        let script = format!("sleep {word} & exec sleep {word}");
        // From before it is forked until after it runs.
        for turn in 0..40 {
            let limit = Duration::from_micros(100 * turn);
            let start = async { Helper::start(Launch::shell(&script)).await.expect("it starts").end().await };
            assert!(tokio::time::timeout(limit, start).await.is_err());
        }
        // One spawn after the other: what was asked for above has been started and ended by now.
        assert_eq!(Helper::start(Launch::shell("exit 0")).await.expect("it starts").end().await, Some(Exit::Code(0)));
        eventually(|| running(&word) == 0);
    }
}
