//! What the unit tests of components share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::component::{Consumer, Context, Refusal, Shared};
use super::log::{Level, Log};
use crate::collector::config::load;
use crate::collector::config::section::{Findings, Section};
use crate::otlp::wire::Writer;
use crate::otlp::{Payload, Signal};

/// A context whose lines go nowhere.
pub fn context(name: &str) -> Context {
    Context {
        name: name.into(),
        log: Log::new(Arc::new(|_| ()), Level::Debug),
        counters: Arc::default(),
        controls: Arc::default(),
        shared: Shared::default(),
    }
}

/// A request of `count` spans named `s0`, `s1`, ... of one resource and scope.
pub fn spans(count: usize) -> Payload {
    let mut request = Writer::new();
    request.message_field(1, |entry| {
        entry.message_field(1, |resource| {
            resource.message_field(1, |attribute| {
                attribute.bytes_field(1, b"service.name");
                attribute.message_field(2, |value| value.bytes_field(1, b"shop"));
            });
        });
        entry.message_field(2, |scope| {
            for index in 0..count {
                scope.message_field(2, |span| {
                    span.bytes_field(1, &[1; 16]);
                    span.bytes_field(2, &[2; 8]);
                    span.bytes_field(5, format!("s{index}").as_bytes());
                });
            }
        });
    });
    Payload::decode(Signal::Traces, request.into_vec()).expect("valid")
}

/// Waits for a condition; fails after a minute.
pub async fn eventually(mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), wait).await.expect("the condition came true");
}

/// Keeps what it is given; or refuses it all.
#[derive(Clone, Default)]
pub struct Keeper {
    pub payloads: Arc<Mutex<Vec<Payload>>>,
    pub refuse: Option<Refusal>,
}

impl Keeper {
    /// The item counts of what came, in order.
    pub fn counts(&self) -> Vec<usize> {
        self.payloads.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Payload::item_count).collect()
    }
}

impl Consumer for Keeper {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        let result = if let Some(refusal) = &self.refuse {
            Err(refusal.clone())
        } else {
            self.payloads.lock().unwrap_or_else(PoisonError::into_inner).push(payload);
            Ok(())
        };
        Box::pin(std::future::ready(result))
    }
}

/// Reads YAML as a section, with `TEST_NUMBER=123456` as the environment; fails if there are problems.
pub fn read_section<T>(yaml: &str, read: impl FnOnce(&mut Section<'_>) -> T) -> T {
    let (result, text) = section(yaml, read);
    assert_eq!(text, "");
    result.expect("a map")
}

/// The problems of a section, as text.
pub fn problems_of(yaml: &str, read: impl FnOnce(&mut Section<'_>)) -> String {
    section(yaml, read).1
}

fn section<T>(yaml: &str, read: impl FnOnce(&mut Section<'_>) -> T) -> (Option<T>, String) {
    let findings = Findings::new("c.yaml");
    let variable = |name: &str| (name == "TEST_NUMBER").then(|| "123456".into());
    let node = load::read_text(yaml, &variable, &findings).expect("YAML");
    let result = Section::read(&findings, &node, "component", 1, read);
    let text: Vec<String> = findings.problems.take().iter().map(ToString::to_string).collect();
    (result, text.join("\n"))
}
