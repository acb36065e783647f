//! What it costs to keep the output of a child.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::bed::{Fifo, Guard, Job, Kit, Running, Watched, cpu_of_children, cpu_of_children_since, scratch};
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

const PATIENCE: Duration = Duration::from_mins(2);

/// Who keeps the lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Capturer {
    /// The child owns its file.
    File,
    /// gymrun copies, and shows each line with its prefix to nobody.
    Pipe,
    /// gymrun copies, and shows each line with its prefix in a second file.
    PipeTwice,
    Cat,
    Supervisord,
}

impl Capturer {
    const ALL: [Self; 5] = [Self::File, Self::Pipe, Self::PipeTwice, Self::Cat, Self::Supervisord];

    const fn name(self) -> &'static str {
        match self {
            Self::File => "gymrun, `log = \"file\"`",
            Self::Pipe => "gymrun, `log = \"pipe\"`, shown in /dev/null",
            Self::PipeTwice => "gymrun, `log = \"pipe\"`, shown in a file",
            Self::Cat => "cat",
            Self::Supervisord => "supervisord, no rotation",
        }
    }
}

/// The capturer's CPU for lines of 100 bytes that are written 64 KiB at once, into files in memory.
pub fn measure(options: &Options, kit: &Kit) {
    let mebibytes = if options.quick { 128 } else { 1024 };
    let wanted =
        |capturer: &Capturer| *capturer != Capturer::Supervisord || (kit.python.is_some() && !options.no_peers);
    let capturers: Vec<Capturer> = Capturer::ALL.into_iter().filter(wanted).collect();
    let mut sides: Vec<[Series; 2]> = capturers.iter().map(|_| Default::default()).collect();
    for repetition in 1..=options.repetitions() {
        for (capturer, [cpu, wall]) in capturers.iter().zip(&mut sides) {
            let (used, took) = match capturer {
                Capturer::Cat => cat(kit, mebibytes),
                _ => supervised(kit, *capturer, mebibytes),
            };
            let per_gibibyte = 1024.0 / f64::from(mebibytes) * 1e3;
            cpu.push(used.as_secs_f64() * per_gibibyte);
            wall.push(took.as_secs_f64() * per_gibibyte);
            eprintln!("{repetition}: capture, {}: {:.1} ms", capturer.name(), cpu.newest());
        }
    }
    let cat =
        capturers.iter().position(|capturer| *capturer == Capturer::Cat).map_or(f64::NAN, |at| sides[at][0].median());
    let mut table = Table::new("1 GiB of log lines", ["capturer's CPU, ms", "until all is in the file, ms"]);
    for (capturer, [cpu, wall]) in capturers.iter().zip(sides) {
        let goals = match capturer {
            Capturer::File => vec![Goal::times(0.01, cat, "cat")],
            Capturer::Pipe => vec![Goal::times(1.5, cat, "cat")],
            _ => Vec::new(),
        };
        table.add(Row { name: capturer.name().into(), digits: 1, cells: vec![Some(cpu), Some(wall)], goals });
    }
    table.note(format!("{} repetitions of {mebibytes} MiB.", options.repetitions()));
    table.print();
}

/// The pipes through which the writer of lines is told what to do, and their names.
struct Cues {
    started: Fifo,
    go: Fifo,
    done: Fifo,
}

impl Cues {
    fn make(folder: &Path) -> Self {
        let fifo = |name: &str| Fifo::make(folder.join(name));
        Self { started: fifo("started"), go: fifo("go"), done: fifo("done") }
    }

    /// The command of the writer.
    fn writer(&self, kit: &Kit, mebibytes: u32) -> Vec<String> {
        let pipes = [&self.started, &self.go, &self.done].map(|fifo| fifo.path().display().to_string());
        [kit.own.display().to_string(), "lines".into(), mebibytes.to_string()].into_iter().chain(pipes).collect()
    }

    /// Has everything written: how long it took until `size` said that it is in the file.
    fn run(&mut self, expected: u64, file: &Path) -> Duration {
        let begin = Instant::now();
        self.go.say();
        assert!(self.done.hear(1, PATIENCE), "the writer of lines does not end");
        while fs::metadata(file).map_or(0, |data| data.len()) < expected {
            assert!(begin.elapsed() < PATIENCE, "not everything came into {}", file.display());
            std::thread::sleep(Duration::from_millis(1));
        }
        begin.elapsed()
    }
}

