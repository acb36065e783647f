//! When to ask again.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::ask::{Target, ask};

const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// How long to wait between two questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// A fiftieth of the time waited so far, between 20 ms and 1 s: readiness is noticed late by a fiftieth at most,
    /// and a long wait costs next to nothing.
    Growing,
    /// Always the same.
    Fixed(Duration),
}

impl Schedule {
    /// The pause after `waited`.
    #[must_use]
    pub fn pause(self, waited: Duration) -> Duration {
        match self {
            Self::Growing => (waited / 50).clamp(SHORTEST, LONGEST),
            Self::Fixed(interval) => interval.max(Duration::from_millis(1)),
        }
    }
}

/// Asks until the answer is good and `accept` agrees with it. `said` gets each bad answer.
///
/// # Errors
/// The last answer, when `limit` is over.
pub async fn wait_until_good<A: Future<Output = Result<(), String>>>(
    target: &Target,
    schedule: Schedule,
    limit: Duration,
    mut accept: impl FnMut() -> A,
    mut said: impl FnMut(Duration, &str),
) -> Result<(), String> {
    let mut question = || {
        let accepted = accept();
        async move {
            ask(target).await?;
            accepted.await
        }
    };
    let start = Instant::now();
    let end = start.checked_add(limit).unwrap_or_else(|| start + Duration::from_hours(24 * 365));
    let mut last = "no answer yet".to_owned();
    loop {
        match timeout_at(end, question()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(answer)) => last = answer,
            Err(_) => return Err(last),
        }
        let waited = start.elapsed();
        said(waited, &last);
        let pause = schedule.pause(waited);
        if Instant::now() + pause >= end {
            // One more question at the very end, so that a limit below the interval is not cut short.
            tokio::time::sleep_until(end).await;
            let limit = SHORTEST.max(target.request_timeout.min(LONGEST));
            return tokio::time::timeout(limit, question()).await.unwrap_or(Err(last));
        }
        sleep(pause).await;
    }
}

/// Asks each `interval` until `threshold` answers in a row were bad; gives the last of them. Nobody is asked at once:
/// this is for what has just been found to be good.
pub async fn wait_until_hung(target: &Target, interval: Duration, threshold: u32) -> String {
    let mut failures = 0;
    loop {
        sleep(interval.max(Duration::from_millis(1))).await;
        match ask(target).await {
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

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::{Schedule, wait_until_good};
    use crate::health::{Target, TargetKind, ask};

    /// Answers every request with what its path says: `/204` with 204.
    async fn server() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let port = listener.local_addr().expect("it is bound").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    let count = stream.read(&mut request).await.unwrap_or_default();
                    let text = String::from_utf8_lossy(&request[..count]).into_owned();
                    let status = text.strip_prefix("GET /").map_or("405", |rest| &rest[..3]).to_owned();
                    let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        port
    }

    fn target(kind: TargetKind) -> Target {
        Target { kind, request_timeout: Duration::from_secs(5) }
    }

    fn http(host: &str, port: u16, paths: &[&str], statuses: &[(u16, u16)]) -> Target {
        let paths = paths.iter().map(|p| (*p).to_owned()).collect();
        target(TargetKind::Http { host: host.into(), port, paths, statuses: statuses.to_vec() })
    }

    #[test]
    fn pauses_grow_with_the_wait() {
        let pauses = [0, 500, 5_000, 500_000].map(|ms| Schedule::Growing.pause(Duration::from_millis(ms)).as_millis());
        assert_eq!(pauses, [20, 20, 100, 1000]);
    }

    #[tokio::test]
    async fn the_first_path_that_is_there_decides_and_statuses_are_ranges() {
        let port = server().await;
        let good = [(200, 299)];
        assert_eq!(ask(&http("127.0.0.1", port, &["/204"], &good)).await, Ok(()));
        assert_eq!(ask(&http("localhost", port, &["/404", "/405", "/200"], &good)).await, Ok(()));
        assert_eq!(ask(&http("127.0.0.1", port, &["/404", "/503", "/200"], &good)).await, Err("503 at /503".into()));
        assert_eq!(ask(&http("127.0.0.1", port, &["/404"], &good)).await, Err("404 at /404".into()));
        assert_eq!(ask(&http("127.0.0.1", port, &["/404"], &[(100, 599)])).await, Ok(()));
        assert_eq!(ask(&target(TargetKind::Tcp { host: "localhost".into(), port })).await, Ok(()));
    }

    #[tokio::test]
    async fn the_last_answer_is_kept_when_the_limit_is_over() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let mut asked = 0;
        let refused = http("127.0.0.1", port, &["/"], &[(200, 299)]);
        let limit = Duration::from_millis(100);
        let ended = wait_until_good(&refused, Schedule::Growing, limit, || async { Ok(()) }, |_, _| asked += 1).await;
        assert_eq!(ended, Err("connection refused".into()));
        assert!(asked >= 2);
    }

    #[tokio::test]
    async fn grpc_tells_serving_from_not_serving() {
        let (reporter, service) = tonic_health::server::health_reporter();
        reporter.set_service_status("up", tonic_health::ServingStatus::Serving).await;
        reporter.set_service_status("down", tonic_health::ServingStatus::NotServing).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let port = listener.local_addr().expect("it is bound").port();
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
        let question =
            |service: &str| target(TargetKind::Grpc { host: "localhost".into(), port, service: service.into() });
        assert_eq!(ask(&question("up")).await, Ok(()));
        assert_eq!(ask(&question("down")).await, Err("NOT_SERVING".into()));
        assert_eq!(ask(&question("nope")).await, Err("the server knows no service `nope`".into()));
    }
}
