//! The metrics of NeMo Gym's memory profiling, as gauges over the last sample, and CPU time from the same walk.
//!
//! A proportional set is exact at its time, and is read less often than metrics are exported: each reading is exported
//! once, with the next export, and none stands in for a later one.

use std::sync::{Arc, Mutex};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::events::{CgroupMemory, HostMemory, Sample, TreeSample};

/// The last sample, shared with the gauges that are read at each export.
#[derive(Clone, Debug)]
pub(super) struct Latest {
    sample: Arc<Mutex<Option<Sample>>>,
    /// Whether memory and CPU time are exported at all.
    memory: bool,
}

impl Latest {
    /// Nothing was sampled yet. With `memory` memory and CPU time are exported too.
    pub(super) fn new(memory: bool) -> Self {
        Self { sample: Arc::default(), memory }
    }

    /// Takes in a sample. A reading of PSS that was not exported yet stays for the next export, and so does the CPU time of a
    /// tree without processes.
    pub(super) fn set(&self, sample: &Sample) {
        let mut sample = sample.clone();
        let mut latest = self.sample.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for tree in &mut sample.trees {
            let last = latest.iter().flat_map(|s| &s.trees).find(|t| (&t.process, t.pid) == (&tree.process, tree.pid));
            tree.pss = tree.pss.or_else(|| last.and_then(|last| last.pss));
        }
        let ended = latest.take().into_iter().flat_map(|sample| sample.trees).filter(|tree| tree.processes == 0);
        // What nobody exports would stay for ever.
        sample.trees.extend(ended.filter(|_| self.memory));
        *latest = Some(sample);
    }

    /// Sampling is over: from now on memory is not told any more, and no server is active.
    pub(super) fn end(&self) {
        let mut latest = self.sample.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *latest = latest.is_some().then(Sample::default);
    }

    fn read(&self, read: impl FnOnce(&Sample)) {
        self.change(|sample| read(sample));
    }

    fn change(&self, change: impl FnOnce(&mut Sample)) {
        if let Some(sample) = &mut *self.sample.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            change(sample);
        }
    }
}

/// Registers every gauge. Memory gauges only where memory is exported: RSS alone is for the final table.
pub(super) fn register(provider: &SdkMeterProvider, latest: &Latest) {
    let meter = provider.meter("gymrun");
    let sample = latest.clone();
    meter
        .u64_observable_gauge("gym.servers.active")
        .with_description("Gym servers that run now")
        .with_unit("{server}")
        .with_callback(move |gauge| sample.read(|s| gauge.observe(u64::from(s.servers_active), &[])))
        .build();
    if !latest.memory {
        return;
    }
    let sample = latest.clone();
    meter
        .u64_observable_gauge("gym.server.memory.usage")
        .with_description("Memory of a process tree")
        .with_unit("By")
        .with_callback(move |gauge| {
            sample.change(|sample| {
                for tree in sample.trees.iter_mut().filter(|tree| tree.processes > 0) {
                    let pss = tree.pss.take();
                    observe_memory(gauge, tree, Some(tree.rss), pss);
                }
            });
        })
        .build();
    tree_gauge(&meter, latest, "gym.server.memory.sampled_peak", "By", "Greatest sampled memory of a process tree", {
        |gauge, tree| observe_memory(gauge, tree, Some(tree.peak_rss), tree.peak_pss)
    });
    tree_gauge(&meter, latest, "gym.server.processes", "{process}", "Processes of a process tree", |gauge, tree| {
        gauge.observe(u64::from(tree.processes), &attributes(tree));
    });
    let sample = latest.clone();
    meter
        .f64_observable_counter("gym.server.cpu.time")
        .with_description("CPU time of a process tree, ended processes included")
        .with_unit("s")
        .with_callback(move |counter| {
            sample.change(|sample| {
                sample.trees.iter().for_each(|tree| counter.observe(tree.cpu_seconds, &attributes(tree)));
                sample.trees.retain(|tree| tree.processes > 0);
            });
        })
        .build();
    host_gauge(&meter, latest, "gym.host.memory.usage", "Memory in use on the host", |h| h.used);
    host_gauge(&meter, latest, "gym.host.memory.available", "Memory available on the host", |h| h.available);
    host_gauge(&meter, latest, "gym.host.memory.total", "Memory of the host", |h| h.total);
    host_gauge(&meter, latest, "gym.host.memory.sampled_peak", "Greatest sampled memory in use", |h| h.peak);
    cgroup_gauge(&meter, latest, "gym.cgroup.memory.usage", "Memory of the job's cgroup", |c| Some(c.used));
    cgroup_gauge(&meter, latest, "gym.cgroup.memory.limit", "Memory limit of the job's cgroup", |c| c.limit);
    cgroup_gauge(&meter, latest, "gym.cgroup.memory.sampled_peak", "Greatest sampled memory of the job's cgroup", {
        |c| Some(c.peak)
    });
}