/// How much a writer writes: whole blocks.
fn expected(mebibytes: u32) -> u64 {
    let block = 65_500;
    (u64::from(mebibytes) << 20) / block * block
}

fn cat(kit: &Kit, mebibytes: u32) -> (Duration, Duration) {
    let guard = Guard::set(PATIENCE);
    let folder = scratch();
    let mut cues = Cues::make(folder.path());
    let words = cues.writer(kit, mebibytes);
    let out = folder.path().join("lines.log");
    let mut writer = Command::new(&words[0]).args(&words[1..]).stdout(Stdio::piped()).spawn().expect("starts");
    let lines = writer.stdout.take().expect("a pipe");
    let mut cat =
        Command::new("cat").stdin(lines).stdout(File::create(&out).expect("creates")).spawn().expect("starts");
    assert!(cues.started.hear(1, PATIENCE), "the writer of lines does not start");
    let took = cues.run(expected(mebibytes), &out);
    kill(Pid::from_raw(writer.id().cast_signed()), Signal::SIGTERM).expect("signals");
    writer.wait().expect("waits");
    let before = cpu_of_children();
    cat.wait().expect("waits");
    assert!(!guard.fired(), "it took too long");
    (cpu_of_children_since(before), took)
}

/// A supervisor's CPU from the word to go until everything is in the file and, where it is shown, there too.
fn supervised(kit: &Kit, capturer: Capturer, mebibytes: u32) -> (Duration, Duration) {
    let folder = scratch();
    let mut cues = Cues::make(folder.path());
    let words = cues.writer(kit, mebibytes);
    let (command, log) = if capturer == Capturer::Supervisord {
        supervisord(kit, &folder, &words)
    } else {
        gymrun(kit, capturer, &folder, &words)
    };
    let shown = folder.path().join("log.txt");
    let running = if capturer == Capturer::PipeTwice {
        Running::launch(command, folder, &mut cues.started, 1)
    } else {
        Running::launch_unheard(command, folder, &mut cues.started, 1)
    };
    let processes = Watched::one(running.pid());
    let before = processes.cpu();
    let mut took = cues.run(expected(mebibytes), &log);
    if capturer == Capturer::PipeTwice {
        let begin = Instant::now();
        // With their prefixes the lines are longer.
        while fs::metadata(&shown).map_or(0, |data| data.len()) < expected(mebibytes) {
            assert!(begin.elapsed() < PATIENCE, "not everything was shown");
            std::thread::sleep(Duration::from_millis(1));
        }
        took += begin.elapsed();
    }
    // The end of what is shown to nobody cannot be seen.
    std::thread::sleep(Duration::from_millis(200));
    let used = processes.cpu_since(before);
    running.stop();
    (used, took)
}

fn gymrun(kit: &Kit, capturer: Capturer, folder: &TempDir, words: &[String]) -> (Command, PathBuf) {
    let mut job = Job::default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    job.add("lines", &words, if capturer == Capturer::File { "log = \"file\"" } else { "log = \"pipe\"" });
    let path = job.write(folder.path());
    (kit.gymrun("run", &path, folder.path()), folder.path().join("out/bench/bench/logs/lines.log"))
}

fn supervisord(kit: &Kit, folder: &TempDir, words: &[String]) -> (Command, PathBuf) {
    let log = folder.path().join("lines.log");
    let here = folder.path().display();
    let text = format!(
        "[supervisord]\nnodaemon=true\nlogfile={here}/l\npidfile={here}/p\n[program:lines]\ncommand={}\n\
         stdout_logfile={}\nstdout_logfile_maxbytes=0\n",
        words.join(" "),
        log.display()
    );
    let config = folder.path().join("supervisord.conf");
    fs::write(&config, text).expect("writes");
    let python = kit.python.as_ref().expect("asked for before");
    let mut command = Command::new(python.with_file_name("supervisord"));
    command.arg("-c").arg(config);
    (command, log)
}
