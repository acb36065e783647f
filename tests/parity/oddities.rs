//! Requests that ordinary clients do not make: HTTP and gRPC as some proxy, script or scanner speaks them. What is not the
//! same on both sides stands in `docs/collector-differences.md`, with a test in `what_differs`.

use gymrun::otlp::Signal;

use super::bed::{both, records};
use super::otlp::plain;
use super::rpc::{OddCall, export};

const BODY: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"n"}]}]}]}"#;
const POST: &str = "POST /v1/traces HTTP/1.1";
const JSON: &str = "Content-Type: application/json";
const HOST: &str = "Host: x";
const CLOSE: &str = "Connection: close";

/// Bytes of a request; a length stands for itself.
fn request(lines: &[&str], body: &str) -> Vec<u8> {
    format!("{}\r\n\r\n{body}", lines.join("\r\n")).into_bytes()
}

/// With the body and its length.
fn sized(lines: &[&str]) -> Vec<u8> {
    let length = format!("Content-Length: {}", BODY.len());
    let mut lines = lines.to_vec();
    lines.extend([length.as_str(), CLOSE]);
    request(&lines, BODY)
}

fn chunked(lines: &[&str], chunks: &str) -> Vec<u8> {
    let mut all = vec![POST, HOST, JSON, "Transfer-Encoding: chunked", CLOSE];
    all.extend(lines);
    request(&all, chunks)
}

fn http_cases() -> Vec<(&'static str, Vec<u8>)> {
    let chunk = format!("{:x}\r\n{BODY}\r\n0\r\n", BODY.len());
    let mut cases = vec![
        ("json with a charset", sized(&[POST, HOST, "Content-Type: application/json; charset=utf-8"])),
        ("capitals", sized(&[POST, HOST, "Content-Type: APPLICATION/JSON;charset=UTF-8"])),
        ("a list of types", sized(&[POST, HOST, "Content-Type: application/json, application/json"])),
        ("blanks around the type", sized(&[POST, HOST, "Content-Type:   application/json  "])),
        ("two types", sized(&[POST, HOST, JSON, "Content-Type: application/x-protobuf"])),
        ("an empty type", sized(&[POST, HOST, "Content-Type: "])),
        ("no type", sized(&[POST, HOST])),
        ("grpc's type", sized(&[POST, HOST, "Content-Type: application/grpc"])),
        ("no host", sized(&[POST, JSON])),
        ("two hosts", sized(&[POST, JSON, HOST, "Host: y"])),
        ("an empty host", sized(&[POST, JSON, "Host: "])),
        ("a host with a blank", sized(&[POST, JSON, "Host: a b"])),
        ("a host with a port", sized(&[POST, JSON, "Host: [::1]:4318"])),
        ("1.0", sized(&["POST /v1/traces HTTP/1.0", HOST, JSON])),
        ("1.0 without a host", sized(&["POST /v1/traces HTTP/1.0", JSON])),
        ("1.0 without a length", request(&["POST /v1/traces HTTP/1.0", JSON], BODY)),
        ("an absolute path", sized(&["POST http://x/v1/traces HTTP/1.1", HOST, JSON])),
        ("a query", sized(&["POST /v1/traces?a=b HTTP/1.1", HOST, JSON])),
        ("a slash at the end", sized(&["POST /v1/traces/ HTTP/1.1", HOST, JSON])),
        ("half an escape", sized(&["POST /v1/%zz HTTP/1.1", HOST, JSON])),
        ("an escape", sized(&["POST /v1/%74races HTTP/1.1", HOST, JSON])),
        ("another path", sized(&["POST /nope HTTP/1.1", HOST, JSON])),
        ("expect", sized(&[POST, HOST, JSON, "Expect: 100-continue"])),
        ("expect, in capitals", sized(&[POST, HOST, JSON, "Expect: 100-CONTINUE"])),
        ("expect on another path", sized(&["POST /nope HTTP/1.1", HOST, JSON, "Expect: 100-continue"])),
        ("expect something else", sized(&[POST, HOST, JSON, "Expect: nothing"])),
        ("chunks", chunked(&[], &format!("{chunk}\r\n"))),
        ("chunks with trailers", chunked(&["Trailer: X"], &format!("{chunk}X: y\r\n\r\n"))),
        ("a chunk of no length", chunked(&[], "zz\r\n{}\r\n0\r\n\r\n")),
        ("chunks and a length", chunked(&["Content-Length: 7"], &format!("{chunk}\r\n"))),
        ("gzip as a transfer", sized(&[POST, HOST, JSON, "Transfer-Encoding: gzip, chunked"])),
        ("a length twice", sized(&[POST, HOST, JSON, &format!("Content-Length: {}", BODY.len())])),
        ("no length", request(&[POST, HOST, JSON, CLOSE], "")),
        ("an empty encoding", sized(&[POST, HOST, JSON, "Content-Encoding: "])),
        ("two encodings", sized(&[POST, HOST, JSON, "Content-Encoding: gzip", "Content-Encoding: gzip"])),
        ("line feeds alone", String::from_utf8(sized(&[POST, HOST, JSON])).expect("text").replace("\r\n", "\n").into()),
        ("no ASCII in a header", [sized(&[POST, HOST, JSON, "X: \u{e9}"])].concat()),
        ("two requests at once", {
            let keep = format!("Content-Length: {}", BODY.len());
            [request(&[POST, HOST, JSON, &keep], BODY), sized(&[POST, HOST, JSON])].concat()
        }),
        ("an upgrade", sized(&[POST, HOST, JSON, "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"])),
        ("options of all", request(&["OPTIONS * HTTP/1.1", HOST, "Content-Length: 0", CLOSE], "")),
        ("connect", request(&["CONNECT x:80 HTTP/1.1", HOST, "Content-Length: 0", CLOSE], "")),
        ("a preflight", {
            let lines =
                ["OPTIONS /v1/traces HTTP/1.1", HOST, "Origin: http://a", "Access-Control-Request-Method: POST", CLOSE];
            request(&lines, "")
        }),
    ];
    for line in [
        "HEAD /v1/traces HTTP/1.1",
        "GET /v1/traces HTTP/1.1",
        "PUT /v1/traces HTTP/1.1",
        "OPTIONS /v1/traces HTTP/1.1",
        "TRACE /v1/traces HTTP/1.1",
        "post /v1/traces HTTP/1.1",
        "FOO /v1/traces HTTP/1.1",
    ] {
        cases.push((line, request(&[line, HOST, JSON, "Content-Length: 0", CLOSE], "")));
    }
    let many: Vec<String> = (0..90).map(|index| format!("X-{index}: v")).collect();
    let mut lines = vec![POST, HOST, JSON];
    lines.extend(many.iter().map(String::as_str));
    cases.push(("ninety headers", sized(&lines)));
    let long = format!("X: {}", "v".repeat(300_000));
    cases.push(("a header of 300 kB", sized(&[POST, HOST, JSON, &long])));
    cases
}

