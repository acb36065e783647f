//! What one scrape hands on: its samples by resource and scope.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::super::exposition::Exemplar;
use super::super::record::METRIC_NAME;
use super::families::Families;
use super::group::{Broken, Misfit, Role};
use super::metadata::Metadata;
use super::resource::resource_of;
use super::series::{Origin, Scope, Series};
use crate::otlp::{Items, KeyValue, Payload, Resource, ResourceItems, ScopeItems, Signal, Text, encode_scope};

/// The scope of samples that name none.
const SCOPE_NAME: &str = "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver";

/// Series that a target serves but that describe the target itself.
const TARGET_INFO: &str = "target_info";

/// The samples of one scrape.
#[derive(Debug)]
pub struct Batch {
    scheme: String,
    resources: Vec<OfResource>,
    /// The places of resource and scope of each origin.
    places: HashMap<Arc<Origin>, (usize, usize)>,
    /// The place of the resource of each job and instance.
    targets: HashMap<(String, String), usize>,
    /// Another number whenever names of series may lead to other families.
    generation: u64,
    /// The origin of the former sample, with the places of its resource and scope.
    last: Option<(Arc<Origin>, usize, usize)>,
}

#[derive(Debug)]
struct OfResource {
    resource: Arc<Resource>,
    /// The places of its attributes, once it is described.
    attributes: HashMap<Text, usize>,
    scopes: Vec<OfScope>,
}

#[derive(Debug)]
struct OfScope {
    origin: Arc<Origin>,
    families: Families,
}

/// Where a sample is in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    resource: usize,
    scope: usize,
    family: usize,
    group: usize,
    role: Role,
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is in a point: if the series vanishes, that must be said.
    Recorded(Slot),
    /// It described the target and is on the resource now.
    Described,
    /// It was left out.
    LeftOut(Misfit),
}

impl OfResource {
    /// Gives the resource these attributes.
    fn describe<'l>(&mut self, labels: impl Iterator<Item = (&'l str, &'l str)>) {
        let attributes = &mut Arc::make_mut(&mut self.resource).attributes;
        if self.attributes.is_empty() {
            self.attributes = attributes.iter().map(|known| known.key.clone()).zip(0..).collect();
        }
        for (name, value) in labels {
            let attribute = KeyValue::new(name, value);
            match self.attributes.entry(attribute.key.clone()) {
                Entry::Occupied(place) => attributes[*place.get()] = attribute,
                Entry::Vacant(place) => {
                    place.insert(attributes.len());
                    attributes.push(attribute);
                }
            }
        }
    }
}

impl Batch {
    /// An empty batch of a target with this scheme.
    #[must_use]
    pub fn new(scheme: &str) -> Self {
        let (resources, places, targets) = Default::default();
        Self { scheme: scheme.to_owned(), resources, places, targets, generation: 0, last: None }
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
        let (resource, scope) = self.place(series.origin());
        let of = &mut self.resources[resource];
        if series.name() == TARGET_INFO {
            let own = |name: &str| matches!(name, METRIC_NAME | "job" | "instance");
            of.describe(series.labels().iter().filter(|(name, _)| !own(name)));
            return Added::Described;
        }
        let families = &mut of.scopes[scope].families;
        let family = families.of(series, metadata, self.generation);
        match families.list()[family].add(series, timestamp_ms, value, exemplar) {
            Ok((group, role)) => Added::Recorded(Slot { resource, scope, family, group, role }),
            Err(misfit) => Added::LeftOut(misfit),
        }
    }

    /// Gives a sample another value.
    pub fn put(&mut self, slot: Slot, value: f64) {
        let Slot { resource, scope, family, group, role } = slot;
        self.resources[resource].scopes[scope].families.list()[family].put(group, role, value);
    }

    /// Gives all points this time.
    pub fn set_time(&mut self, timestamp_ms: i64) {
        let scopes = self.resources.iter_mut().flat_map(|of| &mut of.scopes);
        scopes.flat_map(|scope| scope.families.list()).for_each(|family| family.set_time(timestamp_ms));
    }

    /// The metadata has changed what names of series lead to.
    pub fn resolve_anew(&mut self) {
        self.generation += 1;
    }

    /// Where samples of this origin go: resource and scope.
    fn place(&mut self, origin: &Arc<Origin>) -> (usize, usize) {
        if let Some((last, resource, scope)) = &self.last
            && Arc::ptr_eq(last, origin)
        {
            return (*resource, *scope);
        }
        let known = self.places.get(origin).copied();
        let (resource, scope) = known.unwrap_or_else(|| self.new_place(origin));
        self.last = Some((Arc::clone(origin), resource, scope));
        (resource, scope)
    }

    fn new_place(&mut self, origin: &Arc<Origin>) -> (usize, usize) {
        let target = (origin.job.clone(), origin.instance.clone());
        let resource = *self.targets.entry(target).or_insert_with(|| {
            let resource = Arc::new(resource_of(&origin.job, &origin.instance, &self.scheme));
            self.resources.push(OfResource { resource, attributes: HashMap::new(), scopes: Vec::new() });
            self.resources.len() - 1
        });
        let scopes = &mut self.resources[resource].scopes;
        scopes.push(OfScope { origin: Arc::clone(origin), families: Families::default() });
        let place = (resource, scopes.len() - 1);
        self.places.insert(Arc::clone(origin), place);
        place
    }

    /// The batch as OTLP; points that contradict themselves are left out and counted in `broken`. `trim` cuts type and
    /// unit off the names of metrics.
    #[must_use]
    pub fn write(&self, trim: bool, broken: &mut Broken) -> Payload {
        let mut payload = Payload::new(Signal::Metrics);
        for of in &self.resources {
            let mut scopes = Vec::new();
            for OfScope { origin, families } in &of.scopes {
                let metrics = families.write(trim, broken);
                if !metrics.is_empty() {
                    let schema_url = Text::from(origin.scope.schema_url.as_str());
                    scopes.push(ScopeItems {
                        scope: encode(&origin.scope),
                        schema_url,
                        items: Items::Metrics(metrics),
                    });
                }
            }
            if !scopes.is_empty() {
                let resource = Arc::clone(&of.resource);
                payload.resources.push(ResourceItems { resource, schema_url: Text::default(), scopes });
            }
        }
        payload
    }
}

fn encode(scope: &Scope) -> bytes::Bytes {
    if *scope == Scope::default() {
        return encode_scope(SCOPE_NAME, env!("CARGO_PKG_VERSION"), &[]);
    }
    let attribute = |(key, value): &(String, String)| KeyValue::new(key.as_str(), value.as_str());
    let attributes: Vec<KeyValue> = scope.attributes.iter().map(attribute).collect();
    encode_scope(&scope.name, &scope.version, &attributes)
}
