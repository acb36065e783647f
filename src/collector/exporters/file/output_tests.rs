//! What is in files after writes that go well, fail or break down, and which files there are.

use super::*;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("reads").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[expect(clippy::unnecessary_wraps, reason = "as others that may fail")]
fn plain(message: &str, buffer: &mut Vec<u8>, _between: &mut dyn FnMut(&mut Vec<u8>)) -> io::Result<()> {
    buffer.extend_from_slice(message.as_bytes());
    Ok(())
}

/// A message of so many parts of 100 KiB; one of 13 parts cannot be encoded to its end, one of 14 panics.
fn long(parts: usize, buffer: &mut Vec<u8>, between: &mut dyn FnMut(&mut Vec<u8>)) -> io::Result<()> {
    for part in 0..parts {
        buffer.resize(buffer.len() + (100 << 10), b'a');
        between(buffer);
        assert!(part < 13, "a defect");
    }
    buffer.push(b'\n');
    if parts == 13 { Err(io::Error::other("not encoded")) } else { Ok(()) }
}

#[test]
fn long_messages_are_written_in_parts_and_never_torn() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x.jsonl");
    let mut output = Output::open(&path, false, None).expect("opens");
    let lengths = || -> Vec<usize> {
        let text = fs::read_to_string(&path).expect("reads");
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| line.len() / (100 << 10)).collect()
    };
    let all = |written: Written| (written.decided, written.broken, written.failure.is_none());
    assert_eq!(all(output.write([0, 1, 7, 2, 0, 4], long)), (6, BTreeMap::new(), true));
    assert_eq!(lengths(), [0, 1, 7, 2, 0, 4]);
    // Those before and behind it are written.
    let failed = BTreeMap::from([(2, Broken::Failed("not encoded".into()))]);
    assert_eq!(all(output.write([1, 3, 13, 1], long)), (4, failed, true));
    assert_eq!(lengths(), [0, 1, 7, 2, 0, 4, 1, 3, 1]);
    let panicked = BTreeMap::from([(1, Broken::Panicked), (3, Broken::Panicked)]);
    assert_eq!(all(output.write([0, 14, 2, 14], long)), (4, panicked, true));
    assert_eq!(lengths(), [0, 1, 7, 2, 0, 4, 1, 3, 1, 0, 2]);
    assert!(output.buffer.capacity() <= 2 * PART + (200 << 10));
}

#[test]
fn what_a_failed_write_takes_with_it_is_not_counted() {
    let mut output = Output::open(Path::new("/dev/full"), true, None).expect("opens");
    // Whole messages that go with the first part of a long one.
    let written = output.write([0, 1, 1, 7, 1], long);
    assert!(written.failure.is_some() && written.broken.is_empty());
    assert_eq!(written.decided, 0);
}

/// A writer that hung over a reload, and fails at last, shares the file with the next collector's.
#[test]
fn what_another_wrote_meanwhile_is_not_cut_off() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x.jsonl");
    for broken_down in [false, true] {
        let mut late = Output::open(&path, false, None).expect("opens");
        assert_eq!(late.write(["before\n"], plain).decided, 1);
        let write = |_: u8, buffer: &mut Vec<u8>, between: &mut dyn FnMut(&mut Vec<u8>)| {
            buffer.resize(PART, b'a');
            between(buffer);
            assert_eq!(fs::metadata(&path).expect("is there").len(), 7 + PART as u64);
            let mut next = Output::open(&path, true, None).expect("opens");
            assert!(next.end_line().expect("reads"));
            assert_eq!(next.write(["next\n"], plain).decided, 1);
            assert!(!broken_down, "a defect");
            Err(io::Error::other("not encoded"))
        };
        assert_eq!(late.write([1], write).broken.len(), 1);
        // Also once it writes again, or would.
        assert_eq!(late.write(["after\n"], plain).decided, 1);
        let text = fs::read_to_string(&path).expect("reads");
        assert_eq!(text, format!("before\n{}\nnext\nafter\n", "a".repeat(PART)));
    }
}

#[test]
fn files_are_put_aside_between_messages_and_the_oldest_removed() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x.y.jsonl");
    fs::write(directory.path().join("x.y-2001-01-01T00-00-00.000-size.jsonl"), "old").expect("writes");
    fs::write(directory.path().join("x.y-other.jsonl"), "not ours").expect("writes");
    let rotation = Rotation { largest: 10, days: 0, backups: 2, local_time: false };
    let mut output = Output::open(&path, false, Some(rotation)).expect("opens");
    let messages = ["aaa\n", "bbb\n", "cccc\n", "a very long message\n", "d\n"];
    let written = output.write(messages, plain);
    assert_eq!((written.decided, written.failure.is_none()), (5, true));
    assert_eq!(fs::read_to_string(&path).expect("reads"), "d\n");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).expect("is there").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let names = names(directory.path());
    assert_eq!(names.len(), 4, "{names:?}");
    let kept: Vec<String> = names.iter().filter(|name| name.ends_with("-size.jsonl")).cloned().collect();
    let texts: Vec<String> =
        kept.iter().map(|n| fs::read_to_string(directory.path().join(n)).expect("reads")).collect();
    assert_eq!(texts, ["cccc\n", "a very long message\n"]);
}

