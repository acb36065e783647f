//! Pieces of jobs.

use serde_json::{Value, json};

/// `child STEP...` as a command: steps are separated by blanks.
pub fn child(steps: &str) -> Value {
    let own = std::env::current_exe().expect("a test has a file");
    let mut words = vec![own.display().to_string(), "child".to_owned()];
    words.extend(steps.split_ascii_whitespace().map(str::to_owned));
    words.into()
}

pub fn server(steps: &str) -> Value {
    json!({"command": child(steps), "port": "auto", "health_check": {"timeout_seconds": 120}})
}

pub fn driver(steps: &str) -> Value {
    json!({"command": child(steps)})
}

pub fn with(mut value: Value, key: &str, to: impl Into<Value>) -> Value {
    value[key] = to.into();
    value
}

/// Does the same with each at once, where most of it is waiting.
pub fn side_by_side<T: Send>(all: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    let each = &each;
    std::thread::scope(|scope| {
        for one in all {
            scope.spawn(move || each(one));
        }
    });
}
