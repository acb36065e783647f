//! Compressed requests, good and broken, over HTTP and gRPC; paths that are not clean.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use gymrun::otlp::Signal;

use super::bed::{Case, both};
use super::requests::{spans, wire};
use super::rpc::export;
use super::side::{Body, Side};

fn case(http: &str) -> Case {
    Case::new(format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: $HTTP{http}}}, grpc: {{endpoint: $GRPC, max_recv_msg_size_mib: 1}}}}}}}}\n\
         exporters: {{file: {{path: $OUT/x.jsonl}}}}\n\
         service:\n  telemetry: {{metrics: {{level: none}}}}\n  pipelines:\n\
         \x20   traces: {{receivers: [otlp], exporters: [file]}}\n"
    ))
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory")
}

fn snappy_block(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).expect("memory")
}

fn snappy_frames(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).expect("memory");
    encoder.into_inner().expect("memory")
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

type Pack = fn(&[u8]) -> Vec<u8>;

const PACKS: [(&str, Pack); 6] = [
    ("gzip", gzip),
    ("zlib", zlib),
    ("zstd", zstandard),
    ("snappy block", snappy_block),
    ("snappy frames", snappy_frames),
    ("lz4", lz4),
];

const NAMES: [&str; 12] = [
    "gzip",
    "zstd",
    "zlib",
    "snappy",
    "deflate",
    "lz4",
    "x-snappy-framed",
    "br",
    "GZIP",
    "identity",
    "gzip, gzip",
    "none",
];

/// What a body is made of, in both forms.
async fn post(side: &mut Side, encoding: &'static str, body: impl Fn(&[u8]) -> Vec<u8>) {
    let (wire, json) = (wire(Signal::Traces, &spans()), spans().to_string().into_bytes());
    for (content_type, plain) in [("application/x-protobuf", wire), ("application/json", json)] {
        let body = Body { content_type, encoding: Some(encoding), bytes: body(&plain) };
        side.post_for_code("/v1/traces", body).await;
    }
}

#[tokio::test]
async fn every_compression_under_every_name() {
    both(case(""), async |side| {
        for encoding in NAMES {
            for (_, pack) in PACKS {
                post(side, encoding, pack).await;
            }
        }
        side.stop().await;
        side.output("x.jsonl");
    })
    .await;
}

#[tokio::test]
async fn broken_empty_and_joined_bodies() {
    both(case(""), async |side| {
        for (encoding, (_, pack)) in ["gzip", "zlib", "zstd", "snappy", "x-snappy-framed", "lz4"].into_iter().zip(PACKS)
        {
            post(side, encoding, |_| Vec::new()).await;
            post(side, encoding, |_| pack(b"")).await;
            post(side, encoding, |_| b"garbage".to_vec()).await;
            post(side, encoding, |plain| pack(&plain[..plain.len() / 2])).await;
            for cut in [2, 5, 11, 1000] {
                post(side, encoding, |plain| {
                    let packed = pack(plain);
                    packed[..packed.len().saturating_sub(cut)].to_vec()
                })
                .await;
            }
            post(side, encoding, |plain| [pack(plain), pack(plain)].concat()).await;
            post(side, encoding, |plain| [pack(plain).as_slice(), b"more"].concat()).await;
        }
        side.stop().await;
        side.output("x.jsonl");
    })
    .await;
}

/// The limit counts what came and what it becomes.
#[tokio::test]
async fn sizes_around_the_limit() {
    both(case(", max_request_body_size: 100000"), async |side| {
        for size in [99_999_usize, 100_000, 100_001, 300_000] {
            let text = format!("{{}}{}", " ".repeat(size - 2)).into_bytes();
            let bodies =
                [("gzip", gzip(&text)), ("zstd", zstandard(&text)), ("snappy", snappy_block(&text)), ("", text)];
            for (encoding, bytes) in bodies {
                let encoding = Some(encoding).filter(|encoding| !encoding.is_empty());
                side.post_for_code("/v1/traces", Body { content_type: "application/json", encoding, bytes }).await;
            }
        }
        side.stop().await;
    })
    .await;
}

#[tokio::test]
async fn fewer_compressions_by_configuration() {
    for algorithms in ["[gzip]", "['', zstd]", "[]", "[deflate]"] {
        both(case(&format!(", compression_algorithms: {algorithms}")), async |side| {
            for encoding in ["gzip", "zstd", "zlib", "deflate"] {
                post(side, encoding, |_| Vec::new()).await;
                let bytes = zlib(&wire(Signal::Traces, &spans()));
                let body = Body { content_type: "application/x-protobuf", encoding: Some(encoding), bytes };
                side.post_for_code("/v1/traces", body).await;
            }
            for bytes in [b"".to_vec(), b"{}".to_vec()] {
                let body = Body { content_type: "application/json", encoding: None, bytes };
                side.post_for_code("/v1/traces", body).await;
            }
            side.stop().await;
        })
        .await;
    }
}

#[tokio::test]
async fn grpc_messages() {
    let plain = wire(Signal::Traces, &spans());
    both(case(""), async |side| {
        let path = export(Signal::Traces);
        for encoding in ["gzip", "snappy", "zstd", "deflate", "lz4", "identity", "br"] {
            for (_, pack) in PACKS {
                side.call_raw(path, Some(encoding), 1, &pack(&plain)).await;
            }
            side.call_raw(path, Some(encoding), 0, &plain).await;
            side.call_raw(path, Some(encoding), 1, b"garbage").await;
        }
        side.call_raw(path, None, 1, &gzip(&plain)).await;
        side.call_raw(path, None, 0, &plain).await;
        side.call_raw(path, None, 7, &plain).await;
        side.call_raw(path, None, 0, &vec![0; (1 << 20) + 1]).await;
        side.call_raw(path, Some("gzip"), 1, &gzip(&vec![0; (1 << 20) + 1])).await;
        side.stop().await;
        side.output("x.jsonl");
    })
    .await;
}

#[tokio::test]
async fn paths_that_are_not_clean() {
    both(case(""), async |side| {
        for path in [
            "//v1/traces",
            "/v1//traces?a=b",
            "/v1/./traces",
            "/v1/traces/",
            "/v1/%74races",
            "/v1/x/%2e%2e/traces",
            "/",
        ] {
            for method in ["POST", "GET", "HEAD", "PUT", "OPTIONS"] {
                side.ask(method, path).await;
            }
        }
        side.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_path_with_a_slash_at_its_end_has_all_below_it() {
    for settings in [
        "traces_url_path: /",
        "traces_url_path: \"\"",
        "traces_url_path: /x/",
        "traces_url_path: x, response_headers: [{name: Content-Type, value: text/x}]",
        "traces_url_path: /x/, metrics_url_path: /x, response_headers: {Content-Type: text/x}",
    ] {
        both(case(&format!(", {settings}")), async |side| {
            for path in
                ["/v1/traces", "/v1/metrics", "/x", "/x/", "/x/y/z", "/xy", "/", "//x", "/x/..", "/a/../x/y", "/x?a=b"]
            {
                side.ask("POST", path).await;
                side.ask("GET", path).await;
            }
            side.stop().await;
        })
        .await;
    }
}
