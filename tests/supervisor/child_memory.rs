//! Steps of the program about memory, CPU time and the shapes that a process can have.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use crate::child;

/// Does a step of this page; whether it is one.
pub fn step(word: &str, rest: &str, block: &[String]) -> bool {
    let number = || rest.parse::<usize>().unwrap_or_else(|_| panic!("bad value in a step: {rest}"));
    match word {
        "memfd" => share(number() << 20),
        "regions" => divide(number()),
        "sparse" => reserve(number() << 30),
        "burn" => burn(Duration::from_secs_f64(rest.parse().expect("seconds"))),
        "name" => rename(&rest.replace('_', " ")),
        "run" => run_and_wait(block),
        "beside" => on_a_thread(block),
        "leave" => leave_the_first_thread(),
        "borrow" => drop(std::thread::spawn(fork_without_memory)),
        _ => return false,
    }
    true
}

/// Memory that is shared with whoever is forked from here on.
#[expect(unsafe_code, reason = "memory that is shared by name is mapped by hand")]
fn share(length: usize) {
    // SAFETY: a fresh descriptor and a fresh mapping of its whole length, which lives as long as the process.
    unsafe {
        let descriptor = libc::memfd_create(c"shared".as_ptr(), libc::MFD_CLOEXEC);
        assert!(descriptor >= 0);
        let file = std::fs::File::from(OwnedFd::from_raw_fd(descriptor));
        file.set_len(length as u64).expect("memory");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert!(mapped != libc::MAP_FAILED);
        mapped.cast::<u8>().write_bytes(1, length);
    }
}

/// So many mappings of one page each, with holes between them so that they stay apart.
#[expect(unsafe_code, reason = "no library maps pages one by one")]
fn divide(count: usize) {
    const PAGE: usize = 4096;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping, of which each second page is made writable, and written.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), 2 * count * PAGE, libc::PROT_NONE, flags, -1, 0);
        assert!(start != libc::MAP_FAILED);
        for number in 0..count {
            let page = start.cast::<u8>().add(2 * number * PAGE);
            assert_eq!(libc::mprotect(page.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE), 0);
            page.write(1);
        }
    }
}

/// Addresses, and no memory.
#[expect(unsafe_code, reason = "no library reserves addresses alone")]
fn reserve(length: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping that nobody touches.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
    assert!(mapped != libc::MAP_FAILED);
}

/// Computes until this process has taken so much CPU time.
fn burn(time: Duration) {
    let own = || {
        let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("of itself");
        let [user, system] = [usage.user_time(), usage.system_time()];
        let seconds = u64::try_from(user.tv_sec() + system.tv_sec()).expect("not negative");
        let micros = u64::try_from(user.tv_usec() + system.tv_usec()).expect("not negative");
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    let start = own();
    while own().saturating_sub(start) < time {
        std::hint::black_box((0..100_000_u64).map(std::hint::black_box).sum::<u64>());
    }
}

fn rename(name: &str) {
    nix::sys::prctl::set_name(&CString::new(name).expect("no zero in it")).expect("prctl");
}

#[expect(unsafe_code, reason = "the program is to fork")]
fn run_and_wait(block: &[String]) {
    // SAFETY: the child has all that it needs: where there are other threads, they sleep or wait for connections.
    match unsafe { fork() }.expect("a fork") {
        ForkResult::Parent { child } => drop(waitpid(child, None)),
        ForkResult::Child => {
            child::run(block);
            child::end(0);
        }
    }
}

fn on_a_thread(block: &[String]) {
    let block = block.to_vec();
    std::thread::spawn(move || child::run(&block));
}

/// The other threads go on.
#[expect(unsafe_code, reason = "only the kernel's own call ends one thread without the others")]
fn leave_the_first_thread() {
    // SAFETY: the call does not return, and this thread's stack stays mapped.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// A child that has its parent's memory and never executes anything. Only the thread that forked waits for it.
#[expect(unsafe_code, deprecated, reason = "this is the moment that is tested, made long")]
fn fork_without_memory() {
    // SAFETY: the child makes one system call again and again, and never returns from here.
    unsafe {
        if libc::vfork() == 0 {
            loop {
                libc::syscall(libc::SYS_pause);
            }
        }
    }
}
