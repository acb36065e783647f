//! Sends what the events say to the job's collector.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};

use super::metrics::{Latest, register};
use super::trace::{JobIds, JobTrace, Spans};
use crate::events::{Event, EventKind};
use crate::plan::{COLLECTOR, DRIVER, Plan, Reference, Text};

/// Limit of one export: the collector is on this machine.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// gymrun's own OTLP exporter: idle until the collector is ready, over once finished.
#[derive(Debug)]
pub struct Exporter {
    plan: Arc<Plan>,
    trace: JobTrace,
    ports: IndexMap<String, u16>,
    latest: Latest,
    /// The latest sample is of processes that run.
    samples: bool,
    /// Events from before the collector was ready, which the spans need.
    early: Vec<Event>,
    open: Option<Open>,
    finished: bool,
    /// It could not begin, which nobody has been told yet.
    failed: bool,
}

#[derive(Debug)]
struct Open {
    traces: Option<(SdkTracerProvider, Spans)>,
    metrics: Option<SdkMeterProvider>,
}

impl Exporter {
    /// Nothing is sent before the job's collector is ready.
    #[must_use]
    pub fn new(plan: &Arc<Plan>, trace: JobTrace) -> Self {
        Self {
            plan: Arc::clone(plan),
            trace,
            ports: IndexMap::new(),
            latest: Latest::new(plan.telemetry.metrics_enabled && plan.telemetry.memory.enabled),
            samples: false,
            early: Vec::new(),
            open: None,
            finished: !plan.telemetry.enabled || plan.telemetry.endpoint.is_none(),
            failed: false,
        }
    }

