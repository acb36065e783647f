//! Tests of the exposition parser: every oddity of the two dialects.
#![expect(clippy::format_push_string, reason = "short lines are built for comparison")]

use proptest::prelude::*;

use super::{Dialect, Entry, MetricType, Parser, dialect_of};

/// The page line by line, in short words; the last one is the error, if there is one.
fn walk(page: impl AsRef<[u8]>, dialect: Dialect) -> Vec<String> {
    let mut parser = Parser::new(page.as_ref(), dialect);
    let mut lines = Vec::new();
    loop {
        match parser.next_entry() {
            Ok(None) => return lines,
            Err(error) => {
                lines.push(format!("error: {error}"));
                return lines;
            }
            Ok(Some(Entry::Help(name, text))) => lines.push(format!("help {} {text:?}", name.escape_ascii())),
            Ok(Some(Entry::Type(name, kind))) => lines.push(format!("type {} {}", name.escape_ascii(), kind.word())),
            Ok(Some(Entry::Unit(name, unit))) => {
                lines.push(format!("unit {} {}", name.escape_ascii(), unit.escape_ascii()));
            }
            Ok(Some(Entry::Sample(sample))) => {
                let labels = match parser.labels() {
                    Ok(labels) => labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>(),
                    Err(error) => vec![error.message],
                };
                let mut line = format!("{} {}", labels.join(","), sample.value);
                if let Some(time) = sample.timestamp_ms {
                    line += &format!(" @{time}");
                }
                if let Some(exemplar) = sample.exemplar {
                    line += &format!(" # {:?} {}", exemplar.labels, exemplar.value);
                    if let Some(time) = exemplar.timestamp_ms {
                        line += &format!(" @{time}");
                    }
                }
                lines.push(line);
            }
        }
    }
}

fn text(page: impl AsRef<[u8]>) -> Vec<String> {
    walk(page, Dialect::Text)
}

fn openmetrics(page: impl AsRef<[u8]>) -> Vec<String> {
    walk(page, Dialect::OpenMetrics)
}

/// Whether the page is rejected, and how many samples stand before the error.
fn broken(lines: &[String]) -> Option<usize> {
    let error = lines.last().is_some_and(|line| line.starts_with("error: "));
    error.then(|| lines.iter().filter(|line| line.starts_with("__name__")).count())
}

fn name(text: &str) -> String {
    format!("__name__={text:?}")
}

#[test]
fn a_content_type_chooses_the_dialect() {
    for (content_type, dialect) in [
        (None, Dialect::Text),
        (Some(""), Dialect::Text),
        (Some("text/plain; version=0.0.4"), Dialect::Text),
        (Some("application/json"), Dialect::Text),
        (Some("text/html; charset=utf-8"), Dialect::Text),
        (Some("application/openmetrics-text"), Dialect::OpenMetrics),
        (Some("Application/OpenMetrics-Text ; version=1.0.0"), Dialect::OpenMetrics),
    ] {
        assert_eq!(dialect_of(content_type, None), Ok(dialect), "{content_type:?}");
    }
    let fallback = |content_type| dialect_of(Some(content_type), Some(Dialect::OpenMetrics));
    assert_eq!(fallback("application/json"), Ok(Dialect::OpenMetrics));
    assert_eq!(fallback("text/plain"), Ok(Dialect::Text));
    assert!(dialect_of(Some("application/vnd.google.protobuf; proto=x"), None).is_err());
}

#[test]
fn text_lines() {
    assert_eq!(
        text("# HELP a some help\n# TYPE a counter\na{x=\"1\",y=\"2\"} 3 1700000000123\n# a comment\n\nvllm:b 1\n"),
        [
            "help a \"some help\"",
            "type a counter",
            "__name__=\"a\",x=\"1\",y=\"2\" 3 @1700000000123",
            "__name__=\"vllm:b\" 1"
        ]
    );
}

#[test]
fn text_blanks_and_line_ends() {
    let two = |first: &str, second: &str| vec![format!("{} 1", name(first)), format!("{} 2", name(second))];
    assert_eq!(text("a 1  \nb\t2 \t\n"), two("a", "b"));
    // Blanks before a name become part of it, as in the reference.
    assert_eq!(text("  a 1\n\tb 2\n"), two("  a", "\tb"));
    assert_eq!(text("a 1\nb 2"), two("a", "b"));
    assert_eq!(text("a   1   170   \n"), ["__name__=\"a\" 1 @170"]);
    assert_eq!(text("b {x=\"1\"}  2\n"), ["__name__=\"b\",x=\"1\" 2"]);
    assert_eq!(text("a{x=\"1\"}1\n"), ["__name__=\"a\",x=\"1\" 1"]);
    assert_eq!(text("a{ x = \"1\" , y = \"2\" , } 1\n"), ["__name__=\"a\",x=\"1\",y=\"2\" 1"]);
    assert_eq!(text("a 1\n# the end"), ["__name__=\"a\" 1"]);
    assert_eq!(text("#\tTYPE\tb\tgauge\n#TYPE c gauge\n#\n# HELP\n# TYPES x\n"), ["type b gauge"]);
    assert!(text("").is_empty());
    assert!(text("# EOF\n").is_empty());
    for page in
        ["a 1\r\nb 2\r\n", "a 1 # note\n", "a\n", "a 1 2 3\n", "a 1 -5\n", "a 1 1.5\n", "a 1 1e3\n", "a 1 now\n"]
    {
        assert_eq!(broken(&text(page)), Some(0), "{page:?}");
    }
}

