//! Running the statements.

use std::mem::swap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

use crate::collector::component::{Built, Consumer, Context, Next, Processor, Refusal};
use crate::collector::ottl::{Group, walk};
use crate::diag::Problem;
use crate::otlp::{KeyValue, Payload, Resource, Signal};

/// A group, with the map that it shares with the other groups of its context and that outlives the payloads, if it
/// shares one.
pub(super) struct Member {
    pub group: Group,
    pub shared_cache: Option<Arc<Mutex<Vec<KeyValue>>>>,
}

pub(super) struct Settings {
    /// By signal.
    pub groups: [Arc<[Member]>; 3],
}

impl Processor for Settings {
    fn build(&self, context: Context, signal: Signal, next: Next) -> Result<Built, Problem> {
        Ok(Built::stateless(Editor { context, groups: self.groups[signal as usize].clone(), next }))
    }
}

struct Editor {
    context: Context,
    groups: Arc<[Member]>,
    next: Next,
}

impl Editor {
    /// Each group goes through the whole payload before the next one does.
    fn edit(&self, payload: &mut Payload) -> Result<(), Refusal> {
        for Member { group, shared_cache } in self.groups.iter() {
            let say = |failure: &str| self.context.log.limited(failure);
            let mut shared = shared_cache.as_ref().map(|cache| cache.lock().unwrap_or_else(PoisonError::into_inner));
            let walked = walk(payload, group.context, &mut |scene| {
                match &mut shared {
                    Some(cache) => swap(&mut scene.cache, &mut **cache),
                    None => scene.cache.clear(),
                }
                let result = group.run(scene, &say);
                if let Some(cache) = &mut shared {
                    swap(&mut scene.cache, &mut **cache);
                }
                result.map(|()| true)
            });
            if let Some(cache) = &mut shared {
                // It outlives the payload, and must not keep the bytes of the request for what was put into it.
                let kept = Resource { attributes: std::mem::take(&mut **cache), ..Resource::default() };
                **cache = kept.detached().attributes;
            }
            walked.map_err(|failure| Refusal::retryable("statement", failure))?;
        }
        Ok(())
    }
}

impl Consumer for Editor {
    fn consume(&self, mut payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        match self.edit(&mut payload) {
            Ok(()) => Box::pin(self.next.consume(payload)),
            Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
        }
    }
}