#[test]
fn half_a_line_is_ended_and_nothing_else_touched() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x");
    for (before, torn) in [("", false), ("one\n", false), ("one\ntw", true), ("tw", true)] {
        fs::write(&path, before).expect("writes");
        let mut output = Output::open(&path, true, None).expect("opens");
        assert_eq!(output.end_line().expect("reads"), torn);
        assert_eq!(output.write(["three\n"], plain).decided, 1);
        let end = if torn { "\n" } else { "" };
        assert_eq!(fs::read_to_string(&path).expect("reads"), format!("{before}{end}three\n"));
    }
    assert!(!Output::open(Path::new("/dev/null"), true, None).expect("opens").end_line().expect("no file"));
}

#[test]
fn old_files_go_by_their_age() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x");
    for name in ["x-2001-01-01T00-00-00.000-size", "x-2901-01-01T00-00-00.000-size"] {
        fs::write(directory.path().join(name), "").expect("writes");
    }
    let rotation = Rotation { largest: 10, days: 1, backups: 0, local_time: true };
    Output::open(&path, false, Some(rotation)).expect("opens");
    assert_eq!(names(directory.path()), ["x", "x-2901-01-01T00-00-00.000-size"]);
}

/// What is in a file without a name is lost, so that is not where messages go; one that has another name is somebody's.
#[test]
fn a_file_that_was_removed_is_made_again() {
    for rotation in [None, Some(Rotation { largest: 100, days: 0, backups: 0, local_time: false })] {
        let directory = tempfile::tempdir().expect("directory");
        let folder = directory.path().join("folder");
        fs::create_dir(&folder).expect("makes");
        let (path, other) = (folder.join("x.jsonl"), folder.join("y.jsonl"));
        let mut output = Output::open(&path, false, rotation).expect("opens");
        assert!(output.write(["one\n"], plain).failure.is_none());
        fs::rename(&path, &other).expect("renames");
        assert!(output.write(["two\n"], plain).failure.is_none());
        assert_eq!(fs::read_to_string(&other).expect("reads"), "one\ntwo\n");
        fs::remove_file(&other).expect("removes");
        let written = output.write(["three\n"], plain);
        assert_eq!((written.failure.is_none(), written.removed), (true, Some(8)), "it is said");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "three\n");
        fs::remove_dir_all(&folder).expect("removes");
        let written = output.write(["four\n"], plain);
        assert_eq!((written.decided, written.failure.is_some()), (0, true));
        fs::create_dir(&folder).expect("makes");
        let written = output.write(["five\n"], plain);
        assert_eq!((written.failure.is_none(), written.removed), (true, Some(6)));
        assert_eq!(output.write([""; 0], plain).removed, None, "once");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "five\n");
    }
}

#[test]
fn a_file_with_rotation_goes_on_where_it_was() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x.jsonl");
    fs::write(&path, "before\n").expect("writes");
    let rotation = Rotation { largest: 100, days: 0, backups: 0, local_time: false };
    let mut output = Output::open(&path, false, Some(rotation)).expect("opens");
    assert!(output.write(["after\n"], plain).failure.is_none());
    assert_eq!(fs::read_to_string(&path).expect("reads"), "before\nafter\n");
}

#[test]
fn messages_with_lengths_go_on_after_the_last_whole_one() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x.bin");
    let message = |text: &str| [&u32::try_from(text.len()).expect("short").to_be_bytes(), text.as_bytes()].concat();
    let (one, two) = (message("one"), message("second"));
    let whole = [one.as_slice(), &two].concat();
    for end in 0..=whole.len() {
        fs::write(&path, &whole[..end]).expect("writes");
        let mut output = Output::open(&path, true, None).expect("opens");
        let kept = [0, one.len(), whole.len()].into_iter().filter(|kept| *kept <= end).max().expect("one");
        match output.end_message().expect("mends") {
            None => assert_eq!(end, kept),
            Some(Mended::Cut(bytes)) => assert!(kept > 0 && bytes == (end - kept) as u64),
            Some(Mended::PutAside(aside)) => {
                assert_eq!((kept, fs::read(&aside).expect("kept")), (0, whole[..end].to_vec()));
                fs::remove_file(aside).expect("removes");
            }
        }
        let written = output.write(["+"], plain);
        assert!(written.failure.is_none());
        assert_eq!(fs::read(&path).expect("reads"), [&whole[..kept], b"+"].concat(), "{end}");
    }
}

#[test]
fn a_full_file_that_cannot_be_put_aside_is_written_on() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x.jsonl");
    let rotation = Rotation { largest: 3, days: 0, backups: 0, local_time: false };
    let mut output = Output::open(&path, true, Some(rotation)).expect("opens");
    // Where the folder has another name there is nothing to rename, and nowhere to make a new file.
    let moved = directory.path().with_extension("moved");
    fs::rename(directory.path(), &moved).expect("renames");
    let written = output.write(["a\n", "b\n", "c\n"], plain);
    assert!(written.unrotated.is_some() && written.failure.is_none());
    assert_eq!(written.decided, 3);
    fs::rename(&moved, directory.path()).expect("renames");
    assert_eq!(fs::read_to_string(&path).expect("reads"), "a\nb\nc\n");
    output.rotates_again = Some(Instant::now());
    assert!(output.write(["d\n"], plain).unrotated.is_none());
    assert_eq!(fs::read_to_string(&path).expect("reads"), "d\n");
    assert_eq!(names(directory.path()).len(), 2);
}
