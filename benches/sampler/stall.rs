//! What a large process feels while it is sampled: how long it takes to map memory, touch it and give it back.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::options::Options;
use crate::samplers::Ours;
use crate::statistics::Series;
use crate::table::{Peer, Row, Table};

const MEBIBYTES: usize = 2048;
const WINDOW: Duration = Duration::from_secs(4);
/// Ten times as often as by default.
const INTERVAL: Duration = Duration::from_millis(100);

/// The 99.9th percentile, unsampled and sampled.
pub fn measure(options: &Options, table: &mut Table) {
    let mut target = Target::start();
    let [mut alone, mut resident, mut exact] = <[Series; 3]>::default();
    for repetition in 1..=options.repetitions {
        alone.push(target.window(None));
        resident.push(target.window(Some(false)));
        exact.push(target.window(Some(true)));
        eprintln!("{repetition}: {:.0}, RSS {:.0}, PSS {:.0} µs", alone.newest(), resident.newest(), exact.newest());
    }
    let row = |what: &str, ours, goals| Row {
        name: format!("p99.9 of mapping memory in a process of 2 GiB, {what} (floor: unsampled), µs"),
        floor: Some(alone.clone()),
        ours,
        goals,
        ..Row::default()
    };
    table.add(&row("RSS sampled at 10 Hz", resident, vec![(Peer::Floor, 2.0)]));
    table.add(&row("PSS sampled at 10 Hz", exact, Vec::new()));
}

struct Target {
    process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Target {
    fn start() -> Self {
        let own = std::env::current_exe().expect("a bench has a file");
        let mut command = Command::new(own);
        command.arg("target").arg(MEBIBYTES.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a process");
        let orders = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut target = Self { process, orders, answers };
        target.answer();
        target
    }

    fn answer(&mut self) -> String {
        self.answers.next().expect("it lives").expect("it answers")
    }

    /// Microseconds, while RSS or PSS is sampled or nothing is.
    fn window(&mut self, with_pss: Option<bool>) -> f64 {
        let over = AtomicBool::new(false);
        let root = self.process.id().cast_signed();
        std::thread::scope(|scope| {
            if let Some(with_pss) = with_pss {
                let over = &over;
                scope.spawn(move || {
                    let mut sampler = Ours::begin(root);
                    while !over.load(Ordering::Relaxed) {
                        sampler.sample(with_pss);
                        std::thread::sleep(INTERVAL);
                    }
                });
            }
            writeln!(self.orders, "go").expect("it lives");
            let answer = self.answer().parse().expect("a number");
            over.store(true, Ordering::Relaxed);
            answer
        })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The target: for each line it reads it works for a while and answers with its 99.9th percentile.
pub fn live(mebibytes: usize) {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).expect("prctl");
    let held = vec![1_u8; mebibytes << 20];
    println!("there");
    for _ in std::io::stdin().lines() {
        let start = Instant::now();
        let mut taken = Vec::with_capacity(1 << 16);
        while start.elapsed() < WINDOW {
            let before = Instant::now();
            map_and_unmap();
            taken.push(before.elapsed().as_secs_f64() * 1e6);
            std::thread::sleep(Duration::from_micros(200));
        }
        taken.sort_by(f64::total_cmp);
        println!("{}", taken[taken.len() * 999 / 1000]);
        std::hint::black_box(&held);
    }
}

#[expect(unsafe_code, reason = "what is measured is the system call itself")]
fn map_and_unmap() {
    const LENGTH: usize = 65_536;
    // SAFETY: a fresh mapping that nobody else knows, written within its length and given back whole.
    unsafe {
        let mapped = libc::mmap(
            std::ptr::null_mut(),
            LENGTH,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert!(mapped != libc::MAP_FAILED);
        mapped.cast::<u8>().write_volatile(1);
        libc::munmap(mapped, LENGTH);
    }
}
