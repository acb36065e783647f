//! What is stored goes out by itself: by the collector that stored it, or by the next one in its place.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::storage::{Flush, LAUNCHED, OWN, TOKEN, config, dead, files_with, received, stored};
use crate::harness::{Answer, Collector, GOOD, Sink, eventually_async, free_port};
use crate::{log, point, spans};

/// The next collector on the same directory sends what the former one stored, and its report keeps the two apart.
#[tokio::test]
async fn a_later_collector_sends_what_an_earlier_one_stored() {
    let port = free_port();
    let former = dead(port, 3).await;
    let sink = Sink::start_at(port, vec![GOOD]).await;
    let text = config(port).replace("$OUT/queue", &former.path("queue").display().to_string());
    let mut collector = Collector::start(&text, &LAUNCHED).await;
    assert_eq!(collector.post("/v1/traces", &spans(4)).await.0, 200);
    let all_sent = async || stored(former.folder.path()).is_empty().then_some(());
    eventually_async("all is sent", all_sent).await;
    assert_eq!(collector.stop().await, 0);
    assert_eq!(received(&sink.seen()), [10, 3, 3]);
    let traces = &collector.delivery()["traces"];
    assert_eq!((&traces["received"], &traces["resumed"], &traces["sent"]), (&json!(4), &json!(6), &json!(10)));
    assert!(traces.get("stored").is_none(), "{traces}");
}

/// What a collector stored itself or found at its start goes out when the endpoint answers, though nothing new comes.
#[tokio::test]
async fn what_is_stored_is_sent_without_new_data() {
    for is_found in [false, true] {
        let port = free_port();
        let retry = "max_interval: 200ms, max_elapsed_time: 300ms";
        let text = config(port).replace("max_interval: 200ms", retry);
        let (former, text) = if is_found {
            let former = dead(port, 2).await;
            let queue = former.path("queue").display().to_string();
            (Some(former), text.replace("$OUT/queue", &queue))
        } else {
            (None, text)
        };
        let mut collector = Collector::start(&text, &LAUNCHED).await;
        let folder = former.as_ref().unwrap_or(&collector).folder.path().to_owned();
        if !is_found {
            for (path, request) in [("/v1/traces", spans(4)), ("/v1/metrics", point()), ("/v1/logs", log())] {
                assert_eq!(collector.post(path, &request).await.0, 200);
            }
        }
        let given_up = async || (stored(&folder).len() >= 3).then_some(());
        eventually_async("each signal's data is stored", given_up).await;
        // It has failed at least once more.
        let said = async || collector.stderr().contains("what is stored stays there").then_some(());
        eventually_async("it was tried again", said).await;
        let sink = Sink::start_at(port, vec![Answer::Give(503, Vec::new(), b""), GOOD]).await;
        let all_sent = async || stored(&folder).is_empty().then_some(());
        eventually_async("all is sent", all_sent).await;
        assert_eq!(collector.stop().await, 0);
        let wanted = if is_found { [4, 2, 2] } else { [4, 1, 1] };
        assert_eq!(received(&sink.seen()[1..]), wanted);
        let delivery = collector.delivery();
        for (signal, sent) in ["traces", "metrics", "logs"].into_iter().zip(wanted) {
            let counts = &delivery[signal];
            assert_eq!((&counts["sent"], &counts["dropped"]), (&json!(sent), &json!({})), "{delivery}");
            assert!(counts.get("stored").is_none(), "{delivery}");
        }
    }
}

/// A stop does not wait for the end of a pause: it tries once more what is stored, and sends it all if that goes.
#[tokio::test]
async fn what_is_stored_is_tried_at_the_stop() {
    for answer in [GOOD, Answer::Give(503, Vec::new(), b"")] {
        let port = free_port();
        let former = dead(port, 2).await;
        let queue = former.path("queue").display().to_string();
        let before = stored(former.folder.path());
        let text = config(port).replace("$OUT/queue", &queue);
        let text = text.replace(
            "initial_interval: 50ms, max_interval: 200ms",
            "initial_interval: 1h, max_interval: 1h, max_elapsed_time: 1h",
        );
        let mut collector = Collector::start(&text, &LAUNCHED).await;
        let sink = Sink::start_at(port, vec![answer.clone()]).await;
        assert_eq!(collector.stop().await, 0);
        let left = stored(former.folder.path());
        if matches!(answer, Answer::Give(200, ..)) {
            assert_eq!((received(&sink.seen()), left), ([4, 2, 2], BTreeSet::new()));
        } else {
            assert_eq!(left, before);
        }
    }
}

