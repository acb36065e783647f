//! When to ask again.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::ask::{Bad, Effort, Prober};
use super::lookout::wait_for_listener;

const SHORTEST: Duration = Duration::from_millis(10);
const USUAL: Duration = Duration::from_millis(40);
const LONGEST: Duration = Duration::from_secs(1);
/// A question that has been open for that long is itself the answer when the time is over.
const OPEN: Duration = Duration::from_secs(1);
/// As long as has been waited so far, between these, the machine is watched instead of asking a server that was not there. Then
/// it is asked anew: its name may have another address.
const DESERTED: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];

/// How long to wait between two questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// A tenth of the time waited so far, between 10 and 40 ms: the start of a server is noticed at once, and CPU time is
    /// spent as by one curl in five seconds. While nobody listens on this machine no more than the kernel is asked. A server
    /// that answers for more than a minute without being ready is asked less often, once a second in the end, since it may
    /// write a line for each question; and so is what costs much to ask.
    Growing,
    /// Always the same.
    Fixed(Duration),
}

impl Schedule {
    /// The pause after `waited` and a bad answer that took that much.
    #[must_use]
    pub fn pause(self, waited: Duration, effort: Effort) -> Duration {
        let usual = (waited / 10).clamp(SHORTEST, USUAL);
        match (self, effort) {
            (Self::Fixed(interval), _) => interval.max(Duration::from_millis(1)),
            (Self::Growing, Effort::None) => usual,
            (Self::Growing, Effort::Little) => (waited / 1500).clamp(usual, LONGEST),
            (Self::Growing, Effort::Much) => (waited / 50).clamp(2 * SHORTEST, LONGEST),
        }
    }
}

/// Asks until the answer is good and `accept` agrees with it, which gets the address that gave it. `said` gets each bad
/// answer.
///
/// # Errors
/// The last answer, when `limit` is over.
pub async fn wait_until_good<A: Future<Output = Result<(), String>>>(
    prober: &mut Prober,
    schedule: Schedule,
    limit: Duration,
    mut accept: impl FnMut(Option<SocketAddr>) -> A,
    mut said: impl FnMut(Duration, &str),
) -> Result<(), Bad> {
    let start = Instant::now();
    let end = start.checked_add(limit).unwrap_or_else(|| start + Duration::from_hours(24 * 365));
    let mut last: Option<Bad> = None;
    let unanswered = |last: Option<Bad>, asked: Instant| match last {
        Some(last) if asked.elapsed() < OPEN => last,
        _ => Bad::answer(format!("no answer within {:.1} s", asked.elapsed().as_secs_f64())),
    };
    loop {
        let asked = Instant::now();
        let bad = match question(prober, &mut accept, end).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(bad)) => bad,
            Err(_) => return Err(unanswered(last, asked)),
        };
        let waited = start.elapsed();
        said(waited, &bad.text);
        let pause = schedule.pause(waited, bad.effort);
        last = Some(bad);
        let next = (Instant::now() + pause).min(end);
        if matches!(schedule, Schedule::Fixed(_)) || !wait_for_change(prober, start, end).await {
            sleep_until(next).await;
        }
        if Instant::now() >= end {
            // One more question at the very end, so that a limit below the interval is not cut short.
            let asked = Instant::now();
            let most = USUAL.max(prober.limit().min(LONGEST));
            return match question(prober, &mut accept, asked + most).await {
                Ok(answer) => answer,
                Err(_) => Err(unanswered(last, asked)),
            };
        }
    }
}

/// Waits until a question may get another answer than that nobody is there; whether that can be known.
async fn wait_for_change(prober: &Prober, start: Instant, end: Instant) -> bool {
    let deserted = prober.deserted();
    let [shortest, longest] = DESERTED;
    let until = end.min(Instant::now() + start.elapsed().clamp(shortest, longest));
    !deserted.is_empty() && wait_for_listener(deserted, start.into_std(), until.into_std()).await.is_ok()
}

/// Asks once; one who may not answer has given a bad answer. The error is that there was none by `end`.
async fn question<A: Future<Output = Result<(), String>>>(
    prober: &mut Prober,
    accept: &mut impl FnMut(Option<SocketAddr>) -> A,
    end: Instant,
) -> Result<Result<(), Bad>, Elapsed> {
    Ok(match timeout_at(end, prober.ask()).await? {
        // Whether it counts is found out here, at no cost of the server's.
        Ok(answered) => accept(answered).await.map_err(Bad::costly),
        Err(bad) => Err(bad),
    })
}

/// Asks each `interval` until `threshold` answers in a row were bad; gives the last of them. Nobody is asked at once:
/// this is for what has just been found to be good.
pub async fn wait_until_hung<A: Future<Output = Result<(), String>>>(
    prober: &mut Prober,
    interval: Duration,
    threshold: u32,
    mut accept: impl FnMut(Option<SocketAddr>) -> A,
) -> String {
    let mut failures = 0;
    loop {
        sleep(interval.max(Duration::from_millis(1))).await;
        let answer = match prober.ask().await {
            Ok(answered) => accept(answered).await,
            Err(bad) => Err(bad.text),
        };
        match answer {
            Ok(()) => failures = 0,
            Err(answer) => {
                failures += 1;
                if failures >= threshold {
                    return answer;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::{Schedule, wait_until_good};
    use crate::health::{Effort, Prober, Target, TargetKind};

    #[test]
    fn pauses_are_short_where_nobody_is_disturbed_and_grow_where_somebody_is() {
        let pauses = |effort| {
            let waited = [0, 200, 1_000, 60_000, 300_000, 5_000_000];
            waited.map(|ms| Schedule::Growing.pause(Duration::from_millis(ms), effort).as_millis())
        };
        assert_eq!(pauses(Effort::None), [10, 20, 40, 40, 40, 40]);
        assert_eq!(pauses(Effort::Little), [10, 20, 40, 40, 200, 1000]);
        assert_eq!(pauses(Effort::Much), [20, 20, 20, 1000, 1000, 1000]);
        let fixed = Schedule::Fixed(Duration::from_secs(7));
        assert_eq!(fixed.pause(Duration::from_hours(1), Effort::None).as_secs(), 7);
    }

    #[tokio::test]
    async fn the_last_answer_is_kept_when_the_limit_is_over() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let port = listener.local_addr().expect("it is bound").port();
        let target = Target {
            kind: TargetKind::Http {
                host: "127.0.0.1".into(),
                port,
                paths: vec!["/".into()],
                statuses: vec![(200, 299)],
            },
            request_timeout: Duration::from_mins(1),
        };
        let limit = Duration::from_millis(150);
        let mut asked = 0;
        let accept = |_| async { Ok(()) };
        // Connected by the kernel, and never answered.
        let mut prober = Prober::new(target.clone());
        let ended = wait_until_good(&mut prober, Schedule::Growing, limit, accept, |_, _| asked += 1).await;
        assert!(ended.is_err_and(|bad| bad.text.starts_with("no answer within ") && !bad.refused));
        assert_eq!(asked, 0);
        drop(listener);
        let mut prober = Prober::new(target);
        let ended = wait_until_good(&mut prober, Schedule::Growing, limit, accept, |_, _| asked += 1).await;
        assert!(ended.is_err_and(|bad| bad.text == "connection refused" && bad.refused));
        assert_eq!(prober.asked(), [([127, 0, 0, 1], port).into()]);
        assert_eq!(asked, 1);
    }
}
