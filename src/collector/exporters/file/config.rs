//! What the `file` exporter is told, and how it starts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::form::Form;
use super::groups::{GroupBy, Groups};
use super::output::Rotation;
use super::writer::{Writer, Writers};
use crate::collector::component::{
    Built, Consumer, Context, EVERY_SIGNAL, Exporter, Factory, Refusal, Running, Signals, WrittenFile,
};
use crate::collector::config::section::Section;
use crate::collector::deadline::Deadline;
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Exporter> =
    Factory { names: &["file"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

/// Where and how messages are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub path: PathBuf,
    /// Keep what is in the file, instead of emptying it at the start.
    pub append: bool,
    /// How long a message may wait in memory.
    pub flush_interval: Duration,
    /// Make the directory of the file if it is not there, with these permissions.
    pub create_directory: Option<u32>,
    pub form: Form,
    pub rotation: Option<Rotation>,
    pub group_by: Option<GroupBy>,
}

impl Settings {
    /// The path as all know it who write it.
    pub fn key(&self) -> PathBuf {
        std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// The same for the file of a group, whose directory is made in any case.
    pub fn at(&self, path: &Path) -> Self {
        let create_directory = self.create_directory.or(Some(DIRECTORY_MODE));
        Self { path: path.to_owned(), group_by: None, create_directory, ..self.clone() }
    }
}

/// Of directories that are made, where nobody says otherwise.
const DIRECTORY_MODE: u32 = 0o755;

fn read(section: &mut Section<'_>) -> Option<Box<dyn Exporter>> {
    section.unsupported(&["encoding"]);
    let path = section.required_text("path");
    let append = section.boolean("append").unwrap_or(false);
    let flush_interval = section.duration("flush_interval").filter(|d| !d.is_zero()).unwrap_or(Duration::from_secs(1));
    let create_directory = directory(section);
    let protobuf = section.word("format", &["json", "proto"]) == Some("proto");
    let zstd = zstd(section);
    let rotation = if section.has("rotation") { section.section("rotation", rotation) } else { None };
    if append && rotation.is_some() {
        section.problem("rotation", Problem::new("`append` and `rotation` do not go together"));
    }
    let group_by = section.section("group_by", group_by).flatten();
    let path = PathBuf::from(path?);
    if group_by.is_some() {
        GroupBy::check(section, &path);
    }
    let form = Form { protobuf, zstd };
    Some(Box::new(Settings { path, append, flush_interval, create_directory, form, rotation, group_by }))
}

/// The permissions of a directory that is made; `None`: none is made.
fn directory(section: &mut Section<'_>) -> Option<u32> {
    const KEY: &str = "directory_permissions";
    let create = section.boolean("create_directory").unwrap_or(false);
    let text = section.text(KEY).filter(|text| !text.is_empty());
    if !create {
        if text.is_some() {
            section.problem(KEY, Problem::new(format!("`{KEY}` needs `create_directory: true`")));
        }
        return None;
    }
    let Some(text) = text else { return Some(DIRECTORY_MODE) };
    let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777);
    if mode.is_none() {
        let problem = Problem::new(format!("`{text}` is no octal number of permissions"));
        section.problem(KEY, problem.hint("write it in quotes, such as \"0755\""));
    }
    mode
}

fn zstd(section: &mut Section<'_>) -> Option<i32> {
    let compressed = section.word("compression", &["zstd", "none", ""]) == Some("zstd");
    let level = section.section("compression_params", |parameters| parameters.integer("level", 1)).flatten();
    compressed.then(|| level.and_then(|level| i32::try_from(level.min(22)).ok()).unwrap_or(3))
}

fn rotation(section: &mut Section<'_>) -> Rotation {
    let megabytes = section.integer("max_megabytes", 0).filter(|megabytes| *megabytes > 0).unwrap_or(100);
    Rotation {
        largest: u64::try_from(megabytes).unwrap_or(100).saturating_mul(1 << 20),
        days: section.integer("max_days", 0).unwrap_or(0).min(100_000),
        backups: section.integer("max_backups", 0).and_then(|count| usize::try_from(count).ok()).unwrap_or(100),
        local_time: section.boolean("localtime").unwrap_or(false),
    }
}

fn group_by(section: &mut Section<'_>) -> Option<GroupBy> {
    let enabled = section.boolean("enabled").unwrap_or(false);
    let attribute = section.text("resource_attribute").unwrap_or_else(|| "fileexporter.path_segment".to_owned());
    let most = section.integer("max_open_files", 1).and_then(|count| usize::try_from(count).ok()).unwrap_or(100);
    if enabled && attribute.is_empty() {
        section.problem("resource_attribute", Problem::new("`resource_attribute` is empty"));
    }
    enabled.then_some(GroupBy { attribute, most_open: most })
}

impl Exporter for Settings {
    fn file(&self) -> Option<WrittenFile> {
        let none = || "none".to_owned();
        let rotation = |rotation: &Rotation| {
            let Rotation { largest, days, backups, local_time } = rotation;
            let zone = if *local_time { "local time" } else { "UTC" };
            format!("{} MiB, {days} days, {backups} backups, {zone}", largest >> 20)
        };
        let keys = vec![
            ("format", if self.form.protobuf { "proto" } else { "json" }.to_owned()),
            ("compression", self.form.zstd.map_or_else(none, |level| format!("zstd, level {level}"))),
            ("append", self.append.to_string()),
            ("flush_interval", format!("{:?}", self.flush_interval)),
            ("create_directory", self.create_directory.map_or("false".to_owned(), |mode| format!("{mode:04o}"))),
            ("rotation", self.rotation.as_ref().map_or_else(none, rotation)),
            ("group_by", self.group_by.is_some().to_string()),
        ];
        Some(WrittenFile { path: self.key(), keys })
    }

    fn start(self: Box<Self>, context: Context, _signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        Box::pin(async move {
            if let Some(group_by) = self.group_by.clone() {
                return Groups::start(*self, group_by, context);
            }
            let writer = context.shared.get::<Writers>().open(&self, &context).await?;
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

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.writer.ready())
    }
}

struct Open {
    writer: Arc<Writer>,
}

impl Running for Open {
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.writer.flush())
    }

    fn shutdown(self: Box<Self>, _deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.writer.flush().await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::read_section;

    #[test]
    fn a_size_of_megabytes_beyond_all_bytes_is_the_greatest_there_is() {
        for (given, wanted) in
            [("0", 100 << 20), ("1", 1 << 20), ("17592186044416", u64::MAX), ("9223372036854775807", u64::MAX)]
        {
            read_section(&format!("max_megabytes: {given}"), |section| {
                assert_eq!(self::rotation(section).largest, wanted, "{given}");
            });
        }
    }
}
