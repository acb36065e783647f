//! Pages that differ from the last one in their values alone are read in a shorter way: it makes the same points.

use super::super::super::relabel::{Action, Names, Pattern, Rule};
use super::{Target, points, report, rules};

/// Two of one target, one of which reads each page in full.
struct Pair {
    short: Target,
    full: Target,
}

impl Pair {
    fn new() -> Self {
        Self { short: Target::with(rules(&[])), full: Target::with(rules(&[])) }
    }

    /// Both make the same of a page; gives whether the next one may be read in the shorter way.
    fn page(&mut self, body: &str, content_type: Option<&str>) -> bool {
        self.full.memory.repeat = None;
        let short = self.short.page(body, content_type);
        let full = self.full.page(body, content_type);
        assert_eq!(points(&short), points(&full), "{body:?}");
        assert_eq!(short.payload.encode(), full.payload.encode(), "{body:?}");
        assert_eq!((&short.error, &short.warnings), (&full.error, &full.warnings), "{body:?}");
        assert_eq!(short.broken_points, full.broken_points, "{body:?}");
        self.short.memory.repeat.is_some()
    }

    fn down(&mut self) {
        self.full.memory.repeat = None;
        assert_eq!(self.short.down().payload.encode(), self.full.down().payload.encode());
        assert!(self.short.memory.repeat.is_none());
    }
}

const TEXT: &str = "# HELP h Times.\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 3.0\nh_sum 2.5\nh_count 3\n\
    # TYPE s summary\ns{quantile=\"0.5\"} 7 \ns_sum 1\ns_count\t2\n# a comment 5\n# TYPE c counter\nc{a=\"x 1\",b=\"\"} 1e3\n\
    c{b=\"2\",a=\"3\"} 4\nc{a=\"3\",b=\"2\"} 5\nplain NaN\ntarget_info{v=\"1\"} 1\nx_total -Inf\n";

const OPEN_METRICS: &str = "# TYPE h histogram\n# UNIT h_seconds seconds\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 3\nh_sum 2.5\n\
    h_count 3\nh_created 12.5\n# TYPE c counter\nc_total{a=\"}\"} 1\nc_created{a=\"}\"} 5\n# TYPE g gauge\n{\"g\",a=\"1\"} 2\n# EOF\n";

const DIALECTS: [(&str, &str); 2] = [(TEXT, "text/plain"), (OPEN_METRICS, "application/openmetrics-text")];

#[test]
fn other_values_make_the_same_points_either_way() {
    for (page, content_type) in DIALECTS {
        let mut pair = Pair::new();
        assert!(!pair.page(page, Some(content_type)), "all is new");
        assert!(pair.page(page, Some(content_type)));
        for value in ["0", "3", "3.25", "NaN", "+Inf", "-1e-300", "3.0"] {
            // A count below that of a bucket makes a broken point.
            for from in [" 3\n", " 2.5\n", " 1\n", " 1e3\n", " 7 \n"] {
                let other = page.replace(from, &from.replace(from.trim(), value));
                assert!(pair.page(&other, Some(content_type)), "{other}");
            }
        }
        assert!(pair.short.memory.repeat.is_some());
    }
}

#[test]
fn any_byte_may_change() {
    for (page, content_type) in DIALECTS {
        let mut pair = Pair::new();
        for place in 0..page.len() {
            // Two of them at each place: all at all places take long.
            for kind in [place, place + 3] {
                let other = ["", " ", "\n", "{", "0", "\0", "#", "\u{e9}"][kind % 8];
                let edited = [&page[..place], other, &page[place + 1..]].concat();
                for body in [page, page, &edited] {
                    pair.page(body, Some(content_type));
                }
            }
        }
    }
}

#[test]
fn what_else_may_happen_meanwhile() {
    let mut pair = Pair::new();
    for round in 0..3 {
        for _ in 0..3 {
            pair.page(TEXT, None);
        }
        assert!(pair.short.memory.repeat.is_some());
        match round {
            0 => pair.down(),
            1 => drop(pair.page("", None)),
            _ => drop(pair.page(TEXT, Some("application/openmetrics-text"))),
        }
        pair.page(TEXT, None);
        pair.page(&TEXT.replace("plain NaN\n", ""), None);
        pair.page(&TEXT.replace("plain NaN\n", ""), None);
        pair.page(&format!("{TEXT}new 1\n"), None);
        pair.page(TEXT, None);
    }
    // Metadata that is given no more is forgotten after ten scrapes.
    for page in ["# TYPE a counter\na_total 1\n", "a_total 2\n"] {
        for _ in 0..13 {
            pair.page(page, None);
        }
    }
    assert!(pair.short.memory.repeat.is_some());
    // A type behind its series counts from the next scrape on, a help text, too.
    for page in ["b_total 1\n# TYPE b counter\n", "b_total 1\n# HELP b One.\n", "b_total 1\n# HELP b Two.\n"] {
        for _ in 0..3 {
            pair.page(page, None);
        }
    }
    // Each with its own time, or said to be wrong.
    for page in ["a 1 1800000000000\n", "a 1\na 2\n", "# TYPE h histogram\nh_bucket{le=\"x\"} 1\n"] {
        for _ in 0..3 {
            assert!(!pair.page(page, None), "{page}");
        }
    }
}

#[test]
fn dropped_series_and_limits_count_as_before() {
    let pattern = Pattern::new("b").expect("a pattern");
    let (sources, separator) = (vec!["__name__".to_owned()], String::new());
    let drop_b = Rule { sources, separator, action: Action::Drop(pattern), names: Names::Utf8 };
    let mut pair = Pair::new();
    for target in [&mut pair.short, &mut pair.full] {
        target.rules.relabel = vec![drop_b.clone()].into();
        target.rules.limits.samples = 2;
        target.rules.extra_report = Some(std::time::Duration::from_secs(10));
    }
    for value in 1..5 {
        pair.page(&format!("a {value}\nb {value}\nc {value}\n"), None);
    }
    assert!(pair.short.memory.repeat.is_some());
    assert_eq!(report(&pair.short.page("a 1\nb 2\nc 3\n", None)), [1, 3, 2, 0]);
    // What relabelling drops has to be a number all the same.
    pair.full.page("a 1\nb 2\nc 3\n", None);
    pair.page("a 1\nb x\nc 3\n", None);
}
