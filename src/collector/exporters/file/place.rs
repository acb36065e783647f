//! Where a writer's file is: it is opened when it is wanted first.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::config::Settings;
use super::output::{Mended, Output};
use crate::collector::component::Context;
use crate::collector::log::Log;

/// The files that this process has opened: a reload of the configuration does not empty them again, nor does whoever
/// closes one of many and opens it again. There is one on disk for each, so they are all kept.
#[derive(Default)]
pub struct OpenedFiles {
    paths: Mutex<HashSet<PathBuf>>,
}

/// The file that settings tell of.
pub(super) struct Place {
    settings: Settings,
    key: PathBuf,
    opened: Arc<OpenedFiles>,
    log: Log,
    output: Option<Output>,
}

impl Place {
    /// Not opened yet; `key` is the path as all know it.
    pub fn new(settings: &Settings, key: PathBuf, context: &Context) -> Self {
        let (settings, opened) = (settings.clone(), context.shared.get::<OpenedFiles>());
        Self { settings, key, opened, log: context.log.clone(), output: None }
    }

    /// The open file. It may block: a pipe waits for its reader.
    pub fn open(&mut self) -> io::Result<&mut Output> {
        let output = match self.output.take() {
            Some(output) => output,
            None => self.open_first()?,
        };
        Ok(self.output.insert(output))
    }

    fn open_first(&self) -> io::Result<Output> {
        let paths = || self.opened.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let Settings { path, append, create_directory, form, rotation, .. } = &self.settings;
        if let (Some(mode), Some(directory)) = (create_directory, path.parent())
            && !directory.as_os_str().is_empty()
        {
            DirBuilder::new().recursive(true).mode(*mode).create(directory)?;
        }
        let again = paths().contains(&self.key);
        let mut output = Output::open(path, *append || again, rotation.clone())?;
        if form.is_lines() && output.end_line()? {
            let path = path.display();
            self.log.warn(&format!("the last line of {path} had no end (was its writer killed?): a new one begins"));
        }
        if !form.is_lines()
            && let Some(mended) = output.end_message()?
        {
            let what = match mended {
                Mended::Cut(bytes) => format!("its {bytes} bytes are cut off, since nothing behind them could be read"),
                Mended::PutAside(aside) => format!("nothing of it could be read, and it is {} now", aside.display()),
            };
            self.log
                .warn(&format!("the last message of {} is not whole (was its writer killed?): {what}", path.display()));
        }
        paths().insert(self.key.clone());
        Ok(output)
    }
}
