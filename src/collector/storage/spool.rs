//! The stored requests of one exporter and signal.
//!
//! A file is one line of JSON (what was taken out, how many items) and the request as zstd-compressed protobuf. Its name is
//! a number: the smaller, the older. A file is whole or not there, however the process ends; when the machine fails, that
//! holds for those that were [synced](Spool::synced).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::credentials::{Credential, Removed, put_back, take_out};
use crate::diag::counted;
use crate::files::{write_synced, write_whole};
use crate::otlp::{Payload, Signal};

/// The most bytes that one spool holds.
const MOST_BYTES: u64 = 1 << 30;

/// Names of files end with this.
const EXTENSION: &str = "otlp";

/// What stands in front of a request.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    signal: String,
    items: usize,
    removed: Vec<Removed>,
}

/// One folder of stored requests.
pub struct Spool {
    folder: PathBuf,
    credentials: Arc<[Credential]>,
    entries: Mutex<Entries>,
    settled: watch::Sender<Option<Settled>>,
    write: fn(&Path, &[u8], u32) -> io::Result<()>,
}

/// A request that is on disk already, for [`Spool::add`].
#[must_use]
#[derive(Debug)]
pub struct Put {
    number: u64,
    size: u64,
}

/// How the sending of what is stored came to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Why it stopped before the end.
    pub problem: Option<String>,
}

#[derive(Default)]
struct Entries {
    /// Number to size.
    files: BTreeMap<u64, u64>,
    bytes: u64,
    next: u64,
    items_at_start: usize,
    /// Files that cannot be read, or not removed.
    skipped: usize,
}

