use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::stat::Mode;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

use super::{Stop, sweep_until};
use crate::plan::{StopPolicy, StopSignal};
use crate::process::{self, Containment, Exit, Launch};
use crate::procfs::{Identity, Proc};
use crate::supervisor::budget::Pace;
use crate::supervisor::host::Report;
use crate::supervisor::looks::Looks;
use crate::supervisor::slot::Slot;

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// Starts a command of a shell; its end is told.
async fn start(script: &str, ended: impl FnOnce(Exit) + Send + 'static) -> Identity {
    let (told, started) = oneshot::channel();
    process::launch(
        Launch::shell(script),
        move |result| drop(told.send(result.map(|started| started.identity))),
        ended,
    );
    started.await.expect("it is told").expect("it starts")
}

/// Until a child has made that file.
async fn appears(file: &std::path::Path) {
    let end = Instant::now() + LONG;
    while !file.exists() {
        assert!(Instant::now() < end, "{} is not there", file.display());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_look_that_hangs_holds_up_no_signal() {
    for (pace, script, exit) in [
        (Pace::Leisurely, "trap 'exit 7' TERM; touch $UP; while :; do sleep 0.01; done", Exit::Code(7)),
        (Pace::Kill, "trap '' TERM; touch $UP; while :; do sleep 0.01; done", Exit::Signal(9)),
    ] {
        let root = tempfile::tempdir().expect("a scratch directory");
        let up = root.path().join("up");
        let slot = Arc::new(Slot::with("MARK=x".into(), None));
        let (told, mut exits) = mpsc::unbounded_channel();
        let ended = Arc::clone(&slot);
        let identity = start(&script.replace("$UP", &up.display().to_string()), move |exit| {
            ended.ended.send_replace(true);
            let _ = told.send(exit);
        })
        .await;
        slot.root.set(identity).expect("it is new");
        appears(&up).await;
        // A process that does not answer: nobody ever opens the other end.
        let own = root.path().join(identity.pid.to_string());
        fs::create_dir(&own).expect("a scratch directory");
        nix::unistd::mkfifo(&own.join("stat"), Mode::S_IRWXU).expect("a pipe with a name");
        let (reports, mut heard) = mpsc::unbounded_channel();
        let (_pace, pace) = watch::channel(pace);
        let stop = Stop {
            unit: 0,
            slot,
            policy: StopPolicy { signal: StopSignal::Term, grace_seconds: 3600.0 },
            reports,
            pace,
            known: HashSet::new(),
            looks: Looks::start(Proc::at(root.path())),
        };
        let stopping = tokio::spawn(stop.run());
        let ended = timeout(LONG, exits.recv()).await.expect("it was told to end");
        assert_eq!(ended, Some(exit));
        timeout(LONG, stopping).await.expect("nobody waits for the look").expect("no panic");
        let mut last = None;
        while let Ok(report) = heard.try_recv() {
            last = Some(report);
        }
        assert!(matches!(last, Some(Report::Gone { unit: 0 })), "{last:?}");
    }
}

/// All children of this process are ended: see below.
#[tokio::test]
#[ignore = "it ends the children of other tests"]
async fn alone() {
    let root = tempfile::tempdir().expect("a scratch directory");
    let up = root.path().join("up");
    let (told, mut exits) = mpsc::unbounded_channel();
    let script = format!("trap 'exit 7' TERM; touch {}; while :; do sleep 0.01; done", up.display());
    start(&script, move |exit| {
        let _ = told.send(exit);
    })
    .await;
    appears(&up).await;
    // What was asked for is never forked.
    let containment = Containment::walking("this is a test");
    let swept = sweep_until(&containment, Pace::Leisurely, &[], std::future::pending()).await;
    assert!(swept.count > 0 && swept.left.is_empty(), "{swept:?}");
    let ended = timeout(LONG, exits.recv()).await.expect("it ends");
    assert_eq!(ended, Some(Exit::Code(7)), "it was asked first");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this process is none of gymrun's")]
fn a_fork_that_hangs_takes_no_time_from_what_nobody_owns() {
    let program = std::env::current_exe().expect("it is known");
    let test = ["supervisor::teardown::tests::alone", "--exact", "--ignored"];
    let output = std::process::Command::new(program).args(test).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