#[tokio::test]
async fn http_as_few_speak_it() {
    both(plain(), async |side| {
        for (name, bytes) in http_cases() {
            side.raw_http(name, &bytes).await;
        }
        side.stop().await;
        side.raw_output("x.jsonl");
    })
    .await;
}

/// A trace request of one span.
fn message() -> Vec<u8> {
    b"\x0a\x08\x12\x06\x12\x04\x2a\x02ab".to_vec()
}

fn frame(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![flag];
    frame.extend_from_slice(&u32::try_from(message.len()).expect("small").to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

fn call(name: &'static str) -> OddCall {
    OddCall {
        name,
        method: "POST",
        path: export(Signal::Traces),
        content_type: Some("application/grpc"),
        headers: Vec::new(),
        body: frame(0, &message()),
        with_text: true,
    }
}

fn rpc_cases() -> Vec<OddCall> {
    let body = |name, body: Vec<u8>| OddCall { body, ..call(name) };
    let mut cases = vec![
        call("good"),
        body("no message", Vec::new()),
        body("half a prefix", vec![0, 0, 0]),
        body("a prefix alone", frame(0, &message())[..5].to_vec()),
        body("half a message", frame(0, &message())[..9].to_vec()),
        body("an empty message", frame(0, b"")),
        body("packed, it says, and does not say how", frame(1, &message())),
        body("another flag", frame(2, &message())),
        body("a length beyond the limit", [&[0, 0, 0x50, 0, 0][..], b"abc"].concat()),
        body("the greatest length", [&[0, 255, 255, 255, 255][..], b"abc"].concat()),
        OddCall { with_text: false, ..body("no protobuf", frame(0, b"\x0a\x05\x01")) },
        OddCall { with_text: false, ..body("an id of two bytes", frame(0, b"\x0a\x08\x12\x06\x12\x04\x0a\x02ab")) },
        body("fields that nobody knows", frame(0, b"\x98\x06\x01")),
    ];
    for encoding in ["", "identity", "nope", "GZIP", "gzip, identity"] {
        for flag in [0, 1] {
            let headers = vec![("grpc-encoding", encoding)];
            cases.push(OddCall { headers, body: frame(flag, &message()), ..call("an encoding") });
        }
    }
    let packed = |name, message: &[u8]| OddCall {
        headers: vec![("grpc-encoding", "gzip")],
        with_text: false,
        ..body(name, frame(1, message))
    };
    let gzip = super::encodings::gzip(&message());
    cases.extend([
        packed("gzip", &gzip),
        packed("half of gzip", &gzip[..gzip.len() - 4]),
        packed("no gzip", &message()),
        packed("no bytes of gzip", b""),
        packed("gzip with something behind it", &[&gzip[..], b"xx"].concat()),
    ]);
    for content_type in [
        "application/grpc+proto",
        "application/grpc+json",
        "application/grpc+x",
        "application/grpc+",
        "application/grpc;charset=utf-8",
        "application/grpc; proto",
        "application/grpc-web",
        "application/grpc-web+proto",
        "application/grpcx",
        "Application/GRPC",
        "application/json",
        "application/x-protobuf",
        "",
    ] {
        cases.push(OddCall { content_type: Some(content_type), ..call(content_type) });
    }
    cases.push(OddCall { content_type: None, ..call("no type") });
    for path in [
        "/opentelemetry.proto.collector.trace.v1.TraceService/Exports",
        "/opentelemetry.proto.collector.trace.v1.TraceService/",
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export/x",
        "/opentelemetry.proto.collector.trace.v1.TraceService/Expor%74",
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export?a=b",
        "//opentelemetry.proto.collector.trace.v1.TraceService/Export",
        "/opentelemetry.proto.collector.trace.v1.traceservice/export",
        "/a.B/Export",
        "/Export",
        "/",
    ] {
        cases.push(OddCall { path, ..call(path) });
        cases.push(OddCall { path, body: Vec::new(), ..call(path) });
    }
    for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        cases.push(OddCall { method, ..call(method) });
    }
    // An hour and more: long enough.
    for timeout in ["1H", "99999999S", "99999999H", "x", "5x", "-1S", "123456789S", "", "1 S", "1.5S"] {
        let is_good = timeout.len() < 10 && timeout.trim_end_matches(['H', 'S']).parse::<u32>().is_ok();
        let headers = vec![("grpc-timeout", timeout)];
        cases.push(OddCall { headers, with_text: is_good, ..call(timeout) });
    }
    for (name, value) in [
        ("te", "trailers"),
        ("te", "x"),
        ("grpc-accept-encoding", "nope"),
        ("grpc-message-type", "x"),
        ("grpc-status", "3"),
        ("user-agent", ""),
        ("x-bin", "YWJj"),
    ] {
        cases.push(OddCall { headers: vec![(name, value)], ..call(name) });
    }
    let many = std::iter::repeat_n(("x-many", "v"), 300).collect();
    cases.push(OddCall { headers: many, ..call("many headers") });
    cases
}

#[tokio::test]
async fn grpc_as_few_speak_it() {
    let long = "v".repeat(60_000).leak();
    both(plain(), async |side| {
        for call in rpc_cases() {
            side.call_oddly(&call).await;
        }
        side.call_oddly(&OddCall { headers: vec![("x-long", long)], ..call("a header of 60 kB") }).await;
        side.stop().await;
        side.raw_output("x.jsonl");
    })
    .await;
}

/// The rows of the table of differences, each with what it says of both.
#[tokio::test]
async fn what_differs() {
    let two = [frame(0, &message()), frame(0, &message())].concat();
    let calls = [
        (OddCall { body: two, ..call("two messages") }, ("200", "13"), ("200", "0")),
        // Answered if that needs no waiting, which the machine decides.
        (OddCall { headers: vec![("grpc-timeout", "0n")], ..call("no time") }, ("200", "0 or 1"), ("200", "4")),
        (OddCall { headers: vec![("x-bin", "***")], ..call("no base64") }, ("200", "0"), ("400", "13")),
    ];
    let many: Vec<String> = (0..120).map(|index| format!("X-{index}: v")).collect();
    let mut lines = vec![POST, HOST, JSON];
    lines.extend(many.iter().map(String::as_str));
    let requests = [
        ("many headers", sized(&lines), "431", "200"),
        ("a header of 500 kB", sized(&[POST, HOST, JSON, &format!("X: {}", "v".repeat(500_000))]), "431", "200"),
        ("a parameter without a value", sized(&[POST, HOST, "Content-Type: application/json; charset"]), "200", "415"),
        ("a fragment", sized(&["POST /v1/traces#a HTTP/1.1", HOST, JSON]), "200", "404"),
        ("a line in front", [b"\r\n".to_vec(), sized(&[POST, HOST, JSON])].concat(), "200", "400"),
        ("a folded header", sized(&[POST, HOST, JSON, "X: a\r\n b"]), "400", "200"),
        ("HTTP/1.2", sized(&["POST /v1/traces HTTP/1.2", HOST, JSON]), "400", "200"),
        ("HTTP/2.0", sized(&["POST /v1/traces HTTP/2.0", HOST, JSON]), "400", "505"),
        ("identity as a transfer", sized(&[POST, HOST, JSON, "Transfer-Encoding: identity"]), "400", "501"),
    ];
    let compared = records(plain(), async |side| {
        for (call, ..) in &calls {
            side.call_oddly(call).await;
        }
        for (name, bytes, ..) in &requests {
            side.raw_http(name, bytes).await;
        }
    })
    .await;
    let Some((ours, theirs)) = compared else { return };
    for (rows, side) in [(&ours, 0), (&theirs, 1)] {
        for (row, (call, here, there)) in rows.iter().zip(&calls) {
            let (status, code) = if side == 0 { here } else { there };
            assert_eq!(row["status"].to_string(), *status, "{}", call.name);
            let got = row["code"].as_str().unwrap_or_default();
            assert!(code.split(" or ").any(|code| code == got), "{}: {got}", call.name);
        }
        for (row, (name, _, here, there)) in rows[calls.len()..].iter().zip(&requests) {
            assert_eq!(row["answers"][0]["status"], if side == 0 { *here } else { *there }, "{name}: {row}");
        }
    }
}
