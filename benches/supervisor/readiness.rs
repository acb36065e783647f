//! How soon it is noticed that a server is ready, or that a child is dead, and what the waiting costs.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bed::{Job, Kit, Running, Watched, cpu_of_children, cpu_of_children_since, scratch};
use crate::options::Options;
use crate::roles::now;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

/// Servers that get ready at some time, for each of the two.
const SERVERS: usize = 16;
/// What launchers of clusters do: curl, and sleep this long.
const PERIOD: Duration = Duration::from_secs(5);

/// gymrun's probes beside curl every five seconds, in the same minute.
pub fn measure(options: &Options, kit: &Kit) {
    let minute = Duration::from_secs(if options.quick { 15 } else { 60 });
    let folder = scratch();
    // Servers that get ready while gymrun waits,
    let opening: Vec<Duration> = (0..SERVERS).map(|number| minute.mul_f64(fraction(number))).collect();
    let mut job = Job::default();
    for (number, after) in opening.iter().enumerate() {
        let opened = folder.path().join(format!("gymrun{number}"));
        add_server(&mut job, kit, &format!("s{number}"), *after, &opened);
    }
    let events = Events::of(kit, &job, &folder.path().join("all"));
    // those that never do, and the same ones that nobody waits for,
    let never = |checked: bool, number: usize| {
        let (mut job, file) = (Job::default(), folder.path().join("never"));
        if checked {
            add_server(&mut job, kit, "never", Duration::from_hours(1), &file);
        } else {
            add_unchecked(&mut job, kit, "never", Duration::from_hours(1), &file);
        }
        Events::of(kit, &job, &folder.path().join(format!("waits{number}{checked}")))
    };
    let waiting: Vec<[Events; 2]> =
        (0..options.repetitions()).map(|number| [true, false].map(|checked| never(checked, number))).collect();
    // and the same for curl.
    let curls: Vec<Loop> = if has_curl() {
        let curl = |(number, after): (usize, &Duration)| {
            Loop::start(kit, *after, minute, &folder.path().join(format!("curl{number}")))
        };
        opening.iter().enumerate().map(curl).collect()
    } else {
        Vec::new()
    };
    thread::sleep(Duration::from_secs(1));
    let clocks: Vec<[Watched; 2]> =
        waiting.iter().map(|both| both.each_ref().map(|events| Watched::one(events.gymrun.id()))).collect();
    let before: Vec<[Duration; 2]> = clocks.iter().map(|both| both.each_ref().map(Watched::cpu)).collect();
    thread::sleep(minute);
    // What a job costs that waits for nothing is not the waiting's.
    let (mut cpu, mut idle) = (Series::default(), Series::default());
    let in_a_minute = 60.0 / minute.as_secs_f64();
    for ([checked, unchecked], [checked_before, unchecked_before]) in clocks.iter().zip(before) {
        let without = unchecked.cpu_since(unchecked_before).as_secs_f64() * 1e3 * in_a_minute;
        idle.push(without);
        cpu.push(checked.cpu_since(checked_before).as_secs_f64() * 1e3 * in_a_minute - without);
    }
    let lives = |events: &Events| events.pid("never").is_some() && events.when("process_exited", "never").is_none();
    assert!(waiting.iter().flatten().all(lives), "a job that waits has ended");
    thread::sleep(Duration::from_secs(2) + if curls.is_empty() { Duration::ZERO } else { PERIOD });
    let mut noticed = Vec::new();
    for number in 0..SERVERS {
        let ready = events.when("process_ready", &format!("s{number}")).expect("it was ready in time");
        noticed
            .push(ready.saturating_sub(opened_at(&folder.path().join(format!("gymrun{number}")))).as_secs_f64() * 1e3);
    }
    events.end();
    waiting.iter().flatten().for_each(Events::end);
    let (mut curl_noticed, mut polls, mut curl_cpu) = (Vec::new(), 0_u32, Duration::ZERO);
    for (number, curl) in curls.into_iter().enumerate() {
        let (ready, asked, used) = curl.end();
        polls += asked;
        curl_cpu += used;
        curl_noticed
            .push(ready.saturating_sub(opened_at(&folder.path().join(format!("curl{number}")))).as_secs_f64() * 1e3);
    }
    Running::wait_for_all();
    let mut curl_waits = Series::default();
    curl_waits.push(curl_cpu.as_secs_f64() * 1e3 / f64::from(polls.max(1)) * 60.0 / PERIOD.as_secs_f64());
    let mut table = Table::new("Readiness and death", ["gymrun", "curl every 5 s"]);
    let goals = vec![Goal::times(0.01, mean(&curl_noticed), "curl")];
    let cells = vec![Some(single(mean(&noticed))), Some(single(mean(&curl_noticed)))];
    let name = format!("listening to noticed, ms: mean of {SERVERS} servers that take 0 to {} s", minute.as_secs());
    table.add(Row { name, digits: 1, cells, goals });
    let goals = vec![Goal::times(1.0, curl_waits.median(), "curl")];
    let name = "CPU of 60 s of waiting for one server, ms".into();
    table.add(Row { name, digits: 1, cells: vec![Some(cpu), Some(curl_waits)], goals });
    let died = deaths(options, kit);
    let goals = vec![Goal::Value(10.0)];
    table.add(Row {
        name: "death of a child to its event, ms".into(),
        digits: 2,
        cells: vec![Some(died), None],
        goals,
    });
    table.note("An event counts when a program that reads `gymrun run --json` has it.");
    table.note(format!(
        "gymrun's CPU is beyond that of the same job without a health check ({:.1} ms), measured over {} s.",
        idle.median(),
        minute.as_secs()
    ));
    table.note("curl's CPU is that of its own processes, without the shell and the sleeps around them.");
    table.print();
}

