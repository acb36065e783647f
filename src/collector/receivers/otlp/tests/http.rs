//! OTLP over HTTP.

use std::io::Write;
use std::path::Path;

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use reqwest::{Client, Method, Response};
use serde_json::Value;

use super::server::{Server, json_trace, start, trace};
use crate::collector::component::Refusal;
use crate::collector::testing::Keeper;

const MEBIBYTE: usize = 1024 * 1024;
const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

pub fn client() -> Client {
    Client::builder().no_proxy().build().expect("a client")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

async fn post(server: &Server, media_type: &str, encoding: &str, body: impl Into<reqwest::Body>) -> Response {
    let mut request = client().post(format!("{}/v1/traces", server.http)).header("content-type", media_type).body(body);
    if !encoding.is_empty() {
        request = request.header("content-encoding", encoding);
    }
    request.send().await.expect("an answer")
}

/// Status, media type and code of the google.rpc.Status.
async fn refusal(response: Response) -> (u16, String, u64, String) {
    let status = response.status().as_u16();
    let media_type = response.headers()["content-type"].to_str().expect("text").to_string();
    let body = response.bytes().await.expect("a body");
    if media_type == JSON {
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let message = body["message"].as_str().expect("a message").to_string();
        return (status, media_type, body["code"].as_u64().expect("a code"), message);
    }
    let mut fields = crate::otlp::wire::fields(&body);
    let code = fields.next().expect("a code").1.bits();
    let message = String::from_utf8_lossy(fields.next().expect("a message").1.bytes()).into_owned();
    (status, media_type, code, message)
}

/// Every answer that the reference gave in the recorded case.
#[tokio::test]
async fn recorded_answers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/collector-cases/otlp_http_errors");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let steps: Vec<Value> = serde_json::from_str(&text("steps.json")).expect("steps");
    let golden = text("golden.jsonl");
    let mut rows = golden.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row"));
    let keeper = Keeper::default();
    let server = start(keeper.clone(), MEBIBYTE, 2000).await;
    for step in steps.iter().filter(|step| step["post"].is_string()) {
        let row = rows.next().expect("a row");
        let mut body = step["text"].as_str().unwrap_or_default().as_bytes().to_vec();
        if let Some(file) = step["file"].as_str() {
            body = text(file).into_bytes();
        }
        let padding = usize::try_from(step["pad"].as_u64().unwrap_or(0)).expect("small");
        body.resize(body.len() + padding, b' ');
        if step["pack"] == "gzip" {
            body = gzip(&body);
        }
        let method = Method::from_bytes(step["method"].as_str().unwrap_or("POST").as_bytes()).expect("a method");
        let mut request =
            client().request(method, format!("{}{}", server.http, step["post"].as_str().expect("a path"))).body(body);
        let media_type = step.get("content_type").map_or(Some(JSON), Value::as_str);
        if let Some(media_type) = media_type {
            request = request.header("content-type", media_type);
        }
        if let Some(encoding) = step["headers"]["Content-Encoding"].as_str() {
            request = request.header("content-encoding", encoding);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status().as_u16(), row["status"], "{step}");
        let media_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        assert_eq!(media_type, row["content_type"].as_str(), "{step}");
        assert!(response.headers().get("allow").is_none(), "{step}");
        if row["code"].is_u64() {
            assert_eq!(refusal(response).await.2, row["code"], "{step}");
        } else if let Some(wanted) = row["body"].as_str() {
            let body = response.bytes().await.expect("a body");
            let body = if row["content_type"] == PROTOBUF { BASE64.encode(&body).into() } else { body };
            assert_eq!(String::from_utf8_lossy(&body), wanted, "{step}");
        }
    }
    assert_eq!(keeper.counts(), [1], "one request had an item");
}

