//! What a job with a collector leaves behind: no secrets, and telemetry up to its last moment.

mod binary;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use binary::{Job, read_json};

const TOKEN: &str = "t0ken-th4t-must-n0t-be-seen";

/// An endpoint that refuses every request and quotes its `Authorization` and its body. It ends with the test.
fn quoting_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
                let (mut authorization, mut length) = (String::new(), 0);
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    let (name, value) = line.trim().split_once(": ").unwrap_or_default();
                    match name.to_ascii_lowercase().as_str() {
                        "authorization" => value.clone_into(&mut authorization),
                        "content-length" => length = value.parse().expect("a length"),
                        _ => {}
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("a body");
                let answer = format!("invalid credentials: {authorization}, {}", String::from_utf8_lossy(&body));
                let head = format!(
                    "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                let _ = stream.write_all((head + &answer).as_bytes());
            });
        }
    });
    url
}

fn files_with(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the job").flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files_with(&path, word));
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(word.len()).any(|part| part == word.as_bytes())) {
            found.push(path);
        }
    }
    found
}

#[test]
fn an_endpoint_that_quotes_the_token_puts_it_nowhere() {
    // `MY_PASS` is not named like a secret: the header it stands in makes it one.
    for variable in ["MY_TOKEN", "MY_PASS"] {
        let job = Job::new(
            "job.yaml",
            &format!(
                "name: t\notel: {{endpoint: {}, token_env: {variable}, compression: none, service_name: evals}}\n\
                 driver: {{command: [\"true\"]}}\n",
                quoting_endpoint()
            ),
        );
        let job = job.with_variable(variable, TOKEN);
        let ended = job.run(&[]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let dir = job.dir("t");
        let delivery = read_json(&dir.join("otel/delivery.json"));
        assert!(delivery["traces"]["dropped"]["http_401"].as_u64() > Some(0), "{delivery}");
        assert!(
            delivery["last_error"].as_str().is_some_and(|text| text.contains("invalid credentials: ***")),
            "{delivery}"
        );
        assert_eq!(files_with(&dir, TOKEN), Vec::<PathBuf>::new());
        assert!(!ended.stdout.contains(TOKEN) && !ended.stderr.contains(TOKEN), "{}", ended.stderr);
    }
}
