//! Pieces of jobs.

use serde_json::{Value, json};

use crate::support::job::child;

pub fn server(steps: &str) -> Value {
    json!({"command": child(steps), "port": "auto", "health_check": {"timeout_seconds": 30}})
}

pub fn driver(steps: &str) -> Value {
    json!({"command": child(steps)})
}

pub fn with(mut value: Value, key: &str, to: impl Into<Value>) -> Value {
    value[key] = to.into();
    value
}
