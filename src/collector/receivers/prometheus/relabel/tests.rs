//! Tests of rules: each action, in the order in which they stand.

use super::{Action, Builder, Names, Pattern, Rule, apply};
use crate::collector::receivers::prometheus::record::Labels;

fn labels(list: &[(&str, &str)]) -> Labels {
    Labels::new(list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).expect(text)
}

fn rule(sources: &[&str], action: Action) -> Rule {
    let sources = sources.iter().map(|name| (*name).to_owned()).collect();
    Rule { sources, separator: ";".into(), action, names: Names::Utf8 }
}

fn replace(sources: &[&str], regex: &str, target: &str, replacement: &str) -> Rule {
    let (target, replacement) = (target.to_owned(), replacement.to_owned());
    rule(sources, Action::Replace { pattern: pattern(regex), target, replacement })
}

/// What the rules make of the labels, `None` if they drop them.
fn relabelled(list: &[(&str, &str)], rules: &[Rule]) -> Option<Labels> {
    let mut builder = Builder::new(labels(list));
    apply(rules, &mut builder).then(|| builder.finish())
}

#[test]
fn replace_writes_one_label_where_it_matches() {
    let given = [("a", "foo"), ("b", "bar"), ("c", "baz")];
    for (rule, made) in [
        (
            replace(&["a", "b"], "(.*);(.*)", "d", "$2-$1"),
            labels(&[("a", "foo"), ("b", "bar"), ("c", "baz"), ("d", "bar-foo")]),
        ),
        (replace(&["a"], "f(.*)", "a", "$1"), labels(&[("a", "oo"), ("b", "bar"), ("c", "baz")])),
        (replace(&["a"], "no.*", "a", "x"), labels(&given)),
        (replace(&["a"], ".*", "b", ""), labels(&[("a", "foo"), ("c", "baz")])),
        (replace(&[], "(.*)", "n", "new"), labels(&[("a", "foo"), ("b", "bar"), ("c", "baz"), ("n", "new")])),
        (replace(&["a"], "(.*)", "${1}_x", "v"), labels(&[("a", "foo"), ("b", "bar"), ("c", "baz"), ("foo_x", "v")])),
        (replace(&["absent"], "(.*)", "$1", "v"), labels(&given)),
    ] {
        assert_eq!(relabelled(&given, std::slice::from_ref(&rule)), Some(made), "{rule:?}");
    }
    // A name that the scheme does not allow is not made.
    let legacy = Rule { names: Names::Legacy, ..replace(&["a"], "(.*)", "$1", "v") };
    assert_eq!(relabelled(&[("a", "b.c")], &[legacy]), Some(labels(&[("a", "b.c")])));
}

#[test]
fn keep_and_drop_by_pattern_and_by_comparison() {
    let given = [("a", "x"), ("b", "x"), ("c", "y")];
    for (rule, kept) in [
        (rule(&["a", "c"], Action::Keep(pattern("x;y"))), true),
        (rule(&["a"], Action::Keep(pattern("xx"))), false),
        (rule(&["a"], Action::Drop(pattern("x"))), false),
        (rule(&["absent"], Action::Drop(pattern(""))), false),
        (rule(&["a"], Action::KeepEqual("b".into())), true),
        (rule(&["a"], Action::KeepEqual("c".into())), false),
        (rule(&["a"], Action::DropEqual("b".into())), false),
        (rule(&["a"], Action::DropEqual("c".into())), true),
    ] {
        assert_eq!(relabelled(&given, std::slice::from_ref(&rule)).is_some(), kept, "{rule:?}");
    }
    // What is dropped is not looked at any more.
    let rules = [rule(&["a"], Action::Drop(pattern("x"))), replace(&[], ".*", "a", "y")];
    assert_eq!(relabelled(&given, &rules), None);
}

#[test]
fn hashes_case_and_names() {
    let hash = |value: &str, modulus| {
        let made = relabelled(&[("a", value)], &[rule(&["a"], Action::HashMod { target: "m".into(), modulus })]);
        made.expect("kept").get("m").to_owned()
    };
    assert_eq!(hash("baz", 1000), "976");
    assert_eq!(hash("foo", 1), "0");
    let made = relabelled(
        &[("a", "Foo Ünï İß")],
        &[rule(&["a"], Action::Lowercase("l".into())), rule(&["a"], Action::Uppercase("u".into()))],
    );
    let made = made.expect("kept");
    assert_eq!((made.get("l"), made.get("u")), ("foo ünï iß", "FOO ÜNÏ İß"));

    let given = [("a", "1"), ("bar", "2"), ("baz", "3")];
    let map =
        |regex: &str, replacement: &str| Action::LabelMap { pattern: pattern(regex), replacement: replacement.into() };
    for (action, made) in [
        (map("ba(.)", "$1"), labels(&[("a", "1"), ("bar", "2"), ("baz", "3"), ("r", "2"), ("z", "3")])),
        (map("ba.", "a"), labels(&[("a", "3"), ("bar", "2"), ("baz", "3")])),
        (Action::LabelDrop(pattern("ba.")), labels(&[("a", "1")])),
        (Action::LabelKeep(pattern("ba.")), labels(&[("bar", "2"), ("baz", "3")])),
    ] {
        assert_eq!(relabelled(&given, &[rule(&[], action.clone())]), Some(made), "{action:?}");
    }
}

#[test]
fn a_label_without_a_value_is_none_and_changes_keep_their_order() {
    let mut builder = Builder::new(labels(&[("a", ""), ("b", "1")]));
    assert_eq!(builder.list(), [("b".to_owned(), "1".to_owned())]);
    builder.set("z", "1");
    builder.set("b", "2");
    builder.set("z", "");
    builder.set("c", "3");
    assert_eq!(builder.get("z"), "");
    let names: Vec<String> = builder.list().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["b", "c"]);
    builder.remove("b");
    assert_eq!(builder.finish(), labels(&[("c", "3")]));
    // A name that stands twice is wrong, and stays so unless it is removed.
    let twice = || Builder::new(labels(&[("x", "1"), ("x", "2")]));
    let mut changed = twice();
    changed.set("x", "3");
    assert_eq!(changed.finish(), labels(&[("x", "3"), ("x", "2")]));
    let mut removed = twice();
    removed.remove("x");
    assert_eq!(removed.finish(), Labels::default());
}

#[test]
fn legacy_names() {
    for (name, label, metric) in
        [("a_1", true, true), ("a:b", false, true), ("1a", false, false), ("a.b", false, false)]
    {
        assert_eq!((Names::Legacy.allow_label(name), Names::Legacy.allow_metric(name)), (label, metric), "{name}");
        assert!(Names::Utf8.allow_label(name) && Names::Utf8.allow_metric(name));
    }
    assert!(!Names::Utf8.allow_label("") && !Names::Legacy.allow_label(""));
}
