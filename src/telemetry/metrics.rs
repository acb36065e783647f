//! The metrics of seed 001's memory profiling, as gauges over the last sample.

use std::sync::{Arc, Mutex};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::events::{HostMemory, Sample, TreeSample};

/// The last sample, shared with the gauges that are read at each export.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest(Arc<Mutex<Option<Sample>>>);

impl Latest {
    pub(super) fn set(&self, sample: &Sample) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(sample.clone());
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
        .with_callback(move |gauge| latest.read(|sample| gauge.observe(value(&sample.host), &[])))
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