#[test]
fn text_values() {
    for (value, shown) in
        [("Inf", "inf"), ("+inf", "inf"), ("-Infinity", "-inf"), ("nan", "NaN"), ("007", "7"), (".5", "0.5")]
    {
        assert_eq!(text(format!("a {value}\n")), [format!("{} {shown}", name("a"))]);
    }
    for value in ["0x1", "1_0", "1e400", "+NaN", "1,5", "b"] {
        assert_eq!(broken(&text(format!("a 1\nb {value}\nc 1\n"))), Some(1), "{value}");
    }
}

#[test]
fn every_nan_is_the_ordinary_one() {
    let mut parser = Parser::new(b"a nAn\n", Dialect::Text);
    let Ok(Some(Entry::Sample(sample))) = parser.next_entry() else { panic!("no sample") };
    assert_eq!(sample.value.to_bits(), f64::NAN.to_bits());
}

#[test]
fn text_names_and_escapes() {
    assert_eq!(
        text("a{x=\"q\\\" b\\\\ n\\n o\\q\",y=\"} { , = #\"} 1\n"),
        ["__name__=\"a\",x=\"q\\\" b\\\\ n\\n o\\\\q\",y=\"} { , = #\" 1"]
    );
    assert_eq!(text("a{x=\"1\n2\"} 1\n"), ["__name__=\"a\",x=\"1\\n2\" 1"]);
    assert_eq!(text("# HELP a b\\\\c\\nd\\\"e\\q\n"), ["help a \"b\\\\c\\nd\\\\\\\"e\\\\q\""]);
    assert_eq!(text("{\"http.code\",\"l.d\"=\"x\",p=\"y\"} 1\n"), ["__name__=\"http.code\",l.d=\"x\",p=\"y\" 1"]);
    assert_eq!(text("{p=\"y\",\"last\"} 1\n"), ["__name__=\"last\",p=\"y\" 1"]);
    assert_eq!(text("{\"quo\\\"ted\"} 1\n"), ["__name__=\"quo\\\"ted\" 1"]);
    assert_eq!(text("# TYPE \"a.b\" gauge\n"), ["type a.b gauge"]);
    assert_eq!(text("# HELP  c   two  spaces \n# HELP b   \n"), ["help c \"  two  spaces \"", "help b \"\""]);
    // The label values of known numbers are written alike, so that equal bounds are one label.
    assert_eq!(
        text("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"1e6\"} 1\nh_bucket{le=\"x\"} 1\n")[1..],
        [
            "__name__=\"h_bucket\",le=\"1.0\" 1",
            "__name__=\"h_bucket\",le=\"1e+06\" 1",
            "__name__=\"h_bucket\",le=\"x\" 1"
        ]
    );
    assert_eq!(text("# TYPE g gauge\ng{le=\"1\"} 1\n")[1..], ["__name__=\"g\",le=\"1\" 1"]);
}

#[test]
fn text_that_is_refused() {
    let pages: [&[u8]; 27] = [
        b"a 1\nb{x=\"1} 2\n",
        b"a 1\nb{x=\"1\" 2\n",
        b"a 1\nb{x=1} 1\n",
        b"a 1\nb{x='1'} 1\n",
        b"a 1\n1a 1\n",
        b"a 1\na-b 1\n",
        b"a 1\na.b 1\n",
        b"a 1\na{1x=\"1\"} 1\n",
        b"a 1\na{x:y=\"1\"} 1\n",
        b"a 1\na{x-y=\"1\"} 1\n",
        b"a 1\n{x=\"1\"} 1\n",
        b"a 1\n{} 1\n",
        b"a 1\na{x=\"1\",,y=\"2\"} 1\n",
        b"a 1\na{,x=\"1\"} 1\n",
        b"a 1\n<html>\n",
        b"a 1\n{\"a\": 1}\n",
        b"a 1\n{\"a\",\"b\"} 1\n",
        b"a 1\na{\"b\"} 1\n",
        b"a 1\nb{x=\"\xff\"} 2\n",
        b"a 1\n# HELP a caf\xe9\n",
        b"a 1\ncaf\xe9 2\n",
        b"a 1\nb\0 2\n",
        b"a 1\n# TYPE a meter\n",
        b"a 1\n# TYPE a COUNTER\n",
        b"a 1\n# TYPE a\n",
        b"a 1\n# TYPE a counter really\n",
        b"a 1\n# TYPE a info\n",
    ];
    for page in pages {
        assert_eq!(broken(&text(page)), Some(1), "{}", page.escape_ascii());
    }
    assert_eq!(text(b"# caf\xe9\na 1\n"), ["__name__=\"a\" 1"]);
    assert_eq!(text("# UNIT a seconds\na 1\n"), ["__name__=\"a\" 1"]);
    let names: [&[u8]; 3] = [b"{\"\"} 1\n", b"{\"a\",\"\"=\"x\"} 1\n", b"{\"\xff\"} 1\n"];
    for page in names {
        let line = &text(page)[0];
        assert!(line.starts_with("an empty") || line.contains("name is not UTF-8"), "{}", page.escape_ascii());
    }
}

