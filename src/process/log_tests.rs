//! Logs that are written, rotated, lost and taken away.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Kept, Log, older_log};
use crate::plan::Rotation;

fn open(path: &Path, max_bytes: u64, keep: u32) -> Log {
    Log::new(path, Some(Rotation { max_bytes, keep }), Box::new(|error| panic!("{error}")))
}

/// Its files, the oldest first.
fn files(path: &Path) -> Vec<Vec<u8>> {
    let mut found: Vec<_> = (0..).map_while(|number| fs::read(older_log(path, number)).ok()).collect();
    found.reverse();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_files_are_the_end_of_what_was_written(
        lines in vec(0_usize..40, 1..60),
        pieces in vec(1_usize..70, 1..20),
        max in 1_u64..60,
        keep in 1_u32..4,
        has_end: bool,
    ) {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("x.log");
        let mut text: Vec<u8> = lines.iter().enumerate().flat_map(|(n, length)| {
            let letter = b"abcdefgh"[n % 8];
            std::iter::repeat_n(letter, *length).chain([b'\n'])
        }).collect();
        if !has_end {
            text.pop();
        }
        let log = open(&path, max, keep);
        let mut at = 0;
        for size in pieces.iter().cycle() {
            let end = text.len().min(at + size);
            log.write(&text[at..end]);
            at = end;
            if at == text.len() {
                break;
            }
        }
        let files = files(&path);
        let kept = log.kept().expect("nobody writes");
        let whole = files.concat();
        prop_assert!(text.ends_with(&whole));
        prop_assert_eq!(kept.rotated_out + whole.len() as u64, text.len() as u64);
        prop_assert_eq!((kept.older as usize + 1, kept.lost), (files.len(), 0));
        prop_assert!(files.len() <= keep as usize + 1);
        for (index, file) in files.iter().enumerate() {
            prop_assert!(file.len() as u64 <= max);
            // Torn is only what fits into no file.
            if index + 1 < files.len() && file.last() != Some(&b'\n') {
                prop_assert_eq!(file.len() as u64, max);
                prop_assert!(!file.contains(&b'\n'));
            }
        }
    }
}

#[test]
fn what_is_there_is_appended_to_and_counts() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("x.log");
    fs::write(&path, "former, without end").expect("writes");
    open(&path, 25, 1).write(b"one\n");
    assert_eq!(files(&path), [b"former, without endone\n".to_vec()]);
    open(&path, 25, 1).write(b"two\n");
    assert_eq!(files(&path), [b"former, without endone\n".to_vec(), b"two\n".to_vec()]);
}

#[test]
fn a_full_disk_is_told_once_and_what_is_lost_is_counted() {
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let failed = Box::new(move |error: &std::io::Error| {
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        count.fetch_add(1, Ordering::SeqCst);
    });
    let log = Log::new(Path::new("/dev/full"), None, failed);
    log.write(b"one\nhalf ");
    log.write(b"a line\n");
    assert_eq!((told.load(Ordering::SeqCst), log.kept()), (1, Some(Kept { lost: 16, ..Kept::default() })));
}

#[test]
fn a_log_that_cannot_be_opened_is_tried_again() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("later/x.log");
    let log = Log::new(&path, None, Box::new(|error| assert_eq!(error.kind(), std::io::ErrorKind::NotFound)));
    log.write(b"one\nha");
    fs::create_dir(scratch.path().join("later")).expect("a directory");
    log.write(b"lf\ntwo\n");
    log.write(b"three\n");
    assert_eq!(files(&path), [b"two\nthree\n".to_vec()]);
    assert_eq!(log.kept(), Some(Kept { lost: 9, ..Kept::default() }));
}

#[test]
fn a_log_that_was_removed_is_begun_again_and_what_went_with_it_is_counted() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("logs/x.log");
    for rotation in [None, Some(Rotation { max_bytes: 10, keep: 2 })] {
        fs::create_dir_all(scratch.path().join("logs")).expect("a directory");
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let failed = Box::new(move |_: &std::io::Error| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let log = Log::new(&path, rotation, failed);
        log.write(b"one\ntw");
        fs::remove_file(&path).expect("it is there");
        log.write(b"o\nthree\n");
        assert_eq!(fs::read(&path).expect("a log"), b"o\nthree\n");
        assert_eq!((told.load(Ordering::SeqCst), log.kept().map(|kept| kept.lost)), (1, Some(6)));
        // With the whole directory: nowhere to go on.
        fs::remove_dir_all(scratch.path().join("logs")).expect("it is there");
        log.write(b"four\n");
        assert_eq!(log.kept().map(|kept| kept.lost), Some(6 + 8 + 5));
    }
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("x.log");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let log = Log::new(&path, None, Box::new(|_| ()));
    log.write(&vec![b'x'; 1 << 20]);
    assert_eq!(log.kept(), Some(Kept { lost: 1 << 20, ..Kept::default() }));
}

#[test]
fn a_log_that_cannot_be_renamed_grows_on() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("x.log");
    // A directory that is not empty is in the way.
    fs::create_dir_all(older_log(&path, 1).join("full")).expect("a directory");
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let failed = Box::new(move |_: &std::io::Error| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let log = Log::new(&path, Some(Rotation { max_bytes: 4, keep: 1 }), failed);
    log.write(b"one\ntwo\nthree\n");
    assert_eq!(fs::read(&path).expect("a log"), b"one\ntwo\nthree\n");
    assert_eq!((told.load(Ordering::SeqCst), log.kept()), (1, Some(Kept::default())));
}
