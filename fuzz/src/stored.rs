//! Files of the on-disk queue.

use gymrun::collector::fuzzing::{store_request, stored_folder, stored_request};
use gymrun::otlp::Signal;

/// What a header refers to.
const CREDENTIALS: [(&str, &str); 2] = [("TOKEN", "t0ken-0f-the-fuzz"), ("SHORT", "s3c")];

/// A file as it is, and one whose request is packed first: a line of JSON, then the request.
///
/// What can be read can be stored again unless a secret is in a place from which it cannot be taken; then it has the
/// same items, and no file has a secret that is long enough to be searched for. Twice in a folder, it is two requests there,
/// whatever they say of themselves.
pub fn stored(input: &[u8]) {
    let line = input.iter().position(|byte| *byte == b'\n').map_or(input.len(), |end| end + 1);
    let (head, request) = input.split_at(line);
    let (files, _) = stored_folder(&[input, input]).expect("a folder");
    assert_eq!(files, 2);
    let packed = zstd::bulk::compress(request, 1).expect("memory");
    for file in [input, &[head, &packed].concat()] {
        for signal in Signal::ALL {
            let Ok(payload) = stored_request(file, signal, &CREDENTIALS) else { continue };
            let items = payload.item_count();
            let Ok(again) = store_request(payload, &CREDENTIALS) else { continue };
            let head = again.iter().position(|byte| *byte == b'\n').expect("a head") + 1;
            let on_disk = [&again[..head], &zstd::decode_all(&again[head..]).expect("zstd")].concat();
            let token = CREDENTIALS[0].1.as_bytes();
            assert!(!on_disk.windows(token.len()).any(|part| part == token), "a secret on the disk");
            let read = stored_request(&again, signal, &CREDENTIALS).expect("what was stored can be read");
            assert_eq!(read.item_count(), items);
        }
    }
}
