//! What this program is besides the bench: the floor of supervision, and the children of the measured jobs.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Plays the role that the first word names: its exit code; `None` if it names none.
pub fn play() -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let played = match words.as_slice() {
        ["bare-loop", count, program, arguments @ ..] => bare_loop(count, None, program, arguments),
        ["contained-loop", count, cgroups, program, arguments @ ..] => {
            bare_loop(count, Some(Path::new(cgroups)), program, arguments)
        }
        ["server", port, after_milliseconds, opened] => serve(port, after_milliseconds, Path::new(opened)),
        ["lines", mebibytes, started, go, done] => write_lines(mebibytes, [started, go, done].map(Path::new)),
        _ => return None,
    };
    Some(if played.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The floor: starts so many children, waits for SIGTERM, hands it on, waits for all. With `cgroups`, a directory, each child
/// has one there, which is taken away after it.
fn bare_loop(count: &str, cgroups: Option<&Path>, program: &str, arguments: &[&str]) -> io::Result<()> {
    let count: usize = count.parse().map_err(io::Error::other)?;
    let own = |number: usize| cgroups.map(|cgroups| cgroups.join(format!("bench-{}-{number}", std::process::id())));
    let enter = |cgroup: &Path| fs::write(cgroup.join("cgroup.procs"), "0");
    let start = |number| {
        // A child is born where its parent is.
        own(number).map_or(Ok(()), |own| fs::create_dir(&own).and_then(|()| enter(&own)))?;
        Command::new(program).args(arguments).spawn()
    };
    let mut children = (0..count).map(start).collect::<io::Result<Vec<_>>>()?;
    cgroups.map_or(Ok(()), enter)?;
    // Only now: children inherit what is blocked.
    let mut term = SigSet::empty();
    term.add(Signal::SIGTERM);
    term.thread_block()?;
    term.wait()?;
    for child in &children {
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM)?;
    }
    for (number, child) in children.iter_mut().enumerate() {
        child.wait()?;
        own(number).map_or(Ok(()), fs::remove_dir)?;
    }
    Ok(())
}

/// A server that needs its time to start: writes down when it began to listen, and answers 200 to everything.
fn serve(port: &str, after_milliseconds: &str, opened: &Path) -> io::Result<()> {
    let after = after_milliseconds.parse().map_err(io::Error::other)?;
    std::thread::sleep(Duration::from_millis(after));
    let listener = TcpListener::bind(("127.0.0.1", port.parse().map_err(io::Error::other)?))?;
    fs::write(opened, now().as_nanos().to_string())?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        // A client that only connects, or goes away, is no reason to end.
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
    Ok(())
}

/// Says that it runs, waits until it is told to go, writes lines of 100 bytes, 64 KiB at once, and says that it is done.
fn write_lines(mebibytes: &str, [started, go, done]: [&Path; 3]) -> io::Result<()> {
    let bytes = mebibytes.parse::<usize>().map_err(io::Error::other)? << 20;
    let mut line = [b'x'; 100];
    line[99] = b'\n';
    let block = line.repeat(655);
    let say = |path: &Path| fs::OpenOptions::new().write(true).open(path)?.write_all(b".");
    say(started)?;
    fs::File::open(go)?.read_exact(&mut [0])?;
    let mut out = io::stdout().lock();
    for _ in 0..bytes / block.len() {
        out.write_all(&block)?;
    }
    out.flush()?;
    say(done)?;
    std::thread::sleep(Duration::from_mins(10));
    Ok(())
}

/// The monotonic clock: the same in all processes of a machine.
pub fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock").into()
}
