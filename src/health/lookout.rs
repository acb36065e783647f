//! Waiting until somebody listens on this machine.
//!
//! Asked again and again, a server that is not there yet costs a connection that is refused, and each wait the timer, the
//! events and the tasks of the runtime. One thread does it for all who wait, by a look into the kernel's table of
//! listeners: most of what a look costs is the wake-up, and looks that are due at nearly the same time share it. What is
//! forwarded elsewhere has no listener here, so now and then a connection is tried. The thread ends when nobody has waited for
//! a while.

use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, getsockopt, socket, sockopt};
use tokio::sync::oneshot;

use crate::procfs::ListenerQuery;

const SHORTEST: Duration = Duration::from_millis(10);
/// Noticing takes half of a pause on average: with this, less than a hundredth of what a loop of curl and `sleep 5` takes, and
/// less CPU time than that takes too.
const LONGEST: Duration = Duration::from_millis(35);
/// For a tenth of the time waited so far, between these, the table is believed before a connection is tried.
const BELIEVED: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Looks that are due within that time are one.
const TOGETHER: Duration = Duration::from_millis(4);
/// How long the thread stays when nobody waits: who has asked a server in between is soon back.
const LINGER: Duration = Duration::from_secs(3);

/// Somebody who waits.
struct Wait {
    addresses: Vec<SocketAddr>,
    /// When all of his waiting began.
    since: Instant,
    due: Instant,
    /// When a connection is tried.
    trial: Instant,
    until: Instant,
    /// Until he is told.
    over: Option<oneshot::Sender<()>>,
}

impl Wait {
    /// A tenth of the time waited so far, between 10 and 35 ms.
    fn put_off(&mut self, now: Instant) {
        let pause = (now.saturating_duration_since(self.since) / 10).clamp(SHORTEST, LONGEST);
        self.due = (now + pause).min(self.until);
    }

    fn put_off_trial(&mut self, now: Instant) {
        let [shortest, longest] = BELIEVED;
        self.trial = now + (now.saturating_duration_since(self.since) / 10).clamp(shortest, longest);
    }

    /// Looks if it is time, and says whether he waits on.
    fn look(&mut self, now: Instant, query: &mut ListenerQuery) -> bool {
        if self.due > now + TOGETHER {
            return true;
        }
        // What the kernel does not say is found out by asking there.
        if now >= self.until
            || self.addresses.iter().any(|address| query.listens(*address) != Some(false))
            || (now >= self.trial && !self.addresses.iter().all(|address| refuses(*address)))
        {
            // One who has given up needs no answer.
            let _ = self.over.take().map(|over| over.send(()));
            return false;
        }
        if now >= self.trial {
            self.put_off_trial(now);
        }
        self.put_off(now);
        self.over.as_ref().is_some_and(|over| !over.is_closed())
    }
}

/// Whether a connection to an address of this machine is refused at once: what takes longer, or fails in another way, is to
/// be waited for by somebody who has the time.
fn refuses(address: SocketAddr) -> bool {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let Ok(socket) = socket(family, SockType::Stream, flags, None) else { return false };
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(address)) {
        // The answer of this machine is there already.
        Err(Errno::EINPROGRESS) => getsockopt(&socket, sockopt::SocketError) == Ok(Errno::ECONNREFUSED as i32),
        Err(error) => error == Errno::ECONNREFUSED,
        Ok(()) => false,
    }
}

/// All who wait.
struct Waits {
    waits: Vec<Wait>,
    /// Whether there is a thread.
    looked_for: bool,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { waits: Vec::new(), looked_for: false });
static ONE_MORE: Condvar = Condvar::new();

/// Waits until somebody listens at one of these addresses of this machine, or until `until`; not less than 10 ms, so that
/// one who asks whenever this is over asks in peace. `since` is when all the waiting began: looks get rarer with it.
///
/// # Errors
/// The kernel cannot be asked, or there can be no thread.
pub(super) async fn wait_for_listener(addresses: &[SocketAddr], since: Instant, until: Instant) -> Result<(), ()> {
    let now = Instant::now();
    let (over, is_over) = oneshot::channel();
    let mut wait = Wait { addresses: addresses.to_vec(), since, due: now, trial: now, until, over: Some(over) };
    wait.put_off(now);
    wait.put_off_trial(now);
    add(wait)?;
    is_over.await.map_err(drop)
}

fn add(wait: Wait) -> Result<(), ()> {
    let mut all = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
    if !all.looked_for {
        let query = ListenerQuery::open().ok_or(())?;
        let look = move || look_out(query);
        thread::Builder::new().name("lookout".into()).stack_size(128 * 1024).spawn(look).map_err(drop)?;
        all.looked_for = true;
    }
    all.waits.push(wait);
    ONE_MORE.notify_one();
    Ok(())
}

fn look_out(mut query: ListenerQuery) {
    let mut all = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let now = Instant::now();
        all.waits.retain_mut(|wait| wait.look(now, &mut query));
        let next = all.waits.iter().map(|wait| wait.due).min();
        let patience = next.map_or(LINGER, |due| due.saturating_duration_since(now));
        let (woken, timeout) = ONE_MORE.wait_timeout(all, patience).unwrap_or_else(PoisonError::into_inner);
        all = woken;
        if timeout.timed_out() && all.waits.is_empty() {
            all.looked_for = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::time::{Duration, Instant};

    use super::{refuses, wait_for_listener};
    use crate::procfs::ListenerQuery;

    const LONG: Duration = Duration::from_mins(1);

    /// An address where nobody listens.
    fn free() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
    }

    #[tokio::test]
    async fn each_who_waits_is_told_of_his_own_listener_or_that_his_time_is_over() {
        if ListenerQuery::open().is_none() {
            return;
        }
        let start = Instant::now();
        let (never, soon) = (free(), free());
        let short = Duration::from_millis(60);
        let (one, both) = ([never], [never, soon]);
        let late = wait_for_listener(&one, start, start + short);
        let found = async {
            let opened = async {
                tokio::time::sleep(short).await;
                TcpListener::bind(soon).expect("nobody else has taken it")
            };
            tokio::join!(wait_for_listener(&both, start, start + LONG), opened)
        };
        let given_up = tokio::time::timeout(short, wait_for_listener(&one, start, start + LONG));
        let (late, (found, _listener), given_up) = tokio::join!(late, found, given_up);
        assert_eq!((late, found), (Ok(()), Ok(())));
        assert!(given_up.is_err());
        assert!(start.elapsed() >= short && start.elapsed() < LONG);
        // It is there already.
        assert_eq!(wait_for_listener(&[soon], start, Instant::now() + LONG).await, Ok(()));
    }

    #[test]
    fn a_connection_is_refused_where_nobody_listens() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let address = listener.local_addr().expect("it is bound");
            assert!(!refuses(address), "{address}");
            drop(listener);
            let end = Instant::now() + LONG;
            // A child that another test forks at this moment holds it until its exec.
            while !refuses(address) {
                assert!(Instant::now() < end, "{address}: somebody still listens");
                std::thread::yield_now();
            }
        }
    }
}