#[test]
fn an_error_names_its_line() {
    assert_eq!(
        text("a 1\n\nb{x=\"1 2\n").pop(),
        Some("error: line 3: expected a label value after `=`, found an unexpected character".into())
    );
    assert_eq!(text("a 1\nb one\n").pop(), Some("error: line 2: `one` is no number".into()));
    assert_eq!(openmetrics("a 1\n").pop(), Some("error: line 2: the page does not end with `# EOF`".into()));
}

#[test]
fn openmetrics_lines() {
    assert_eq!(
        openmetrics(
            "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds h\\\"i\n\
             a_seconds_total{x=\"1\"} 3 1.5 # {trace_id=\"ab\",k=\"v\\n\"} 0.5 1.25\na_seconds_created{x=\"1\"} 1\n\
             b +Inf # {} 1\n# EOF\n"
        ),
        [
            "type a_seconds counter",
            "unit a_seconds seconds",
            "help a_seconds \"h\\\"i\"",
            "__name__=\"a_seconds_total\",x=\"1\" 3 @1500 # [(\"k\", \"v\\\\n\"), (\"trace_id\", \"ab\")] 0.5 @1250",
            "__name__=\"a_seconds_created\",x=\"1\" 1",
            "__name__=\"b\" inf # [] 1",
        ]
    );
    let accepted = [
        "a{} 1\n# EOF\n",
        "a{x=\"1\",} 1\n# EOF",
        "# TYPE a info\n# TYPE a stateset\n# TYPE a gaugehistogram\n# TYPE a unknown\na 1\n# EOF\n",
        "# HELP a \n# EOF\n",
        "a -1 -1.5e3\n# EOF\n",
    ];
    for page in accepted {
        assert_eq!(broken(&openmetrics(page)), None, "{page:?}");
    }
}

#[test]
fn openmetrics_that_is_refused() {
    let after_a_sample = [
        "a 1\n",
        "a 1\n# EOF\nb 1\n",
        "a 1\n\n# EOF\n",
        "a 1\nb  1\n# EOF\n",
        "a 1\nb\t1\n# EOF\n",
        "a 1\nb 1\r\n# EOF\n",
        "a 1\nb{ x=\"1\"} 1\n# EOF\n",
        "a 1\nb{x=\"1\" ,y=\"1\"} 1\n# EOF\n",
        "a 1\n# a comment\n# EOF\n",
        "a 1\n# UNIT a seconds\n# EOF\n",
        "a 1\n# UNIT seconds seconds\n# EOF\n",
        "a 1\nb 1 # {x=\"1\"}\n# EOF\n",
        "a 1\nb 1 # {\"x\"} 1\n# EOF\n",
        "a 1\n# TYPE a untyped\n# EOF\n",
        "a 1\n# TYPE a\n# EOF\n",
        "a 1\nb 1 NaN\n# EOF\n",
        "a 1\nb{x=\"1\n2\"} 1\n# EOF\n",
        "a 1\nb 1",
        "a 1\n# EOF x\n",
        // The sample before the blank at the end of the line counts.
        "a 1 \n# EOF\n",
        "a 1 # x\n# EOF\n",
    ];
    for page in after_a_sample {
        assert_eq!(broken(&openmetrics(page)), Some(1), "{page:?}");
    }
    assert_eq!(broken(&openmetrics("")), Some(0));
}

proptest! {
    #[test]
    fn any_bytes_end_without_a_panic(page in prop::collection::vec(any::<u8>(), 0..200)) {
        text(&page);
        openmetrics(&page);
    }

    #[test]
    fn nearly_valid_pages_end_without_a_panic(page in "([a-c_:]{1,3}|[{}\"=, \t\n#\\\\0-9.]|# (TYPE|HELP|UNIT|EOF) |\0){0,40}") {
        text(&page);
        openmetrics(&page);
    }

    /// What is written by the rules is read back as it was.
    #[test]
    fn a_written_sample_is_read_back(label in "[a-z_][a-z0-9_]{0,5}", value in "\\PC{0,8}", number in -1e12f64..1e12, time in 0i64..2_000_000_000_000) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let page = format!("m{{{label}=\"{escaped}\"}} {number} {time}\n");
        let mut parser = Parser::new(page.as_bytes(), Dialect::Text);
        let Ok(Some(Entry::Sample(sample))) = parser.next_entry() else { panic!("no sample in {page}") };
        prop_assert_eq!(sample.value.to_bits(), number.to_bits());
        prop_assert_eq!(sample.timestamp_ms, Some(time));
        let labels = parser.labels().expect("labels");
        prop_assert_eq!(labels.get(&label), value);
    }
}

#[test]
fn types_have_their_words() {
    assert_eq!(MetricType::default().word(), "unknown");
}
