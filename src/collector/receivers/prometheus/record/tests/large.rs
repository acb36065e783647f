//! No page takes time that grows with the square of its size: each of these would not end for a long time. And none says
//! more than anybody reads.

use super::{Target, metrics, points, report, request, rules};
use crate::collector::receivers::prometheus::record::Rules;
use crate::collector::receivers::prometheus::relabel::{Action, Names, Pattern, Rule};

const MANY: usize = 30_000;

fn many(line: impl Fn(usize) -> String) -> String {
    (0..MANY).map(line).collect()
}

/// The labels `l0="v",l1="v",...`.
fn labels() -> String {
    many(|place| format!("l{place}=\"v\","))
}

#[test]
fn resources_and_scopes() {
    let mut target = Target::with(Rules { honor_labels: true, ..rules(&[]) });
    for label in ["instance", "job", "otel_scope_name", "otel_scope_x"] {
        let page = many(|place| format!("a{{{label}=\"n{place}\"}} 1\n"));
        // What TYPE lines change is found out anew, for all of these.
        let page = page + &many(|place| format!("# TYPE t{place} gauge\n")) + "a{end=\"1\"} 1\n";
        let record = target.page(&page, None);
        assert_eq!(report(&record), [1, MANY + 1, MANY + 1, MANY + 1].map(|n| i32::try_from(n).expect("fits")));
        // All of them are gone.
        let all = request(&target.page("b 1\n", None)).resource_metrics;
        let scopes: usize = all.iter().map(|resource| resource.scope_metrics.len()).sum();
        assert!(scopes > MANY, "{label}: {scopes}");
    }
}

#[test]
fn families_that_are_opened_anew_again_and_again() {
    let page = many(|place| format!("y{place} 1\n")) + "# TYPE x gauge\n" + &many(|_| "x 1 1\nx_sum 1 1\n".into());
    assert_eq!(points(&Target::new().page(&page, None)).len(), MANY + 1);
}

#[test]
fn labels_of_one_series_of_the_target_and_of_an_exemplar() {
    let pattern = |text: &str| Pattern::new(text).expect(text);
    let rule = |action| Rule { sources: Vec::new(), separator: ";".into(), action, names: Names::Utf8 };
    let map = || Action::LabelMap { pattern: pattern("(l.*)"), replacement: "m$1".into() };
    let again = Action::LabelMap { pattern: pattern("(m.*)"), replacement: "$1".into() };
    let relabel =
        [rule(map()), rule(again), rule(Action::LabelDrop(pattern("l.*"))), rule(Action::LabelKeep(pattern("[_m].*")))];
    let mut target = Target::with(Rules { relabel: relabel.into(), ..rules(&[]) });
    let found = metrics(&target.page(&format!("a{{{}}} 1\n", labels()), None));
    assert!(super::lines_of(&found[0])[0].contains("ml29999=v"));

    let infos = many(|place| format!("target_info{{i{place}=\"v\"}} 1\n"));
    let described = request(&Target::new().page(&format!("target_info{{{}}} 1\n{infos}", labels()), None));
    let resource = described.resource_metrics[0].resource.as_ref().expect("a resource");
    assert!(resource.attributes.len() >= 2 * MANY);

    let with_exemplar = format!("# TYPE a counter\na_total 1 # {{{}}} 1\n# EOF\n", labels().trim_end_matches(','));
    assert!(Target::new().openmetrics(&with_exemplar)[0].contains("l29999=v"));
}

#[test]
fn contradictions_are_all_left_out_and_some_of_them_said() {
    let histogram = |place| format!("# TYPE h{place} histogram\nh{place}_bucket{{le=\"1\"}} 5\nh{place}_count 1\n");
    let record = Target::new().page(&many(histogram), None);
    assert_eq!((record.broken_points, record.warnings.len()), (MANY, 11));
    assert_eq!(record.warnings[10], format!("{} more warnings of this page are not shown", MANY - 10));
}

#[test]
fn of_what_is_left_out_some_is_said_and_nothing_twice() {
    let page = many(|place| format!("a{place} 1 2000000000000\n"));
    let mut target = Target::new();
    let said: Vec<Vec<String>> = (0..200).map(|_| target.page(&page[..20_000], None).warnings).collect();
    assert!(said.iter().all(|said| said.len() <= 11));
    let named = |said: &[String]| said.iter().filter(|line| line.starts_with('`')).count();
    assert_eq!(named(&said[0]), 10);
    let mut all: Vec<&String> = said.iter().flatten().filter(|line| line.starts_with('`')).collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert!(all.len() == count && count <= 1000, "{count}");
    assert!(said[199].is_empty(), "{:?}", said[199]);
}

#[test]
fn a_page_that_breaks_the_program_is_a_failure_and_the_next_one_is_read() {
    let mut target = Target::new();
    target.text("a 1\n");
    let times = target.times();
    let record = target.memory.unless_broken(&target.rules, times, |_| panic!("the defect that nobody knows"));
    assert!(record.error.as_ref().is_some_and(|why| why.contains("broke down")), "{:?}", record.error);
    assert_eq!(report(&record), [0, 0, 0, 0]);
    assert_eq!(target.text("a 1\n"), ["a gauge{} 1"]);
}