#[tokio::test]
async fn compressed_bodies() {
    let keeper = Keeper::default();
    let server = start(keeper.clone(), MEBIBYTE, 100_000).await;
    let accepted = post(&server, PROTOBUF, "gzip", gzip(&trace(9))).await;
    assert_eq!(accepted.bytes().await.expect("a body").as_ref(), [0x0a, 0]);
    let accepted = post(&server, JSON, "gzip", gzip(json_trace().as_bytes())).await;
    assert_eq!(accepted.text().await.expect("a body"), r#"{"partialSuccess":{}}"#);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(&trace(9)).expect("memory");
    let zlib = zlib.finish().expect("memory");
    for encoding in ["deflate", "zlib"] {
        assert_eq!(post(&server, PROTOBUF, encoding, zlib.clone()).await.status(), 200);
    }
    assert_eq!(keeper.counts().len(), 4);

    for encoding in ["br", "GZIP", "identity", "gzip, gzip"] {
        let (status, media_type, code, message) = refusal(post(&server, PROTOBUF, encoding, trace(9)).await).await;
        assert_eq!((status, media_type.as_str(), code), (400, PROTOBUF, 3));
        assert!(message.contains("unsupported Content-Encoding"), "{message}");
    }
    let mut broken = gzip(json_trace().as_bytes());
    broken.truncate(broken.len() - 5);
    for broken in [broken, b"no gzip".to_vec()] {
        let (status, media_type, code, _) = refusal(post(&server, JSON, "gzip", broken).await).await;
        assert_eq!((status, media_type.as_str(), code), (400, JSON, 3));
    }
    // Small on the wire, too great in memory.
    let bomb = gzip(&vec![b' '; 50 * MEBIBYTE]);
    let (status, _, code, message) = refusal(post(&server, JSON, "gzip", bomb[..90_000].to_vec()).await).await;
    assert_eq!((status, code, message.as_str()), (400, 3, "http: request body too large"));
    assert_eq!(keeper.counts().len(), 4);
}

#[tokio::test]
async fn big_bodies() {
    let keeper = Keeper::default();
    let server = start(keeper.clone(), MEBIBYTE, 20 * MEBIBYTE).await;
    assert_eq!(post(&server, PROTOBUF, "", trace(10 * MEBIBYTE)).await.status(), 200);
    let (status, _, code, _) = refusal(post(&server, PROTOBUF, "", trace(60 * MEBIBYTE)).await).await;
    assert_eq!((status, code), (400, 3));
    assert_eq!(post(&server, PROTOBUF, "", trace(9)).await.status(), 200, "it still answers");
    assert_eq!(keeper.counts(), [1, 1]);
}

/// HTTP/2 without TLS, which nobody takes on the port of HTTP; and a gRPC call that ends with its headers, which the
/// reference never answers.
#[tokio::test]
async fn http_2_is_refused_and_a_call_without_a_body_is_answered() {
    let keeper = Keeper::default();
    let server = start(keeper.clone(), MEBIBYTE, MEBIBYTE).await;
    let client = Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let request = client.post(format!("{}/v1/traces", server.http)).header("content-type", JSON);
    assert!(request.body(json_trace()).send().await.is_err() && keeper.counts().is_empty());
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let call = client.post(format!("{}{path}", server.grpc)).header("content-type", "application/grpc");
    let answer = call.send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), &answer.headers()["grpc-status"]), (200, &"2".parse().expect("a value")));
}

#[tokio::test]
async fn refusals_of_the_pipelines() {
    for (refused, wanted) in [
        (Refusal::retryable("queue_full", "sending queue is full"), (503, 14)),
        (Refusal::permanent("transform", "failed to execute statement"), (500, 13)),
        (Refusal::permanent("http_429", "slow down").answered(8), (429, 8)),
    ] {
        let message = refused.message.clone();
        let server = start(Keeper { refuse: Some(refused), ..Keeper::default() }, MEBIBYTE, MEBIBYTE).await;
        for (media_type, body) in [(PROTOBUF, trace(9)), (JSON, json_trace().into())] {
            let got = refusal(post(&server, media_type, "", body).await).await;
            assert_eq!(got, (wanted.0, media_type.to_string(), wanted.1, message.clone()));
        }
        assert_eq!(post(&server, JSON, "", "{}").await.status(), 200, "nothing to refuse");
    }
}

#[tokio::test]
async fn malformed_requests_name_what_is_wrong() {
    let server = start(Keeper::default(), MEBIBYTE, MEBIBYTE).await;
    let base64 = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"W47/95gDgQPSabYzgT/GDA=="}]}]}]}"#;
    let (status, _, code, message) = refusal(post(&server, JSON, "", base64).await).await;
    assert_eq!((status, code), (400, 3));
    assert!(message.contains("traceId"), "{message}");
    let (status, _, code, _) = refusal(post(&server, PROTOBUF, "", vec![0x0a, 5, 1]).await).await;
    assert_eq!((status, code), (400, 3));
}