fn tree_gauge(
    meter: &Meter,
    latest: &Latest,
    name: &'static str,
    unit: &'static str,
    description: &'static str,
    observe: impl Fn(&dyn AsyncInstrument<u64>, &TreeSample) + Send + Sync + 'static,
) {
    let latest = latest.clone();
    meter
        .u64_observable_gauge(name)
        .with_unit(unit)
        .with_description(description)
        .with_callback(move |gauge| {
            latest.read(|sample| {
                sample.trees.iter().filter(|tree| tree.processes > 0).for_each(|tree| observe(gauge, tree));
            });
        })
        .build();
}

fn host_gauge(
    meter: &Meter,
    latest: &Latest,
    name: &'static str,
    description: &'static str,
    value: impl Fn(&HostMemory) -> u64 + Send + Sync + 'static,
) {
    // Without a total nothing was sampled.
    let value = move |sample: &Sample| (sample.host.total > 0).then(|| value(&sample.host));
    bytes_gauge(meter, latest, name, description, value);
}

fn cgroup_gauge(
    meter: &Meter,
    latest: &Latest,
    name: &'static str,
    description: &'static str,
    value: impl Fn(&CgroupMemory) -> Option<u64> + Send + Sync + 'static,
) {
    bytes_gauge(meter, latest, name, description, move |sample| value(sample.cgroup.as_ref()?));
}

fn bytes_gauge(
    meter: &Meter,
    latest: &Latest,
    name: &'static str,
    description: &'static str,
    value: impl Fn(&Sample) -> Option<u64> + Send + Sync + 'static,
) {
    let latest = latest.clone();
    meter
        .u64_observable_gauge(name)
        .with_unit("By")
        .with_description(description)
        .with_callback(move |gauge| {
            latest.read(|sample| {
                if let Some(value) = value(sample) {
                    gauge.observe(value, &[]);
                }
            });
        })
        .build();
}

fn observe_memory(gauge: &dyn AsyncInstrument<u64>, tree: &TreeSample, rss: Option<u64>, pss: Option<u64>) {
    for (kind, value) in [("rss", rss), ("pss", pss)] {
        if let Some(value) = value {
            let mut attributes = attributes(tree);
            attributes.push(KeyValue::new("memory.type", kind));
            gauge.observe(value, &attributes);
        }
    }
}

