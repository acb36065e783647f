//! The configurations that are measured.

use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

/// What a collector does with what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipelines {
    /// What gymrun renders: identity, stamp, batch, span metrics, JSON into files, OTLP/HTTP with gzip to a sink.
    Full,
    /// The same with a Prometheus target that is scraped each second; the number is its port.
    Scraping(u16),
    /// OTLP, batch, nothing.
    Null,
}

/// The ports of one collector, all on loopback.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    pub http: u16,
    pub grpc: u16,
    pub health: u16,
}

impl Ports {
    /// Three that are free now.
    pub fn find() -> Self {
        let sockets = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let [http, grpc, health] = sockets.each_ref().map(|socket| socket.local_addr().expect("an address").port());
        Self { http, grpc, health }
    }
}

impl Pipelines {
    /// The document, for the files in `folder` and the sink at this port.
    pub fn document(self, ports: Ports, folder: &Path, sink: u16) -> String {
        let mut document: Value = match self {
            Self::Full | Self::Scraping(_) => {
                let text = include_str!("../../../tests/data/collector/rendered.json")
                    .replace("https://ingest.example/otlp", &format!("http://127.0.0.1:{sink}/otlp"))
                    .replace("/lustre/out/gym-job-20260101_000000/arith/otel", &folder.display().to_string());
                serde_json::from_str(&text).expect("JSON")
            }
            Self::Null => json!({
                "receivers": {"otlp": {"protocols": {"http": {}, "grpc": {}}}},
                "processors": {"batch": {}},
                "exporters": {"nop": {}},
                "extensions": {"health_check": {}},
                "service": {"extensions": ["health_check"], "telemetry": {},
                            "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["batch"], "exporters": ["nop"]}}},
            }),
        };
        let address = |port: u16| json!(format!("127.0.0.1:{port}"));
        document["extensions"]["health_check"]["endpoint"] = address(ports.health);
        document["receivers"]["otlp"]["protocols"]["http"]["endpoint"] = address(ports.http);
        document["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] = address(ports.grpc);
        // The reference's own metrics cost it a little and need a port that another may have.
        document["service"]["telemetry"]["metrics"] = json!({"level": "none"});
        match self {
            Self::Full => without_scraping(&mut document),
            Self::Scraping(port) => scrape_each_second(&mut document, port),
            Self::Null => {}
        }
        document.to_string()
    }
}

fn without_scraping(document: &mut Value) {
    document["receivers"].as_object_mut().expect("a map").shift_remove("prometheus");
    for (_, pipeline) in document["service"]["pipelines"].as_object_mut().expect("a map") {
        pipeline["receivers"].as_array_mut().expect("a list").retain(|id| id != "prometheus");
    }
}

fn scrape_each_second(document: &mut Value, port: u16) {
    document["receivers"]["prometheus"]["config"]["scrape_configs"] = json!([{
        "job_name": "gym-vllm/policy",
        "scrape_interval": "1s",
        "static_configs": [{"targets": [format!("127.0.0.1:{port}")], "labels": {"gym_service": "policy"}}],
    }]);
}
