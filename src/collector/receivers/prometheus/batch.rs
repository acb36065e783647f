//! What one scrape hands on: its samples by resource and scope.

use std::sync::Arc;

use super::exposition::Exemplar;
use super::family::{Broken, Families, Misfit};
use super::labels::{Labels, METRIC_NAME};
use super::metadata::Metadata;
use super::resource::resource_of;
use super::series::{SCOPE_PREFIX, Series};
use crate::otlp::{
    AnyValue, Items, KeyValue, Payload, Resource, ResourceItems, ScopeItems, Signal, Text, encode_scope,
};

/// The scope of samples that name none.
const SCOPE_NAME: &str = "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver";

/// Series that a target serves but that describe the target itself.
const TARGET_INFO: &str = "target_info";

/// The samples of one scrape.
#[derive(Debug)]
pub struct Batch<'a> {
    target: &'a Labels,
    resources: Vec<OfResource>,
    last_resource: usize,
}

#[derive(Debug)]
struct OfResource {
    job: String,
    instance: String,
    resource: Resource,
    scopes: Vec<OfScope>,
}

#[derive(Debug)]
struct OfScope {
    scope: Scope,
    families: Families,
}

/// What the `otel_scope_*` labels of a series say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Scope {
    name: String,
    version: String,
    schema_url: String,
    attributes: Vec<(String, String)>,
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is in a point: if the series vanishes, that must be said.
    Recorded,
    /// It described the target and is on the resource now.
    Described,
    /// It was left out.
    LeftOut(Misfit),
}

impl<'a> Batch<'a> {
    /// An empty batch of the target with these labels.
    #[must_use]
    pub fn new(target: &'a Labels) -> Self {
        Self { target, resources: Vec::new(), last_resource: 0 }
    }

    /// Takes up one sample.
    pub fn add(
        &mut self,
        series: &Series,
        metadata: &Metadata,
        timestamp_ms: i64,
        value: f64,
        exemplar: Option<&Exemplar>,
    ) -> Added {
        let place = self.resource_place(series);
        let resource = &mut self.resources[place];
        if series.name() == TARGET_INFO {
            let own = |name: &str| matches!(name, METRIC_NAME | "job" | "instance");
            for (name, value) in series.labels().iter().filter(|(name, _)| !own(name)) {
                resource.resource.upsert(name, value);
            }
            return Added::Described;
        }
        let scope = Scope::of(series.labels());
        let place = resource.scopes.iter().position(|of| of.scope == scope).unwrap_or_else(|| {
            resource.scopes.push(OfScope { scope, families: Families::default() });
            resource.scopes.len() - 1
        });
        let family = resource.scopes[place].families.of(series, metadata);
        match family.add(series, timestamp_ms, value, exemplar) {
            Ok(()) => Added::Recorded,
            Err(misfit) => Added::LeftOut(misfit),
        }
    }

    fn resource_place(&mut self, series: &Series) -> usize {
        let label = |name: &str| match series.labels().get(name) {
            "" => self.target.get(name),
            value => value,
        };
        let (job, instance) = (label("job"), label("instance"));
        let same = |of: &OfResource| of.job == job && of.instance == instance;
        if !self.resources.get(self.last_resource).is_some_and(same) {
            self.last_resource = if let Some(place) = self.resources.iter().position(same) {
                place
            } else {
                let resource = resource_of(job, instance, self.target.get("__scheme__"));
                let (job, instance) = (job.to_owned(), instance.to_owned());
                self.resources.push(OfResource { job, instance, resource, scopes: Vec::new() });
                self.resources.len() - 1
            };
        }
        self.last_resource
    }

    /// The batch as OTLP; points that contradict themselves are left out and counted in `broken`.
    #[must_use]
    pub fn write(self, broken: &mut Broken) -> Payload {
        let mut payload = Payload::new(Signal::Metrics);
        for of in self.resources {
            let mut scopes = Vec::new();
            for OfScope { scope, families } in &of.scopes {
                let metrics = families.write(broken);
                if !metrics.is_empty() {
                    let schema_url = Text::from(scope.schema_url.as_str());
                    scopes.push(ScopeItems { scope: scope.encode(), schema_url, items: Items::Metrics(metrics) });
                }
            }
            if !scopes.is_empty() {
                let resource = Arc::new(of.resource);
                payload.resources.push(ResourceItems { resource, schema_url: Text::default(), scopes });
            }
        }
        payload
    }
}

impl Scope {
    fn of(labels: &Labels) -> Self {
        let mut scope = Self::default();
        for (name, value) in labels.iter() {
            let Some(key) = name.strip_prefix(SCOPE_PREFIX) else { continue };
            match key {
                "name" => value.clone_into(&mut scope.name),
                "version" => value.clone_into(&mut scope.version),
                "schema_url" => value.clone_into(&mut scope.schema_url),
                _ => scope.attributes.push((key.to_owned(), value.to_owned())),
            }
        }
        scope
    }

    fn encode(&self) -> bytes::Bytes {
        if *self == Self::default() {
            return encode_scope(SCOPE_NAME, env!("CARGO_PKG_VERSION"), &[]);
        }
        let attribute = |(key, value): &(String, String)| KeyValue::new(key.as_str(), AnyValue::from(value.as_str()));
        let attributes: Vec<KeyValue> = self.attributes.iter().map(attribute).collect();
        encode_scope(&self.name, &self.version, &attributes)
    }
}
