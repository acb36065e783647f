//! One script on two collectors.

use serde_json::Value;

use super::normalise::leaves;
use super::side::Side;
use super::target::Page;
use crate::harness::{binary, component};

/// What both sides are given.
#[derive(Clone, Default)]
pub struct Case {
    /// The configuration; see [`Side::start`] for the words that are replaced in it.
    pub config: String,
    /// Variables of the environment.
    pub environment: Vec<(&'static str, String)>,
    /// What the HTTP target answers: for each path its pages in order, the last one again and again.
    pub pages: Vec<(&'static str, Vec<Page>)>,
}

impl Case {
    /// A configuration and nothing else.
    pub fn new(config: impl Into<String>) -> Self {
        Self { config: config.into(), ..Self::default() }
    }

    /// The same with a variable of the environment.
    pub fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// The same with a path of the target.
    pub fn serve(mut self, path: &'static str, pages: Vec<Page>) -> Self {
        self.pages.push((path, pages));
        self
    }
}

/// Carries out `script` on gymrun's collector and on the reference, and fails with the differences if their records
/// are not the same. Without the reference it says so and passes, unless the reference is required.
pub async fn both(case: Case, script: impl AsyncFn(&mut Side)) {
    if let Some((ours, theirs)) = records(case, script).await {
        compare(&ours, &theirs);
    }
}

/// The same, and gives both records: gymrun's and the reference's.
pub async fn records(case: Case, script: impl AsyncFn(&mut Side)) -> Option<(Vec<Value>, Vec<Value>)> {
    let [ours, theirs] = programs()?;
    let run = async |program: Vec<String>| {
        let mut side = Side::start(&program, &case).await;
        script(&mut side).await;
        side
    };
    let reference = async || {
        // It listens to signals a moment after its ports are open: one that comes before that kills it.
        for _ in 0..10 {
            let side = run(theirs.clone()).await;
            if !side.was_killed() {
                return side;
            }
        }
        panic!("the reference was killed by each stop");
    };
    let (ours, theirs) = tokio::join!(run(ours), reference());
    let (ours, theirs) = (ours.record(), theirs.record());
    assert!(!theirs.is_empty(), "the script recorded nothing");
    Some((ours, theirs))
}

/// The commands of gymrun's collector and of the reference; None without the reference, unless it is required.
pub fn programs() -> Option<[Vec<String>; 2]> {
    let reference = component("otelcol", "GYMRUN_TEST_OTELCOL")?;
    Some([vec![binary().to_owned(), "collector".to_owned()], vec![reference.display().to_string()]])
}

/// Fails with the first rows that differ, value by value.
pub fn compare(ours: &[Value], theirs: &[Value]) {
    if ours == theirs {
        return;
    }
    let mut text = String::new();
    for (index, pair) in (0..ours.len().max(theirs.len())).map(|i| (i, (ours.get(i), theirs.get(i)))) {
        let rows = |value: Option<&Value>| value.map(|value| leaves(value, "")).unwrap_or_default();
        let (ours, theirs) = (rows(pair.0), rows(pair.1));
        let lacks = |rows: &[String], row: &String| !rows.contains(row);
        let missing = theirs.iter().filter(|row| lacks(&ours, row)).map(|row| format!("  reference {index}{row}\n"));
        let more = ours.iter().filter(|row| lacks(&theirs, row)).map(|row| format!("  gymrun    {index}{row}\n"));
        text.extend(missing.take(20).chain(more.take(20)));
    }
    panic!("the records differ ({} rows here, {} there):\n{text}", ours.len(), theirs.len());
}
