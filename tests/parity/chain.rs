//! From gymrun's collector into the reference, whose answers are packed as the requests were.

use serde_json::json;

use super::bed::programs;
use super::otlp::plain;
use super::side::Side;
use crate::harness::Collector;

#[tokio::test]
async fn the_reference_takes_grpc_in_every_compression_and_its_answer_is_understood() {
    let Some([_, reference]) = programs() else { return };
    let side = Side::start(&reference, &plain()).await;
    for compression in ["none", "gzip", "zstd", "snappy"] {
        let config = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: $HTTP}}}}}}}}\n\
             extensions: {{health_check: {{endpoint: $HEALTH}}}}\n\
             exporters: {{otlp_grpc: {{endpoint: 'localhost:{}', compression: {compression}, tls: {{insecure: true}}}}}}\n\
             service: {{extensions: [health_check], pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_grpc]}}}}}}\n",
            side.grpc_port()
        );
        let mut collector = Collector::start(&config, &[]).await;
        let span =
            json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": compression});
        let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
        assert_eq!(collector.post("/v1/traces", &body).await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let delivery = &collector.delivery()["traces"];
        assert_eq!((&delivery["sent"], &delivery["dropped"]), (&json!(1), &json!({})), "{compression}: {delivery}");
    }
}
