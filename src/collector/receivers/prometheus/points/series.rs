//! One series as it is recorded, with what each scrape needs of it made once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::super::exposition::parse_boundary;
use super::super::record::{Labels, METRIC_NAME};
use crate::otlp::wire::Writer;

/// What kind of point a series goes into: it decides which labels are the point's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// Gauge or sum.
    Number,
    /// Histogram: `le` is a bound.
    Histogram,
    /// Summary: `quantile` is a part.
    Summary,
}

/// Labels that say where a series comes from; the resource has them.
const OF_THE_TARGET: [&str; 5] = [METRIC_NAME, "instance", "job", "__metrics_path__", "__scheme__"];

/// Labels that start so describe the scope.
const SCOPE_PREFIX: &str = "otel_scope_";

/// Where a series belongs in a payload: its resource and its scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The job, from which the resource is made.
    pub job: String,
    /// The instance, from which the resource is made.
    pub instance: String,
    /// What the `otel_scope_*` labels say.
    pub scope: Scope,
}

/// What the `otel_scope_*` labels of a series say; nothing for most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// `otel_scope_name`.
    pub name: String,
    /// `otel_scope_version`.
    pub version: String,
    /// `otel_scope_schema_url`.
    pub schema_url: String,
    /// The others, without the prefix.
    pub attributes: Vec<(String, String)>,
}

impl Origin {
    /// The origin of a series with these labels; job and instance are the target's where it has none.
    #[must_use]
    pub fn of(labels: &Labels, target: &Labels) -> Self {
        let label = |name: &str| match labels.get(name) {
            "" => target.get(name).to_owned(),
            value => value.to_owned(),
        };
        let mut scope = Scope::default();
        for (name, value) in labels.iter() {
            let Some(key) = name.strip_prefix(SCOPE_PREFIX) else { continue };
            match key {
                "name" => value.clone_into(&mut scope.name),
                "version" => value.clone_into(&mut scope.version),
                "schema_url" => value.clone_into(&mut scope.schema_url),
                _ => scope.attributes.push((key.to_owned(), value.to_owned())),
            }
        }
        Self { job: label("job"), instance: label("instance"), scope }
    }
}

/// A series with its final labels.
#[derive(Debug)]
pub struct Series {
    labels: Labels,
    origin: Arc<Origin>,
    name: Arc<str>,
    identity: u64,
    attributes: [OnceLock<PointAttributes>; 3],
}

impl Series {
    /// A series of these labels: the target's are in, names are unique, none is empty. `origin` is that of the labels,
    /// shared by all series that have the same.
    #[must_use]
    pub fn new(labels: Labels, origin: Arc<Origin>) -> Self {
        let name = labels.get(METRIC_NAME).into();
        let mut hasher = DefaultHasher::new();
        labels.hash(&mut hasher);
        Self { labels, origin, name, identity: hasher.finish(), attributes: Default::default() }
    }

    /// Its labels, the name included.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Where it belongs.
    #[must_use]
    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// The name of the metric.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// The same for series of the same labels, however they are written in the page.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The number in `le` or `quantile`.
    #[must_use]
    pub fn boundary(&self, label: &str) -> Option<f64> {
        parse_boundary(self.labels.get(label).as_bytes())
    }

    /// The attributes of its point, in wire form with the point's field number. Series of one family with the same
    /// attributes make one point.
    pub(super) fn attributes(&self, kind: PointKind) -> &PointAttributes {
        let (field, part) = match kind {
            PointKind::Number => (7, None),
            PointKind::Histogram => (9, Some("le")),
            PointKind::Summary => (7, Some("quantile")),
        };
        self.attributes[kind as usize].get_or_init(|| {
            let mut writer = Writer::new();
            for (name, value) in self.labels.iter() {
                let own = !OF_THE_TARGET.contains(&name) && Some(name) != part && !name.starts_with(SCOPE_PREFIX);
                if own && !value.is_empty() {
                    write_attribute(&mut writer, field, name, value);
                }
            }
            PointAttributes::new(writer.into_bytes())
        })
    }
}

/// The attributes of a point in wire form, with their hash: they are looked up at each scrape, and made once.
#[derive(Clone, Debug)]
pub(super) struct PointAttributes {
    pub bytes: Bytes,
    hash: u64,
}

impl PointAttributes {
    fn new(bytes: Bytes) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Self { bytes, hash: hasher.finish() }
    }
}

impl PartialEq for PointAttributes {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.bytes == other.bytes
    }
}

impl Eq for PointAttributes {}

impl Hash for PointAttributes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Takes a hash for what it is.
#[derive(Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        // Nobody comes here: `PointAttributes` gives one number.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A text attribute as a field of this number.
pub(super) fn write_attribute(writer: &mut Writer, field: u32, name: &str, value: &str) {
    writer.message_field(field, |attribute| {
        attribute.bytes_field(1, name.as_bytes());
        attribute.message_field(2, |any| any.bytes_field(1, value.as_bytes()));
    });
}
