//! The `attributes` processor: a list of actions on the attributes of spans, data points and log records.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::actions::{self, Action};
use super::matching::{self, Matching};
use crate::collector::component::{Built, Consumer, Context, EVERY_SIGNAL, Factory, Next, Processor, Refusal, Signals};
use crate::collector::config::section::Section;
use crate::collector::ottl::{Level, Scene, walk};
use crate::diag::Problem;
use crate::otlp::{Edit, Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Processor> =
    Factory { names: &["attributes"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

struct Settings {
    actions: Arc<[Action]>,
    forms: matching::Forms,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Processor>> {
    let forms = matching::read(section);
    Some(Box::new(Settings { actions: actions::read(section, "actions")?.into(), forms }))
}

impl Processor for Settings {
    fn suits(&self, signal: Signal) -> Result<(), Problem> {
        self.forms.of(signal).map(drop)
    }

    fn build(&self, _context: Context, signal: Signal, next: Next) -> Result<Built, Problem> {
        let matching = self.forms.of(signal)?;
        Ok(Built::stateless(Editor { actions: self.actions.clone(), matching, signal, next }))
    }
}

struct Editor {
    actions: Arc<[Action]>,
    matching: Matching,
    signal: Signal,
    next: Next,
}

impl Editor {
    fn edit(&self, payload: &mut Payload) -> Result<(), String> {
        match self.signal {
            Signal::Traces => self.edit_level(payload, Level::Span, Level::Span, |scene| (&mut scene.span, 9)),
            Signal::Logs => self.edit_level(payload, Level::Log, Level::Log, |scene| (&mut scene.log, 6)),
            // Of metrics the points have attributes.
            Signal::Metrics => self.edit_level(payload, Level::DataPoint, Level::Metric, |scene| {
                let number = scene.point_kind.attributes();
                (&mut scene.point, number)
            }),
        }
    }

    fn edit_level(
        &self,
        payload: &mut Payload,
        level: Level,
        matched: Level,
        attributes: fn(&mut Scene) -> (&mut Edit, u32),
    ) -> Result<(), String> {
        walk(payload, level, &mut |scene| {
            if !self.matching.is_empty() && !self.matching.means(matched, scene) {
                return Ok(true);
            }
            let (item, number) = attributes(scene);
            for action in self.actions.iter() {
                if action.concerns(|key| item.attribute(number, key).is_some()) {
                    let mut list = item.attributes(number);
                    action.apply(&mut list);
                    if list != item.attributes(number) {
                        *item.attributes_mut(number) = list;
                    }
                }
            }
            Ok(true)
        })
    }
}

impl Consumer for Editor {
    fn consume(&self, mut payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        match self.edit(&mut payload) {
            Ok(()) => Box::pin(self.next.consume(payload)),
            Err(failure) => Box::pin(std::future::ready(Err(Refusal::retryable("attributes", failure)))),
        }
    }
}
