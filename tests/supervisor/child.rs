//! A program that does what it is told, step by step: `print:hello`, `sleep:0.5`, `fork { ignore:TERM forever }`.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, SigSet, Signal, raise, signal};
use nix::unistd::{ForkResult, Pid, fork, setsid};

use crate::listen::{self, answer};

use crate::{child_forks, child_memory};

/// What a trapped signal does: append `word` to `file`, take `seconds`, append `word gone`, exit with `code`.
struct Trap {
    signal: Signal,
    file: String,
    word: String,
    seconds: f64,
    code: i32,
}

#[derive(Default)]
struct Program {
    traps: Vec<Trap>,
    held: Vec<Vec<u8>>,
}

pub fn run(steps: &[String]) -> ExitCode {
    Program::default().run(steps);
    ExitCode::SUCCESS
}

pub fn end(code: i32) -> ! {
    let _ = std::io::stdout().flush();
    #[expect(clippy::exit, reason = "a test program that ends as it is told")]
    std::process::exit(code)
}

fn sleep(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

fn append(file: &str, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("a file to append to");
    writeln!(file, "{line}").expect("it can be written");
}

fn parse<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("bad value in a step: {text}"))
}

fn signal_of(name: &str) -> Signal {
    parse(&format!("SIG{name}"))
}

impl Program {
    fn run(&mut self, steps: &[String]) {
        let mut at = 0;
        while at < steps.len() {
            let step = steps[at].as_str();
            at += 1;
            let block = if steps.get(at).is_some_and(|s| s == "{") {
                let inner = &steps[at + 1..];
                let mut depth = 1;
                let length = inner
                    .iter()
                    .position(|s| {
                        depth += i32::from(s == "{") - i32::from(s == "}");
                        depth == 0
                    })
                    .expect("a block has an end");
                at += length + 2;
                &inner[..length]
            } else {
                &[]
            };
            self.step(step, block);
        }
    }