/// Milliseconds from SIGKILL for a child to the event of its end.
fn deaths(options: &Options, kit: &Kit) -> Series {
    let count = options.repetitions().max(8);
    let folder = scratch();
    let mut job = Job::default();
    for number in 0..count {
        job.add(&format!("s{number}"), &["sleep", "600"], "on_exit = \"ignore\"");
    }
    let events = Events::of(kit, &job, &folder.path().join("out"));
    let begin = Instant::now();
    while !(0..count).all(|number| events.when("process_ready", &format!("s{number}")).is_some()) {
        assert!(begin.elapsed() < Duration::from_mins(1), "the children do not start");
        thread::sleep(Duration::from_millis(5));
    }
    let mut series = Series::default();
    for number in 0..count {
        let name = format!("s{number}");
        let pid = events.pid(&name).expect("it has started");
        thread::sleep(Duration::from_millis(200));
        let killed = now();
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("signals");
        let begin = Instant::now();
        let told = loop {
            if let Some(told) = events.when("process_exited", &name) {
                break told;
            }
            assert!(begin.elapsed() < Duration::from_mins(1), "nobody says that {name} is dead");
            thread::sleep(Duration::from_millis(1));
        };
        series.push(told.saturating_sub(killed).as_secs_f64() * 1e3);
    }
    events.end();
    Running::wait_for_all();
    series
}

fn add_server(job: &mut Job, kit: &Kit, name: &str, after: Duration, opened: &Path) {
    add(job, kit, name, after, opened, "health_check = { type = \"http\", path = \"/\", timeout_seconds = 3600 }");
}

/// The same, and nobody waits for it.
fn add_unchecked(job: &mut Job, kit: &Kit, name: &str, after: Duration, opened: &Path) {
    add(job, kit, name, after, opened, "");
}

fn add(job: &mut Job, kit: &Kit, name: &str, after: Duration, opened: &Path, rest: &str) {
    let (own, port, after) = (kit.own.to_string_lossy(), free_port().to_string(), after.as_millis().to_string());
    let words = [&*own, "server", &port, &after, &opened.to_string_lossy()].map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    job.add(name, &words, &format!("port = {port}, {rest}"));
}

