//! Files of JSON lines.

use std::path::Path;

use serde_json::Value;

/// The lines of a file that is not written any more: each must be whole, the last one too. A file that is not there has none.
#[track_caller]
pub fn json_lines(path: &Path) -> Vec<Value> {
    let text = read(path);
    assert!(text.is_empty() || text.ends_with('\n'), "{} ends within a line", path.display());
    parse(path, &text)
}

/// The whole lines of a file that is still being written, as JSON.
#[track_caller]
pub fn json_lines_so_far(path: &Path) -> Vec<Value> {
    parse(path, &text_so_far(path, 0))
}

/// The whole lines from `place` on of a file that is still being written. What comes after them may be the half of a
/// character: such a file is never read as text.
pub fn text_so_far(path: &Path, place: usize) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let new = bytes.get(place..).unwrap_or_default();
    let end = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    String::from_utf8(new[..end].to_vec()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

#[track_caller]
fn parse(path: &Path, text: &str) -> Vec<Value> {
    let line = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()));
    text.lines().map(line).collect()
}