    fn step(&mut self, step: &str, block: &[String]) {
        let (word, rest) = step.split_once(':').unwrap_or((step, ""));
        let fields: Vec<&str> = rest.split(':').collect();
        match word {
            "print" => println!("{rest}"),
            "eprint" => eprintln!("{rest}"),
            "bytes" => {
                let bytes = data_encoding::HEXLOWER.decode(rest.as_bytes()).expect("hex");
                std::io::stdout().write_all(&bytes).expect("stdout");
                std::io::stdout().flush().expect("stdout");
            }
            "repeat" => print!("{}", fields[0].repeat(parse(fields[1]))),
            "flood" => flood(parse(rest)),
            "numbered" => (0..parse(fields[0])).for_each(|number: u32| println!("{} {number}", fields[1])),
            "fill" => std::fs::write(fields[0], vec![b'x'; parse(fields[1])]).expect("a file to fill"),
            "says" => wait_until("the word", || {
                std::fs::read(fields[0]).is_ok_and(|bytes| contains(&bytes, &fields[1].replace('_', " ")))
            }),
            "append" => append(fields[0], fields[1]),
            "environment" => {
                append(rest, &std::env::vars().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join("\n"))
            }
            "pid" => append(rest, &std::process::id().to_string()),
            "remove" => std::fs::remove_file(rest).expect("a file to take away"),
            "sleep" => sleep(parse(rest)),
            "exit" => end(parse(rest)),
            "raise" => die_of(signal_of(rest)),
            "wait" => wait_for(rest),
            "ignore" => ignore(signal_of(rest)),
            "trap" => self.trap(&fields),
            "forever" => self.forever(),
            "close" => (0..3).for_each(|descriptor| {
                let _ = nix::unistd::close(descriptor);
            }),
            "hold" => self.held.push(vec![1; parse::<usize>(rest) << 20]),
            "bus" => write_beyond(fields[0], parse::<usize>(fields[1]) << 20),
            "threads" => (0..parse(rest)).for_each(|_| drop(std::thread::spawn(|| sleep(1e6)))),
            "undumpable" => nix::sys::prctl::set_dumpable(false).expect("prctl"),
            "serve" => serve(parse(fields[0]), fields.get(1).map_or("200", |s| s)),
            "until" => serve_until(&fields),
            "listen" => listen::step(&fields),
            "connect" => end(i32::from(std::net::TcpStream::connect(("127.0.0.1", parse(rest))).is_err())),
            "collector" => collect(&fields),
            "write" => {
                std::fs::write(fields[0], rest[fields[0].len() + 1..].replace('_', " ")).expect("a file to write")
            }
            "multiply" => child_forks::multiply(parse(rest)),
            "churn" => churn(parse(fields[0]), fields[1]),
            "fork" => self.fork(block),
            "session" => drop(setsid().expect("a session")),
            "group" => nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0)).expect("a group"),
            "rename" => nix::sys::prctl::set_name(&std::ffi::CString::new(rest).expect("text")).expect("prctl"),
            "stopped" => raise(Signal::SIGSTOP).expect("a signal to itself"),
            "thread" => in_a_thread(block.to_vec()),
            // In the middle of its life it becomes another program, with its environment or with none.
            "execute" => execute(&mut Command::new(own()), block),
            "bare" => execute(Command::new(own()).env_clear(), block),
            "vfork" => drop(Command::new("sleep").arg(rest).spawn().expect("sleep is everywhere")),
            "bomb" => self.bomb(parse(rest)),
            "chain" => self.chain(parse(rest), block),
            "once" => self.once(rest, block),
            "daemon" => self.daemon(block),
            "hidden" => {
                self.daemon(&[vec!["anew".to_owned(), "{".to_owned()], block.to_vec(), vec!["}".to_owned()]].concat())
            }
            "anew" => anew(block),
            "unless" if std::path::Path::new(rest).exists() => {}
            "unless" => self.run(block),
            "orphans" => (0..parse(fields[0])).for_each(|_| {
                self.daemon(&["sleep:0.01".to_owned()]);
                fields.get(1).into_iter().for_each(|pause| sleep(parse(pause)));
            }),
            _ => assert!(child_memory::step(word, rest, block), "no such step: {step}"),
        }
    }

    fn trap(&mut self, fields: &[&str]) {
        let signal = signal_of(fields[0]);
        let mut blocked = SigSet::empty();
        blocked.add(signal);
        blocked.thread_block().expect("a mask");
        let (file, word) = (fields[1].to_owned(), fields[2].to_owned());
        self.traps.push(Trap { signal, file, word, seconds: parse(fields[3]), code: parse(fields[4]) });
    }

    fn forever(&self) {
        let set: SigSet = self.traps.iter().map(|t| t.signal).collect();
        if self.traps.is_empty() {
            sleep(1e6);
        }
        let got = set.wait().expect("a signal");
        let trap = self.traps.iter().find(|t| t.signal == got).expect("it is one of them");
        append(&trap.file, &trap.word);
        sleep(trap.seconds);
        append(&trap.file, &format!("{} gone", trap.word));
        end(trap.code);
    }

    /// Goes on once the child is where and what it is to be: in its session and group, deaf to what it ignores.
    #[expect(unsafe_code, reason = "the program is to fork, and has one thread when it does")]
    fn fork(&mut self, block: &[String]) {
        let (mut until, settled) = std::io::pipe().expect("a pipe");
        // SAFETY: the child has all that it needs, since there is no other thread that could hold a lock.
        if let ForkResult::Child = unsafe { fork() }.expect("a fork") {
            drop(until);
            let rest = settle(block);
            drop(settled);
            self.run(&rest);
            end(0);
        }
        drop(settled);
        let _ = until.read(&mut [0]);
    }

    /// Each of that many generations doubles, each process in a session of its own and deaf.
    fn bomb(&mut self, generations: usize) {
        for left in (0..generations).rev() {
            self.fork(&["session", "ignore:TERM", &format!("bomb:{left}"), "forever"].map(str::to_owned));
        }
    }

    /// Goes on in a child and ends, that often.
    #[expect(unsafe_code, reason = "the program is to fork, and has one thread when it does")]
    fn chain(&mut self, links: usize, block: &[String]) {
        for _ in 0..links {
            // SAFETY: as above.
            if let ForkResult::Parent { .. } = unsafe { fork() }.expect("a fork") {
                end(0);
            }
        }
        self.run(block);
    }

    /// Does it if nobody has done it before.
    fn once(&mut self, file: &str, block: &[String]) {
        if OpenOptions::new().create_new(true).write(true).open(file).is_ok() {
            self.run(block);
        }
    }

    #[expect(unsafe_code, reason = "the program is to become a daemon, and has one thread when it does")]
    fn daemon(&mut self, block: &[String]) {
        // SAFETY: as above.
        match unsafe { fork() }.expect("a fork") {
            ForkResult::Parent { child } => drop(nix::sys::wait::waitpid(child, None)),
            ForkResult::Child => {
                setsid().expect("a session");
                self.fork(block);
                end(0);
            }
        }
    }
}

fn own() -> std::path::PathBuf {
    std::env::current_exe().expect("a test has a file")
}

fn execute(command: &mut Command, steps: &[String]) {
    let error = command.arg("child").args(steps).exec();
    panic!("it cannot be executed: {error}");
}

/// Forks in another thread, which lives on.
fn in_a_thread(steps: Vec<String>) {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // No other thread holds a lock, since the only other one waits.
        Program::default().fork(&steps);
        done.send(()).expect("somebody waits");
        sleep(1e6);
    });
    wait.recv().expect("it is sent");
}

