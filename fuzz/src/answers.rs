//! What endpoints answer.

use gymrun::collector::fuzzing::{grpc_answer, http_answer};
use gymrun::otlp::Signal;

const SECRET: &str = "s3cr3t-0f-the-fuzz";

/// The head of an HTTP message and its body: a status, headers line by line, an empty line, the rest. Read as the answer
/// to a request of either protocol.
///
/// What is said of it is one line of bounded length that shows no secret.
pub fn answers(input: &[u8]) {
    let end = input.windows(2).position(|two| two == b"\n\n").unwrap_or(input.len());
    let body = input.get(end + 2..).unwrap_or_default();
    let Ok(head) = std::str::from_utf8(&input[..end]) else { return };
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.parse().ok()).unwrap_or(200);
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let said = http_answer(Signal::Traces, status, &headers, body, SECRET);
    let ended = grpc_answer(&headers, body, SECRET);
    for said in [said, ended] {
        assert!(said.len() < 1000 && !said.contains(char::is_control), "{said:?}");
        assert!(!said.contains(SECRET));
    }
}
