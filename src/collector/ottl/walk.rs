//! Going through a payload, item by item, and putting back what has changed.

use std::mem::swap;
use std::sync::Arc;

use bytes::Bytes;

use super::context::Level;
use super::scene::{PointKind, Scene};
use crate::otlp::{Edit, Items, Metric, Payload, Resource, ResourceItems, Revision, ScopeItems, Text};

/// Whether the item stays; an error ends the walk.
pub type Visit<'a> = dyn FnMut(&mut Scene) -> Result<bool, String> + 'a;

/// Calls `visit` for each item of the context. What is around an item that goes stays, even if it is empty then.
///
/// After an error the payload is as far as it came, and must not be used.
pub fn walk(payload: &mut Payload, context: Level, visit: &mut Visit<'_>) -> Result<(), String> {
    let mut walker = Walker { context, visit, failure: None, scene: Scene::default() };
    payload.resources.retain_mut(|entry| walker.resource(entry));
    walker.failure.map_or(Ok(()), Err)
}

struct Walker<'a, 'b> {
    context: Level,
    visit: &'a mut Visit<'b>,
    failure: Option<String>,
    scene: Scene,
}

impl Walker<'_, '_> {
    /// Visits the scene's item.
    fn stays(&mut self) -> bool {
        if self.failure.is_some() {
            return true;
        }
        (self.visit)(&mut self.scene).unwrap_or_else(|failure| {
            self.failure = Some(failure);
            true
        })
    }

    fn resource(&mut self, entry: &mut ResourceItems) -> bool {
        self.swap_resource(&mut entry.resource, &mut entry.schema_url);
        let stays = if self.context == Level::Resource {
            self.stays()
        } else {
            entry.scopes.retain_mut(|scope| self.scope(scope));
            true
        };
        self.swap_resource(&mut entry.resource, &mut entry.schema_url);
        stays
    }

    fn swap_resource(&mut self, resource: &mut Arc<Resource>, schema_url: &mut Text) {
        swap(&mut self.scene.resource, resource);
        swap(&mut self.scene.resource_schema_url, schema_url);
    }

    fn scope(&mut self, entry: &mut ScopeItems) -> bool {
        self.scene.scope = Edit::new(entry.scope.clone());
        swap(&mut self.scene.scope_schema_url, &mut entry.schema_url);
        let stays = if self.context == Level::Scope {
            self.stays()
        } else {
            match &mut entry.items {
                Items::Records(records) => records.revise(|record| self.record(record)),
                Items::Metrics(metrics) => metrics.retain_mut(|metric| self.metric(metric)),
            }
            true
        };
        if self.scene.scope.is_changed() {
            entry.scope = self.scene.scope.finish();
        }
        swap(&mut self.scene.scope_schema_url, &mut entry.schema_url);
        stays
    }

    fn record(&mut self, record: Bytes) -> Revision {
        let edit = Edit::new(record);
        match self.context {
            Level::Log => {
                self.scene.log = edit;
                self.revision(|scene| &scene.log)
            }
            Level::SpanEvent => self.events(edit),
            _ => {
                self.scene.span = edit;
                self.revision(|scene| &scene.span)
            }
        }
    }

    /// Visits an item and says what becomes of its message.
    fn revision(&mut self, item: fn(&Scene) -> &Edit) -> Revision {
        if !self.stays() {
            return Revision::Drop;
        }
        let item = item(&self.scene);
        if item.is_changed() { Revision::Replace(item.finish()) } else { Revision::Keep }
    }

    fn events(&mut self, mut span: Edit) -> Revision {
        let events: Arc<[Bytes]> = span.messages(11).into();
        if events.is_empty() {
            return Revision::Keep;
        }
        span.set(11, |_| ());
        self.scene.span = Edit::new(span.finish());
        let revised = self.each(&events, |scene, event| scene.event = event, |scene| &scene.event);
        if revised.is_none() && !self.scene.span.is_changed() {
            return Revision::Keep;
        }
        self.scene.span.set_messages(11, revised.as_deref().unwrap_or(&events));
        Revision::Replace(self.scene.span.finish())
    }

    /// Visits each message of a list; gives the new list if it has changed.
    fn each(
        &mut self,
        messages: &Arc<[Bytes]>,
        put: fn(&mut Scene, Edit),
        item: fn(&Scene) -> &Edit,
    ) -> Option<Vec<Bytes>> {
        self.scene.walked = Some(Arc::clone(messages));
        let mut revised = Vec::with_capacity(messages.len());
        let mut changed = false;
        for message in messages.iter() {
            put(&mut self.scene, Edit::new(message.clone()));
            match self.revision(item) {
                Revision::Keep => revised.push(message.clone()),
                Revision::Replace(message) => {
                    revised.push(message);
                    changed = true;
                }
                Revision::Drop => changed = true,
            }
        }
        self.scene.walked = None;
        changed.then_some(revised)
    }

    fn metric(&mut self, metric: &mut Metric) -> bool {
        swap(&mut self.scene.metric_name, &mut metric.name);
        self.scene.metric = Edit::new(metric.rest().clone());
        let stays = if self.context == Level::Metric {
            self.stays()
        } else {
            self.points();
            true
        };
        swap(&mut self.scene.metric_name, &mut metric.name);
        if stays && self.scene.metric.is_changed() {
            *metric = Metric::new(metric.name.clone(), self.scene.metric.finish());
        }
        stays
    }

    fn points(&mut self) {
        let Some(data) = self.scene.data() else { return };
        self.scene.point_kind = PointKind::of(data);
        let whole = std::mem::take(&mut self.scene.metric);
        let points: Arc<[Bytes]> = Edit::new(whole.inner(data)).messages(1).into();
        let mut bare = whole.clone();
        bare.set_inner(data, |inner| inner.set(1, |_| ()));
        self.scene.metric = Edit::new(bare.finish());
        let revised = self.each(&points, |scene, point| scene.point = point, |scene| &scene.point);
        if revised.is_none() && !self.scene.metric.is_changed() {
            self.scene.metric = whole;
            return;
        }
        let points = revised.as_deref().unwrap_or(&points);
        self.scene.metric.set_inner(data, |inner| inner.set_messages(1, points));
    }
}
