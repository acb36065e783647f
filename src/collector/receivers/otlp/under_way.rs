//! The requests that are under way, and how long a stop waits for those that are not whole.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Once the receiver stops, a client may send nothing of its request for this time; then it is waited for no longer. A
/// client that hangs, or whose host is gone, costs a stop no more than that.
const STALLED: Duration = Duration::from_secs(2);

/// So long an answer may take to the client's kernel.
const ANSWERED: Duration = Duration::from_millis(250);

/// Counts requests from their heads to their answers.
pub(super) struct UnderWay {
    stop: CancellationToken,
    count: watch::Sender<usize>,
}

impl UnderWay {
    /// Of a receiver that stops with `stop`.
    pub fn new(stop: CancellationToken) -> Self {
        Self { stop, count: watch::Sender::new(0) }
    }

    /// A request; it ends when what is given is dropped.
    pub fn begin(&self) -> impl Drop + use<'_> {
        self.count.send_modify(|count| *count += 1);
        Request(&self.count)
    }

    /// What comes next of a request; `None` if the receiver stops and nothing comes.
    pub async fn next<T>(&self, next: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            next = next => Some(next),
            () = async { self.stop.cancelled().await; sleep(STALLED).await } => None,
        }
    }

    /// Ends when only those are left of whom nothing can be expected: no request is under way, and the time for the rest of
    /// one is over. To be called when the receiver stops.
    pub async fn nothing_to_expect(&self) {
        sleep(STALLED).await;
        self.answered().await;
    }

    /// Ends when all requests are answered, as far as one can know.
    pub async fn answered(&self) {
        // The sender is there as long as this is.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
        sleep(ANSWERED).await;
    }
}

struct Request<'a>(&'a watch::Sender<usize>);

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
