//! What the collector delivered: from `delivery.json` of ours, from its own metrics of an otelcol.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::events::{Delivery, SignalDelivery};
use crate::files::read_file;

/// What an otelcol still had in its queues when it was asked last: batches, so items at least.
const QUEUED: &str = "still_queued";
const QUEUE_SIZE: &str = "otelcol_exporter_queue_size";
const LARGEST_REPORT: usize = 4 * 1024 * 1024;

/// Where ours writes its report.
pub fn path(job_dir: &Path) -> PathBuf {
    job_dir.join("otel/delivery.json")
}

/// Reads that report.
pub fn read(job_dir: &Path) -> Result<Delivery, String> {
    let path = path(job_dir);
    let text = read_file(&path, LARGEST_REPORT as u64)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("`{}` is no delivery report: {error}", path.display()))
}

/// Asks an otelcol for its own metrics and makes a report of them.
pub async fn ask(address: &str, limit: Duration) -> Result<Delivery, String> {
    let page = super::client::request("GET", address, "/metrics", LARGEST_REPORT, limit).await?;
    Ok(from_metrics(&page))
}

/// `otelcol_exporter_sent_spans_total{exporter="file/traces",...} 8` and its like.
fn from_metrics(page: &str) -> Delivery {
    let mut delivery = Delivery::default();
    for line in page.lines().filter(|line| line.starts_with("otelcol_")) {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let Some(count) = value.parse::<f64>().ok().filter(|v| *v > 0.0) else { continue };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let name = name.strip_suffix("_total").unwrap_or(name);
        let Some(signal) = signal_of(&mut delivery, name, labels) else { continue };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count of items")]
        let count = count as u64;
        let to_file = label(labels, "exporter").is_some_and(|id| id == "file" || id.starts_with("file/"));
        if name.starts_with("otelcol_receiver_accepted_") {
            signal.received += count;
        } else if name.starts_with("otelcol_exporter_sent_") {
            if to_file {
                signal.written += count;
            } else {
                signal.sent += count;
            }
        } else if name.starts_with("otelcol_exporter_send_failed_") {
            *signal.dropped.entry("send_failed".into()).or_default() += count;
        } else if name.starts_with("otelcol_exporter_enqueue_failed_") {
            *signal.dropped.entry("queue_full".into()).or_default() += count;
        } else if name == QUEUE_SIZE {
            *signal.dropped.entry(QUEUED.into()).or_default() += count;
        }
    }
    delivery
}

/// What of a signal was in the queues.
pub fn queued(signal: &SignalDelivery) -> u64 {
    signal.dropped.get(QUEUED).copied().unwrap_or_default()
}

fn signal_of<'a>(delivery: &'a mut Delivery, name: &str, labels: &str) -> Option<&'a mut SignalDelivery> {
    if name == QUEUE_SIZE {
        return Some(match label(labels, "data_type") {
            Some("metrics") => &mut delivery.metrics,
            Some("logs") => &mut delivery.logs,
            // Older ones do not say which.
            _ => &mut delivery.traces,
        });
    }
    if name.ends_with("_spans") {
        Some(&mut delivery.traces)
    } else if name.ends_with("_metric_points") {
        Some(&mut delivery.metrics)
    } else if name.ends_with("_log_records") {
        Some(&mut delivery.logs)
    } else {
        None
    }
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let start = labels.find(&format!("{name}=\""))? + name.len() + 2;
    labels[start..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::{from_metrics, path, queued, read};

    #[test]
    fn what_is_no_report_is_refused_and_not_waited_for() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = path(scratch.path());
        std::fs::create_dir(path.parent().expect("otel")).expect("a directory");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert!(read(scratch.path()).is_err_and(|why| why.contains("it is no file")));
    }

    #[test]
    fn counts_of_files_and_of_the_endpoint_are_kept_apart() {
        let page = "# TYPE otelcol_receiver_accepted_spans_total counter\n\
            otelcol_receiver_accepted_spans_total{receiver=\"otlp\",transport=\"http\"} 8\n\
            otelcol_receiver_accepted_spans_total{receiver=\"otlp\",transport=\"grpc\"} 2\n\
            otelcol_exporter_sent_spans_total{exporter=\"file/traces\"} 10\n\
            otelcol_exporter_sent_spans_total{exporter=\"otlp_http\"} 7\n\
            otelcol_exporter_send_failed_spans_total{exporter=\"otlp_http\"} 3\n\
            otelcol_exporter_sent_metric_points{exporter=\"otlp_http\"} 1.2e+03\n\
            otelcol_exporter_queue_size{data_type=\"logs\",exporter=\"otlp_http\"} 5\n\
            otelcol_exporter_queue_size{data_type=\"traces\",exporter=\"otlp_http\"} 0\n\
            otelcol_exporter_queue_capacity{data_type=\"logs\",exporter=\"otlp_http\"} 1000\n";
        let delivery = from_metrics(page);
        let traces = &delivery.traces;
        assert_eq!((traces.received, traces.written, traces.sent, traces.dropped_total()), (10, 10, 7, 3));
        assert_eq!(delivery.metrics.sent, 1200);
        assert_eq!(queued(&delivery.logs), 5);
        assert_eq!(delivery.undelivered(), 8);
    }
}