/// When an event of a kind about a process came, and the pid that it told.
type Seen = HashMap<(String, String), (Duration, i32)>;

/// A gymrun whose events are read as they come, with the time at which they came.
struct Events {
    gymrun: Child,
    seen: Arc<Mutex<Seen>>,
}

impl Events {
    fn of(kit: &Kit, job: &Job, folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("a folder");
        let mut command = kit.gymrun("run", &job.write(folder), folder);
        command.arg("--json").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut gymrun = command.spawn().expect("starts");
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let out = BufReader::new(gymrun.stdout.take().expect("a pipe"));
        let writer = Arc::clone(&seen);
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let at = now();
                let event: serde_json::Value = serde_json::from_str(&line).expect("an event");
                let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
                let pid = event["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
                writer.lock().expect("nobody panics here").insert((text("event"), text("process")), (at, pid));
            }
        });
        Self { gymrun, seen }
    }

    fn get(&self, event: &str, process: &str) -> Option<(Duration, i32)> {
        self.seen.lock().expect("nobody panics here").get(&(event.to_owned(), process.to_owned())).copied()
    }

    fn when(&self, event: &str, process: &str) -> Option<Duration> {
        self.get(event, process).map(|(at, _)| at)
    }

    fn pid(&self, process: &str) -> Option<i32> {
        self.get("process_started", process).map(|(_, pid)| pid)
    }

    fn end(&self) {
        kill(Pid::from_raw(self.gymrun.id().cast_signed()), Signal::SIGTERM).expect("signals");
    }
}

/// A server of its own, and curl every five seconds until it answers.
struct Loop {
    server: Child,
    /// When it answered, how often it was asked, and what curl needed.
    asking: JoinHandle<(Duration, u32, Duration)>,
}

impl Loop {
    fn start(kit: &Kit, after: Duration, minute: Duration, opened: &Path) -> Self {
        let port = free_port().to_string();
        let mut server = Command::new(&kit.own);
        server.args(["server", &port, &after.as_millis().to_string()]).arg(opened).stdin(Stdio::null());
        let server = server.spawn().expect("starts");
        let end = Instant::now() + 2 * minute + 2 * PERIOD;
        let asking = thread::spawn(move || {
            let (mut asked, mut used) = (0, Duration::ZERO);
            loop {
                assert!(Instant::now() < end, "a server is never ready");
                let url = format!("http://127.0.0.1:{port}/health");
                let mut curl = Command::new("curl");
                curl.args(["-sf", "-o", "/dev/null", &url]).stdin(Stdio::null());
                let one = ONE.lock().expect("nobody panics here");
                let before = cpu_of_children();
                let good = curl.status().expect("curl starts").success();
                let at = now();
                asked += 1;
                used += cpu_of_children_since(before);
                drop(one);
                if good {
                    return (at, asked, used);
                }
                thread::sleep(PERIOD);
            }
        });
        Self { server, asking }
    }

    fn end(mut self) -> (Duration, u32, Duration) {
        let asked = self.asking.join().expect("curl was answered");
        // Both fail only if it has ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
        asked
    }
}

/// One curl at a time, so that its CPU can be told from the others'.
static ONE: Mutex<()> = Mutex::new(());

fn has_curl() -> bool {
    let asked = Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !asked {
        println!("curl is absent.");
    }
    asked
}

/// Spread over 0 to 1 in no step that a schedule could share.
fn fraction(number: usize) -> f64 {
    (number as f64 * 0.618_033_988_75 + 0.37).fract()
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn opened_at(path: &Path) -> Duration {
    let text = fs::read_to_string(path).expect("the server has opened");
    Duration::from_nanos(text.parse().expect("a time"))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn single(value: f64) -> Series {
    let mut series = Series::default();
    series.push(value);
    series
}