impl Spool {
    /// Opens (or makes) a folder.
    pub fn open(folder: &Path, credentials: Arc<[Credential]>) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut entries = Entries::default();
        for entry in fs::read_dir(folder)? {
            let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            if let Some(number) = number_of(&path) {
                let next = number.checked_add(1).ok_or_else(|| {
                    io::Error::other(format!("no number comes after that of {}: move it away", path.display()))
                })?;
                entries.next = entries.next.max(next);
                if !metadata.is_file() {
                    // Nobody stored that: a pipe would never be read to its end.
                    continue;
                }
                entries.files.insert(number, metadata.len());
                entries.bytes = entries.bytes.saturating_add(metadata.len());
                // One that cannot be read is named when it is its turn.
                let items = read_head(&path).map_or(0, |head| head.items);
                entries.items_at_start = entries.items_at_start.saturating_add(items);
            } else if entry_is_unfinished(&path) {
                // The folder is ours alone: whoever began it was killed, and it is no request.
                fs::remove_file(&path)?;
            }
        }
        let settled = if entries.files.is_empty() { Some(Settled { problem: None }) } else { None };
        let (folder, settled) = (folder.to_owned(), watch::Sender::new(settled));
        Ok(Self { folder, credentials, entries: Mutex::new(entries), settled, write: write_whole })
    }

    /// Whether a request is on the disk, and not only on its way there, when it counts as stored.
    #[must_use]
    pub fn synced(mut self, synced: bool) -> Self {
        self.write = if synced { write_synced } else { write_whole };
        self
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().files.is_empty()
    }

    /// How many requests are stored.
    #[must_use]
    pub fn len(&self) -> usize {
        let entries = self.entries();
        entries.files.len() + entries.skipped
    }

    /// How many items were stored when it was opened.
    #[must_use]
    pub fn items(&self) -> usize {
        self.entries().items_at_start
    }

    /// Writes a request without its credentials to a file. [`Spool::add`] makes it one of those that are to be sent.
    pub async fn put(self: &Arc<Self>, payload: Payload) -> io::Result<Put> {
        let spool = self.clone();
        tokio::task::spawn_blocking(move || spool.write(payload)).await.map_err(io::Error::other)?
    }

    fn write(&self, payload: Payload) -> io::Result<Put> {
        let bytes = encode(payload, &self.credentials)?;
        let size = bytes.len() as u64;
        let number = {
            let mut entries = self.entries();
            if entries.bytes.saturating_add(size) > MOST_BYTES {
                return Err(io::Error::other("the storage is full"));
            }
            let number = entries.next;
            entries.next = number.checked_add(1).ok_or_else(|| io::Error::other("there is no further number"))?;
            entries.bytes = entries.bytes.saturating_add(size);
            number
        };
        let file = self.path_of(number);
        let written = (self.write)(&file, &bytes, 0o600);
        if written.is_err() {
            // It counts as dropped: nobody shall send it.
            let _ = fs::remove_file(&file);
            let mut entries = self.entries();
            entries.bytes = entries.bytes.saturating_sub(size);
        }
        written.map(|()| Put { number, size })
    }

    /// From now on the request is sent when it is its turn.
    pub fn add(&self, Put { number, size }: Put) {
        self.entries().files.insert(number, size);
    }

    /// The files in the order in which they were stored; those from `first` on before the others.
    #[must_use]
    pub fn files(&self, first: Option<&Path>) -> Vec<PathBuf> {
        let first = first.and_then(number_of).unwrap_or(0);
        let entries = self.entries();
        let numbers = entries.files.range(first..).chain(entries.files.range(..first));
        numbers.map(|(number, _)| self.path_of(*number)).collect()
    }

    /// The request of a file, with its credentials back.
    pub async fn read(&self, file: &Path, signal: Signal) -> io::Result<Payload> {
        let (file, credentials) = (file.to_owned(), self.credentials.clone());
        let read = move || read_file(&file, signal, &credentials);
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
    }

    /// Removes a file whose request came to its end. One that cannot be removed is not tried again here.
    pub fn remove(&self, file: &Path) -> io::Result<()> {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.skip(file);
                Err(error)
            }
            _ => {
                self.forget(file);
                Ok(())
            }
        }
    }

    /// Leaves a file that cannot be read, or not removed, where it is: it is not tried again.
    pub fn skip(&self, file: &Path) {
        self.forget(file);
        self.entries().skipped += 1;
    }

    fn forget(&self, file: &Path) {
        let mut entries = self.entries();
        if let Some(size) = number_of(file).and_then(|number| entries.files.remove(&number)) {
            entries.bytes = entries.bytes.saturating_sub(size);
        }
    }

    /// Says that nothing more of what is stored is being sent.
    pub fn settle(&self, problem: Option<String>) {
        self.settled.send_replace(Some(Settled { problem }));
    }

    /// Waits until the stored requests were sent, or could not be.
    pub async fn settled(&self) -> Settled {
        let mut receiver = self.settled.subscribe();
        match receiver.wait_for(Option::is_some).await {
            Ok(settled) => settled.clone().unwrap_or(Settled { problem: None }),
            Err(_) => Settled { problem: None },
        }
    }

    fn path_of(&self, number: u64) -> PathBuf {
        self.folder.join(name_of(number))
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many requests a folder has.
pub(super) fn requests_in(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| number_of(&entry.path()).is_some() && entry.metadata().is_ok_and(|it| it.is_file())).count()
}

/// The number in the name of a file of ours.
fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_suffix(EXTENSION)?.strip_suffix('.')?.parse().ok()?;
    (name == name_of(number)).then_some(number)
}

fn name_of(number: u64) -> String {
    format!("{number:012}.{EXTENSION}")
}

/// Whether it is the beginning of a file that was never whole.
fn entry_is_unfinished(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(".tmp"))
}

/// Longer is no head.
const LONGEST_HEAD: u64 = 16 << 20;

