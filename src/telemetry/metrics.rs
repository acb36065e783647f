//! The metrics of NeMo Gym's memory profiling, as gauges over the last sample.

use std::sync::{Arc, Mutex};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::events::{HostMemory, Sample, TreeSample};

/// The last sample, shared with the gauges that are read at each export.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest(Arc<Mutex<Option<Sample>>>);

impl Latest {
    /// Takes in a sample. PSS is read less often than RSS: a process keeps its last one until the next.
    pub(super) fn set(&self, sample: &Sample) {
        let mut sample = sample.clone();
        let mut latest = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for tree in &mut sample.trees {
            let former =
                latest.iter().flat_map(|s| &s.trees).find(|t| (&t.process, t.pid) == (&tree.process, tree.pid));
            tree.pss = tree.pss.or_else(|| former.and_then(|former| former.pss));
        }
        *latest = Some(sample);
    }

    /// Sampling is over: from now on memory is not told any more, and no server is active.
    pub(super) fn end(&self) {
        let mut latest = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *latest = latest.is_some().then(Sample::default);
    }

    fn read(&self, read: impl FnOnce(&Sample)) {
        if let Some(sample) = &*self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            read(sample);
        }
    }
}

/// Registers every gauge. Memory gauges only with `memory`: RSS alone is for the final table.
pub(super) fn register(provider: &SdkMeterProvider, latest: &Latest, memory: bool) {
    let meter = provider.meter("gymrun");
    let sample = latest.clone();
    meter
        .u64_observable_gauge("gym.servers.active")
        .with_description("Gym servers that run now")
        .with_unit("{server}")
        .with_callback(move |gauge| sample.read(|s| gauge.observe(u64::from(s.servers_active), &[])))
        .build();
    if !memory {
        return;
    }
    tree_gauge(&meter, latest, "gym.server.memory.usage", "By", "Memory of a process tree", |gauge, tree| {
        observe_memory(gauge, tree, Some(tree.rss), tree.pss);
    });
    tree_gauge(&meter, latest, "gym.server.memory.sampled_peak", "By", "Greatest sampled memory of a process tree", {
        |gauge, tree| observe_memory(gauge, tree, Some(tree.peak_rss), tree.peak_pss)
    });
    tree_gauge(&meter, latest, "gym.server.processes", "{process}", "Processes of a process tree", |gauge, tree| {
        gauge.observe(u64::from(tree.processes), &attributes(tree));
    });
    host_gauge(&meter, latest, "gym.host.memory.usage", "Memory in use on the host", |h| h.used);
    host_gauge(&meter, latest, "gym.host.memory.available", "Memory available on the host", |h| h.available);
    host_gauge(&meter, latest, "gym.host.memory.total", "Memory of the host", |h| h.total);
    host_gauge(&meter, latest, "gym.host.memory.sampled_peak", "Greatest sampled memory in use", |h| h.peak);
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
        .with_callback(move |gauge| latest.read(|sample| sample.trees.iter().for_each(|tree| observe(gauge, tree))))
        .build();
}

fn host_gauge(
    meter: &Meter,
    latest: &Latest,
    name: &'static str,
    description: &'static str,
    value: impl Fn(&HostMemory) -> u64 + Send + Sync + 'static,
) {
    let latest = latest.clone();
    meter
        .u64_observable_gauge(name)
        .with_unit("By")
        .with_description(description)
        .with_callback(move |gauge| {
            latest.read(|sample| {
                // Without a total nothing was sampled.
                if sample.host.total > 0 {
                    gauge.observe(value(&sample.host), &[]);
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
        };
        Sample { trees: vec![tree], ..Sample::default() }
    }

    #[test]
    fn pss_stays_until_it_is_read_again_or_the_process_is_another() {
        let latest = Latest::default();
        let pss = |latest: &Latest| {
            let mut pss = None;
            latest.read(|sample| pss = sample.trees[0].pss);
            pss
        };
        latest.set(&sample(7, Some(5)));
        latest.set(&sample(7, None));
        latest.set(&sample(7, None));
        assert_eq!(pss(&latest), Some(5));
        latest.set(&sample(8, None));
        assert_eq!(pss(&latest), None);
    }
}