/// Does those steps of a block that say where a process is and what it ignores; the others are left.
fn settle(block: &[String]) -> Vec<String> {
    let mut depth = 0;
    let (first, rest): (Vec<String>, Vec<String>) = block.iter().cloned().partition(|step| {
        depth += i32::from(step == "{") - i32::from(step == "}");
        depth == 0 && (step.starts_with("ignore:") || matches!(step.as_str(), "session" | "group"))
    });
    Program::default().run(&first);
    rest
}

#[expect(unsafe_code, reason = "ignoring a signal is an unsafe call")]
fn ignore(number: Signal) {
    // SAFETY: no handler is set, so none can run.
    unsafe { signal(number, SigHandler::SigIgn) }.expect("it can be ignored");
}

#[expect(unsafe_code, reason = "restoring a signal is an unsafe call")]
fn die_of(number: Signal) {
    // SAFETY: no handler is set, so none can run. The standard library has its own for SIGSEGV.
    let _ = unsafe { signal(number, SigHandler::SigDfl) };
    raise(number).expect("a signal to itself");
}

fn flood(mebibytes: usize) {
    let line = [b"x".repeat(99), b"\n".to_vec()].concat().repeat(10_486);
    let mut out = std::io::stdout().lock();
    for _ in 0..mebibytes {
        out.write_all(&line).expect("stdout");
    }
}

/// `bus:FILE:MEBIBYTES`: maps a new file of that size and fills it, whether its file system has room or not.
#[expect(unsafe_code, reason = "mapping a file is an unsafe call")]
fn write_beyond(file: &str, size: usize) {
    use std::os::fd::AsRawFd as _;

    let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(file).expect("a file");
    file.set_len(size as u64).expect("a sparse file takes no room");
    let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // The standard library has its own handler.
    // SAFETY: no handler is set; the mapping is new, nobody else has it, and it is as long as the file.
    unsafe {
        let _ = signal(Signal::SIGBUS, SigHandler::SigDfl);
        let start = libc::mmap(std::ptr::null_mut(), size, access, shared, file.as_raw_fd(), 0);
        assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        std::ptr::write_bytes(start.cast::<u8>(), 1, size);
    }
}

fn wait_for(file: &str) {
    wait_until(file, || std::path::Path::new(file).exists());
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    // Longer than a test waits, which may go on as long as something comes.
    let end = Instant::now() + Duration::from_mins(10);
    while !condition() {
        assert!(Instant::now() < end, "{what} did not come");
        sleep(0.005);
    }
}

fn contains(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Becomes a child with these steps and without any variable, so that nothing tells whose it is.
fn anew(steps: &[String]) {
    use std::os::unix::process::CommandExt as _;
    let own = std::env::current_exe().expect("a test has a file");
    let error = std::process::Command::new(own).arg("child").args(steps).env_clear().exec();
    panic!("cannot begin anew: {error}");
}

/// Answers every request with a status.
fn serve(port: u16, status: &str) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap_or_else(|error| {
        eprintln!("cannot bind {port}: {error}");
        end(1)
    });
    let status = status.to_owned();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &status)));
}

/// `churn:RATE:FILE`: starts and ends children until the file is there, RATE of them a second where the machine can do that.
#[expect(unsafe_code, reason = "the program is to fork")]
fn churn(rate: u32, file: &str) {
    let start = Instant::now();
    for number in (0..).take_while(|_| !std::path::Path::new(file).exists()) {
        // SAFETY: the child makes one system call, which ends it.
        match unsafe { fork() }.expect("a fork") {
            ForkResult::Child => unsafe { libc::_exit(0) },
            ForkResult::Parent { child } => drop(nix::sys::wait::waitpid(child, None)),
        }
        std::thread::sleep((Duration::from_secs(1) / rate * number).saturating_sub(start.elapsed()));
    }
}

/// `collector:PORT:FILE[:hangs]`: healthy, and notes in the file what it is asked with POST; or answers that never.
fn collect(fields: &[&str]) {
    let listener = TcpListener::bind(("127.0.0.1", parse(fields[0]))).expect("the port is free");
    let file = fields[1].to_owned();
    let hangs = fields.get(2).is_some();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap_or_default();
            let text = String::from_utf8_lossy(&request[..count]).into_owned();
            let mut words = text.split_ascii_whitespace();
            match (words.next(), words.next()) {
                (Some("POST") | None, _) | (_, Some("/metrics")) if hangs => {
                    held.push(stream);
                    continue;
                }
                (Some("POST"), Some(path)) => append(&file, path),
                _ => {}
            }
            let body = "otelcol_receiver_accepted_spans_total{receiver=\"otlp\"} 3\n";
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
}

/// `until:PORT:FILE`: 503 until the file is there, then 200.
fn serve_until(fields: &[&str]) {
    let listener = TcpListener::bind(("127.0.0.1", parse(fields[0]))).expect("the port is free");
    let file = fields[1].to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, if std::path::Path::new(&file).exists() { "200" } else { "503" });
        }
    });
}