fn read_head(file: &Path) -> io::Result<Head> {
    let mut line = Vec::new();
    BufReader::new(fs::File::open(file)?.take(LONGEST_HEAD)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

fn read_file(file: &Path, signal: Signal, credentials: &[Credential]) -> io::Result<Payload> {
    decode(&fs::read(file)?, signal, credentials)
}

/// The content of a file.
pub fn encode(payload: Payload, credentials: &[Credential]) -> io::Result<Vec<u8>> {
    let (signal, items) = (payload.signal.name().to_owned(), payload.item_count());
    let (payload, removed) = take_out(payload, credentials)
        .ok_or_else(|| io::Error::other("it has a secret in a place from which it cannot be taken out"))?;
    let mut bytes = serde_json::to_vec(&Head { signal, items, removed })?;
    bytes.push(b'\n');
    bytes.extend(zstd::bulk::compress(&payload.encode(), 1)?);
    Ok(bytes)
}

/// The request that a file with this content has.
pub fn decode(bytes: &[u8], signal: Signal, credentials: &[Credential]) -> io::Result<Payload> {
    let broken = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| broken("no head".to_owned()))?;
    let head: Head = serde_json::from_slice(&bytes[..end])?;
    if head.signal != signal.name() {
        return Err(broken(format!("it has {}", head.signal)));
    }
    let mut wire = Vec::new();
    zstd::Decoder::new(&bytes[end + 1..])?.take(MOST_BYTES).read_to_end(&mut wire)?;
    let mut payload = Payload::decode(signal, wire).map_err(|error| broken(error.to_string()))?;
    if payload.item_count() != head.items {
        return Err(broken(format!(
            "it has {} and says {}",
            counted(payload.item_count(), "item", "items"),
            head.items
        )));
    }
    put_back(&mut payload, &head.removed, credentials).map_err(broken)?;
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::spans;

    #[tokio::test]
    async fn what_is_stored_comes_back_in_order_and_without_the_secret_on_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let credentials: Arc<[Credential]> =
            vec![Credential { variable: "T".into(), value: "s3cr3t-token".into() }].into();
        let spool = Spool::open(&folder.path().join("a"), credentials.clone()).expect("opens");
        let spool = Arc::new(spool.synced(true));
        for count in [3, 1] {
            let mut payload = spans(count);
            Arc::make_mut(&mut payload.resources[0].resource).upsert("tenant", "s3cr3t-token");
            spool.add(spool.put(payload).await.expect("stores"));
        }
        drop(spool);
        let spool = Spool::open(&folder.path().join("a"), credentials).expect("opens again");
        let files = spool.files(None);
        assert_eq!((spool.len(), &files), (2, &spool.files(Some(&files[0]))));
        assert_eq!(spool.files(Some(&files[1])), [files[1].clone(), files[0].clone()]);
        for count in [3, 1] {
            let file = spool.files(None).remove(0);
            assert!(!String::from_utf8_lossy(&fs::read(&file).expect("reads")).contains("s3cr3t"));
            let payload = spool.read(&file, Signal::Traces).await.expect("reads");
            assert_eq!(payload.item_count(), count);
            assert!(payload.resources[0].resource.get("tenant").is_some());
            assert!(spool.read(&file, Signal::Logs).await.is_err());
            spool.remove(&file).expect("removes");
        }
        assert!(spool.is_empty() && spool.files(None).is_empty());
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_removed_is_not_given_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
        spool.add(spool.put(spans(1)).await.expect("stores"));
        let file = spool.files(None).remove(0);
        fs::remove_file(&file).expect("removes");
        fs::create_dir_all(file.join("not empty")).expect("makes");
        assert!(spool.remove(&file).is_err());
        assert_eq!((spool.files(None), spool.len()), (vec![], 1), "it is still there");
    }

    /// Names as nobody gives them here: no number is lost, none is given twice, and nothing is overwritten.
    #[tokio::test]
    async fn numbers_have_an_end_and_other_names_are_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        for name in ["7.otlp", "+00000000007.otlp", "x.otlp"] {
            fs::write(file(name), "not ours").expect("writes");
        }
        fs::create_dir(file(&name_of(7))).expect("no request either");
        let last = name_of(u64::MAX - 1);
        fs::write(file(&last), "the last but one").expect("writes");
        let spool = Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
        assert_eq!((spool.len(), spool.files(None)), (1, vec![file(&last)]));
        let error = spool.put(spans(1)).await.expect_err("no number is left");
        assert!(error.to_string().contains("number"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).expect("reads").count(), 5);
        fs::rename(file(&last), file(&name_of(u64::MAX))).expect("renames");
        let error = Spool::open(folder.path(), Arc::default()).err().expect("no number comes after it");
        assert!(error.to_string().contains("18446744073709551615.otlp"), "{error}");
    }

    /// What heads say is foreign: it is no reason to end.
    #[test]
    fn heads_with_huge_numbers_count_as_many() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..3 {
            let head = format!("{{\"signal\":\"traces\",\"items\":{},\"removed\":[]}}\n", usize::MAX);
            fs::write(folder.path().join(name_of(number)), head).expect("writes");
        }
        let spool = Spool::open(folder.path(), Arc::default()).expect("opens");
        assert_eq!((spool.items(), spool.len()), (usize::MAX, 3));
    }
}