/// A wrong token, or a wrong address, says nothing about the data: it is kept, by the collector as by a flush, and sent
/// with the right one. What is wrong with the data itself is for good.
#[tokio::test]
async fn data_is_kept_when_only_its_sender_is_refused() {
    for status in [401, 403, 404, 405, 407, 302] {
        let refusing = Sink::start(vec![Answer::Give(status, Vec::new(), b"who are you")]).await;
        let mut collector = Collector::start(&config(refusing.port), &LAUNCHED).await;
        for (path, request) in [("/v1/traces", spans(2)), ("/v1/metrics", point()), ("/v1/logs", log())] {
            assert_eq!(collector.post(path, &request).await.0, 200);
        }
        refusing.wait(3).await;
        assert_eq!(collector.stop().await, 0);
        let folder = collector.folder.path();
        let before = stored(folder);
        let delivery = collector.delivery();
        assert_eq!((before.len(), &delivery["traces"]["stored"]), (3, &json!(2)), "{status}: {delivery}");
        assert_eq!(files_with(folder, TOKEN), Vec::<PathBuf>::new());
        let (code, said) = Flush::start(folder, 30, &OWN).ended().await;
        assert_eq!((code, stored(folder)), (1, before), "{status}: {said}");
        assert!(said.contains(&format!("status {status}")) && said.contains("3 requests are still stored"), "{said}");
        // It takes the place of the other one.
        let file = collector.path("collector.yaml");
        let text = fs::read_to_string(&file).expect("reads");
        for (answer, code, dropped) in [(GOOD, 0, 0), (Answer::Give(400, Vec::new(), b"bad data"), 1, 4)] {
            let kept = stored(folder).into_iter().map(|path| (path.clone(), fs::read(path).expect("reads")));
            let kept: Vec<_> = kept.collect();
            let sink = Sink::start(vec![answer]).await;
            fs::write(&file, text.replace(&format!(":{}", refusing.port), &format!(":{}", sink.port))).expect("writes");
            let (ended, said) = Flush::start(folder, 30, &OWN).ended().await;
            assert_eq!((ended, stored(folder)), (code, BTreeSet::new()), "{status}: {said}");
            assert!(said.contains(&format!("dropped {dropped}")), "{status}: {said}");
            assert_eq!(received(&sink.seen()), [2, 1, 1]);
            for (path, content) in kept {
                fs::write(path, content).expect("writes");
            }
        }
    }
}

/// A disk that does not answer (a pipe in the place of the lock) does not hold a flush for longer than it may take.
#[tokio::test]
async fn a_flush_ends_in_time_where_the_disk_hangs() {
    let collector = dead(free_port(), 1).await;
    let lock = collector.path("queue/lock");
    fs::remove_file(&lock).expect("removes");
    nix::unistd::mkfifo(&lock, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let (code, said) = Flush::start(collector.folder.path(), 1, &OWN).ended().await;
    assert!(code == 1 && said.contains("extensions/file_storage did not start in time"), "{said}");
}

/// One exporter that cannot start does not leave another one in the middle of its work.
#[tokio::test]
async fn what_was_started_is_stopped_when_the_next_cannot_start() {
    let port = free_port();
    let collector = dead(port, 1).await;
    let file = collector.path("collector.yaml");
    let text = fs::read_to_string(&file).expect("reads");
    let other = "  otlp_http/z: {endpoint: 'http://127.0.0.1:1', sending_queue: {storage: file_storage}}\nservice:\n";
    let text =
        text.replace("service:\n", other).replace("exporters: [otlp_http]", "exporters: [otlp_http, otlp_http/z]");
    fs::write(&file, text).expect("writes");
    fs::write(collector.path("queue/exporters~otlp_http~z~logs"), "in the way").expect("writes");
    let sink = Sink::start_at(port, vec![GOOD]).await;
    let (code, said) = Flush::start(collector.folder.path(), 30, &OWN).ended().await;
    assert!(code == 1 && said.contains("cannot open the storage"), "{said}");
    assert_eq!(sink.seen().len() + stored(collector.folder.path()).len(), 3, "{said}");
}
