//! What the `file` exporter is told, and how it starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::writer::{Writer, Writers};
use crate::collector::component::{
    Built, Consumer, Context, EVERY_SIGNAL, Exporter, Factory, Refusal, Running, Signals,
};
use crate::collector::section::Section;
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Exporter> =
    Factory { names: &["file"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

/// Where and how lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub path: PathBuf,
    /// Keep what is in the file, instead of emptying it at the start.
    pub append: bool,
    /// How long a line may wait in memory.
    pub flush_interval: Duration,
    /// Make the directory of the file if it is not there.
    pub create_directory: bool,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Exporter>> {
    section.unsupported(&["rotation", "group_by", "encoding", "directory_permissions"]);
    let path = section.required_text("path");
    let append = section.boolean("append").unwrap_or(false);
    let flush_interval = section.duration("flush_interval").filter(|d| !d.is_zero()).unwrap_or(Duration::from_secs(1));
    let create_directory = section.boolean("create_directory").unwrap_or(false);
    section.word("format", &["json"]);
    section.word("compression", &["none", ""]);
    Some(Box::new(Settings { path: path?.into(), append, flush_interval, create_directory }))
}

impl Exporter for Settings {
    fn start(self: Box<Self>, context: Context, _signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        Box::pin(async move {
            let writer = context.shared.get::<Writers>().open(&self, &context)?;
            let file = File { writer: writer.clone(), context };
            Ok(Built { consumer: Arc::new(file), running: Box::new(Open { writer }) })
        })
    }
}

struct File {
    writer: Arc<Writer>,
    context: Context,
}

impl Consumer for File {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(self.writer.write(&self.context, payload))
    }
}

struct Open {
    writer: Arc<Writer>,
}

impl Running for Open {
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.writer.flush())
    }

    fn shutdown(self: Box<Self>, _deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.writer.flush().await })
    }
}