fn attributes(tree: &TreeSample) -> Vec<KeyValue> {
    vec![
        KeyValue::new("nemo.gym.server.name", tree.process.clone()),
        KeyValue::new("nemo.gym.server.type", tree.type_name.clone()),
        KeyValue::new("process.pid", i64::from(tree.pid)),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use opentelemetry::KeyValue;
    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics};
    use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
    use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};

    use super::Latest;
    use crate::events::{Sample, TreeSample};
    use crate::plan::Kind;

    fn sample(pid: u32, pss: Option<u64>) -> Sample {
        let tree = TreeSample {
            process: "agent".into(),
            kind: Kind::Server,
            type_name: "responses_api_agents".into(),
            pid,
            rss: 1,
            pss,
            processes: 1,
            peak_rss: 1,
            peak_pss: pss,
            cpu_seconds: 0.5,
        };
        Sample { trees: vec![tree], ..Sample::default() }
    }

    /// Name, kind of memory, value.
    type Points = Vec<(String, String, f64)>;

    fn kind<'a>(mut attributes: impl Iterator<Item = &'a KeyValue>) -> String {
        let kind = attributes.find(|attribute| attribute.key.as_str() == "memory.type");
        kind.map(|kind| kind.value.to_string()).unwrap_or_default()
    }

    /// Keeps what the last export said.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Points>>);

    impl PushMetricExporter for Kept {
        async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
            let mut found = Points::new();
            for metric in metrics.scope_metrics().flat_map(ScopeMetrics::metrics) {
                let name = metric.name();
                match metric.data() {
                    AggregatedMetrics::U64(MetricData::Gauge(gauge)) => found
                        .extend(gauge.data_points().map(|p| (name.to_owned(), kind(p.attributes()), p.value() as f64))),
                    AggregatedMetrics::F64(MetricData::Sum(sum)) => {
                        assert!(sum.is_monotonic());
                        found.extend(sum.data_points().map(|p| (name.to_owned(), kind(p.attributes()), p.value())));
                    }
                    other => panic!("{name} is no gauge and no sum: {other:?}"),
                }
            }
            *self.0.lock().expect("nobody panics here") = found;
            Ok(())
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }

        fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
            Ok(())
        }

        fn temporality(&self) -> Temporality {
            Temporality::Cumulative
        }
    }

    #[test]
    fn a_reading_of_pss_is_exported_once() {
        let kept = Kept::default();
        let latest = Latest::new(true);
        let reader = PeriodicReader::builder(kept.clone()).with_interval(Duration::from_hours(1)).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        super::register(&provider, &latest);
        let pss = || {
            provider.force_flush().expect("it is exported");
            let found = kept.0.lock().expect("nobody panics here").clone();
            assert!(
                found.iter().any(|(name, kind, _)| name == "gym.server.memory.usage" && kind == "rss"),
                "{found:?}"
            );
            assert!(found.contains(&("gym.server.cpu.time".into(), String::new(), 0.5)), "{found:?}");
            found.into_iter().find(|(name, kind, _)| name == "gym.server.memory.usage" && kind == "pss").map(|f| f.2)
        };
        latest.set(&sample(7, Some(5)));
        // The next tick comes before the export.
        latest.set(&sample(7, None));
        assert_eq!(pss(), Some(5.0));
        assert_eq!(pss(), None);
        latest.set(&sample(7, None));
        assert_eq!(pss(), None);
        // The process is another by now.
        latest.set(&sample(7, Some(6)));
        latest.set(&sample(8, None));
        assert_eq!(pss(), None);
        // The CPU time of one that has ended is exported once, however many samples come before, and nothing else of it.
        let mut ended = sample(9, None);
        (ended.trees[0].processes, ended.trees[0].cpu_seconds) = (0, 0.75);
        latest.set(&ended);
        latest.set(&sample(8, None));
        latest.set(&sample(8, None));
        for told in [1, 0] {
            provider.force_flush().expect("it is exported");
            let found = kept.0.lock().expect("nobody panics here").clone();
            let count = |name: &str| found.iter().filter(|(other, ..)| other == name).count();
            assert_eq!((count("gym.server.cpu.time"), count("gym.server.processes")), (1 + told, 1), "{found:?}");
            assert_eq!(found.contains(&("gym.server.cpu.time".into(), String::new(), 0.75)), told == 1, "{found:?}");
        }
    }

    #[test]
    fn what_nobody_exports_is_not_kept() {
        let latest = Latest::new(false);
        for pid in 1..4 {
            let mut ended = sample(pid, None);
            ended.trees[0].processes = 0;
            latest.set(&ended);
        }
        latest.read(|sample| assert_eq!(sample.trees.len(), 1));
    }
}
