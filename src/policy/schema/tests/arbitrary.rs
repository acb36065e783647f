//! Whatever a job says, checking it ends, and what is wrong has a place.

use indexmap::IndexMap;
use proptest::prelude::*;

use super::super::{check, tables};
use super::case::Case;
use crate::diag::{Location, Severity};
use crate::inputs::Reading;
use crate::inputs::{Layers, Node, NodeValue, settings};
use crate::plan::{Reference, Text};

fn node(value: NodeValue) -> Node {
    Node { value, location: Location::new("job.lua", 1) }
}

fn value() -> impl Strategy<Value = NodeValue> {
    let words = prop::sample::select(vec![
        "",
        "a",
        "b",
        "self",
        "driver",
        "vllm",
        "task",
        "eval",
        "true",
        "off",
        "auto",
        "1-2",
        "9-1",
        "007",
        "1e400",
        "é",
        "../x",
        "resources_servers",
        "exec",
        "grpc",
        "$(x)",
    ]);
    let reference = prop::sample::select(vec!["a", "b", "self", "nope"])
        .prop_map(|name| NodeValue::Text(Text::reference(Reference::Url { process: name.into() })));
    let leaf = prop_oneof![
        Just(NodeValue::Null),
        Just(NodeValue::Unset),
        any::<bool>().prop_map(NodeValue::Bool),
        any::<i64>().prop_map(NodeValue::Int),
        (0i64..9).prop_map(NodeValue::Int),
        any::<f64>().prop_map(NodeValue::Float),
        words.clone().prop_map(|word| NodeValue::Plain(word.into())),
        words.prop_map(|word| NodeValue::Text(word.into())),
        reference,
        Just(NodeValue::Text(Text::reference(Reference::Secret { name: "S".into(), default: None }))),
        Just(NodeValue::Peer("a".into())),
        Just(NodeValue::Function(1)),
    ];
    let mut names: Vec<&'static str> = tables::ALL.iter().flat_map(|table| table.keys()).map(|key| key.name).collect();
    names.extend(["a", "b", "c", "driver", "self", "", "x.y"]);
    leaf.prop_recursive(5, 64, 8, move |inner| {
        let key = prop::sample::select(names.clone());
        prop_oneof![
            prop::collection::vec(inner.clone().prop_map(node), 0..4).prop_map(NodeValue::List),
            prop::collection::vec((key, inner.prop_map(node)), 0..8).prop_map(|entries| {
                NodeValue::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

fn map() -> impl Strategy<Value = NodeValue> {
    value().prop_filter_map("a mapping", |value| matches!(value, NodeValue::Map(_)).then_some(value))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_job_panics(
        services in prop::collection::vec(map(), 0..4),
        servers in prop::collection::vec(map(), 0..4),
        driver in map(),
        rest in map(),
        defaults in map(),
    ) {
        let named = |values: Vec<NodeValue>| {
            let names = ["a", "b", "c", "d"];
            NodeValue::Map(names.into_iter().zip(values).map(|(name, value)| (name.to_owned(), node(value))).collect())
        };
        let NodeValue::Map(mut job) = rest else { unreachable!() };
        job.insert("services".into(), node(named(services)));
        job.insert("servers".into(), node(named(servers)));
        job.insert("driver".into(), node(driver));
        let all = NodeValue::Map(IndexMap::from([("all".to_owned(), node(defaults.clone())), ("services".to_owned(), node(defaults))]));
        job.insert("process_defaults".into(), node(all));
        let world = Case::default().world();
        let layers = Layers {
            unreadable: crate::diag::Problems::new(),
            job_file: "job.lua".into(),
            fragments: Vec::new(),
            job: node(NodeValue::Map(job)),
            settings: settings(&[], Reading { world: &world, job_id: "j1" }).unwrap(),
        };
        for problem in check(layers, "j1", &world).problems {
            prop_assert!(problem.severity == Severity::Warning || !problem.location.is_unknown(), "{}", problem);
            prop_assert!(&*problem.location.file == "job.lua", "{}", problem);
        }
    }
}