    /// Whether nothing will be sent since there can be no more threads; once.
    pub fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.failed)
    }

    /// Takes in one event. Returns at once: exports happen on threads of their own.
    pub fn apply(&mut self, event: &Event) {
        if self.finished {
            return;
        }
        match &event.kind {
            EventKind::PortsChosen { ports } => self.ports.clone_from(ports),
            EventKind::MemorySampled(sample) => {
                self.samples = true;
                self.latest.set(sample);
            }
            EventKind::ProcessExited { process, .. } if process == COLLECTOR => {
                self.abandon();
                return;
            }
            _ => {}
        }
        if let Some(open) = &mut self.open {
            if let EventKind::ProcessStopping { process, .. } = &event.kind
                && self.samples
                && process != DRIVER
            {
                // The last sample is sent now; what is exported later must not speak of servers that are gone.
                self.samples = false;
                if let Some(provider) = &open.metrics {
                    let _ = provider.force_flush();
                }
                self.latest.end();
            }
            if let Some((_, spans)) = &mut open.traces {
                spans.apply(event);
            }
            return;
        }
        self.early.push(event.clone());
        let due = match &event.kind {
            EventKind::ProcessReady { process, .. } => process == COLLECTOR,
            EventKind::PortsChosen { .. } => self.plan.collector.is_none(),
            _ => false,
        };
        if due {
            // Where there can be no more threads the library panics, and the job goes on.
            let started = catch_unwind(AssertUnwindSafe(|| self.start()));
            self.failed = started.is_err();
            self.open = started.ok().flatten();
            self.finished = self.open.is_none();
            let early = std::mem::take(&mut self.early);
            if let Some(Open { traces: Some((_, spans)), .. }) = &mut self.open {
                for event in &early {
                    spans.apply(event);
                }
            }
        }
    }

    /// There is nobody left to send to: what tries once more, and again, is not waited for.
    fn abandon(&mut self) {
        self.finished = true;
        let open = self.open.take();
        // Where no thread can be made this one waits after all.
        let _ = std::thread::Builder::new().name("abandoned".into()).spawn(move || drop(open));
    }

    /// Ends the spans that are open and sends everything; to be called before the collector is stopped.
    pub fn finish(&mut self) {
        self.finished = true;
        let Some(open) = self.open.take() else { return };
        if let Some((provider, spans)) = open.traces {
            spans.close();
            // A failure is the collector's to report: telemetry never changes the result.
            let _ = provider.shutdown_with_timeout(EXPORT_TIMEOUT);
        }
        if let Some(provider) = open.metrics {
            let _ = provider.shutdown_with_timeout(EXPORT_TIMEOUT);
        }
    }

    fn start(&self) -> Option<Open> {
        let telemetry = &self.plan.telemetry;
        let endpoint = self.endpoint(telemetry.endpoint.as_ref()?)?;
        let client = client(&endpoint)?;
        let resource = self.resource();
        let traces = telemetry.traces_enabled.then(|| {
            let exporter = opentelemetry_otlp::SpanExporter::builder()
                .with_http()
                .with_http_client(client.clone())
                .with_endpoint(format!("{endpoint}/v1/traces"))
                .with_protocol(Protocol::HttpBinary)
                .with_timeout(EXPORT_TIMEOUT)
                .build()
                .ok()?;
            let provider = SdkTracerProvider::builder()
                // What gymrun's environment says of sampling is meant for the job's processes.
                .with_sampler(Sampler::AlwaysOn)
                .with_id_generator(JobIds::new(self.trace))
                .with_batch_exporter(exporter)
                .with_resource(resource.clone())
                .build();
            let spans = Spans::open(&provider, self.trace, &self.plan, self.early.first());
            Some((provider, spans))
        });
        let metrics = telemetry.metrics_enabled.then(|| {
            let exporter = opentelemetry_otlp::MetricExporter::builder()
                .with_http()
                .with_http_client(client)
                .with_endpoint(format!("{endpoint}/v1/metrics"))
                .with_protocol(Protocol::HttpBinary)
                .with_timeout(EXPORT_TIMEOUT)
                .build()
                .ok()?;
            let interval = Duration::from_secs_f64(telemetry.memory.interval_seconds.clamp(1.0, 10.0));
            let reader = PeriodicReader::builder(exporter).with_interval(interval).build();
            let provider = SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
            register(&provider, &self.latest);
            Some(provider)
        });
        Some(Open { traces: traces.flatten(), metrics: metrics.flatten() })
    }

    fn endpoint(&self, text: &Text) -> Option<String> {
        let resolved: Result<String, ()> = text.resolve(|reference| match reference {
            Reference::Port { process, key } => {
                let name = key.as_ref().map_or_else(|| process.clone(), |key| format!("{process}.{key}"));
                self.ports.get(&name).map(u16::to_string).ok_or(())
            }
            Reference::Host { .. } => Ok("127.0.0.1".to_owned()),
            _ => Err(()),
        });
        resolved.ok().map(|url| url.trim_end_matches('/').to_owned())
    }

    fn resource(&self) -> Resource {
        let telemetry = &self.plan.telemetry;
        let group = &telemetry.service_group;
        let mut facts: HashMap<&'static str, opentelemetry::Value> = HashMap::from([
            ("service.version", env!("CARGO_PKG_VERSION").into()),
            ("nemo.gym.service_group", group.clone().into()),
            ("nemo.gym.server.name", "orchestrator".into()),
            ("nemo.gym.server.type", "orchestrator".into()),
            ("nemo.run.id", telemetry.run_id.clone().into()),
            ("process.pid", i64::from(std::process::id()).into()),
        ]);
        if let Ok(name) = sysinfo::System::host_name() {
            facts.insert("host.name", name.into());
        }
        facts.insert("host.arch", sysinfo::System::cpu_arch().into());
        if let Ok(version) = sysinfo::System::long_os_version() {
            facts.insert("os.description", version.into());
        }
        if let Some(cores) = std::thread::available_parallelism().ok().and_then(|n| i64::try_from(n.get()).ok()) {
            facts.insert("host.cpu.logical_count", cores.into());
        }
        Resource::builder()
            .with_service_name(format!("{group}/orchestrator"))
            .with_attributes(facts.into_iter().map(|(key, value)| KeyValue::new(key, value)))
            .build()
    }
}

/// A client that never sends loopback traffic to a proxy.
fn client(endpoint: &str) -> Option<reqwest::blocking::Client> {
    let mut builder = reqwest::blocking::Client::builder().timeout(EXPORT_TIMEOUT);
    let host = reqwest::Url::parse(endpoint).ok()?.host_str().map(str::to_owned)?;
    if matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]") {
        builder = builder.no_proxy();
    }
    builder.build().ok()
}
