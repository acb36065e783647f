//! Beside what Go printed.

use serde::Deserialize;

use super::{Printable, format};
use crate::collector::text::go_number::{parse_double, parse_integer};

fn int(value: i64) -> Printable {
    Printable::Int(value)
}

fn text(text: &str) -> Printable {
    Printable::Text(text.to_owned())
}

/// All of these were printed by Go.
#[test]
fn what_go_prints() {
    let double = Printable::Double;
    let list = || Printable::List(vec![text("a"), int(1), Printable::Nil], "[]interface {}");
    let shown = || Printable::Shown("1ns".to_owned(), "time.Duration", Box::new(int(1)));
    let bytes = || Printable::Bytes(b"hi".to_vec());
    let cases: Vec<(&str, Vec<Printable>, &str)> = vec![
        ("%s-%05d-%v", vec![text("x"), int(7), Printable::Bool(true)], "x-00007-true"),
        (
            "%s|%s|%s|%s",
            vec![Printable::Nil, int(5), double(1.5), list()],
            "%!s(<nil>)|%!s(int64=5)|%!s(float64=1.5)|[a %!s(int64=1) <nil>]",
        ),
        (
            "%s|%v|%x|%X|%q",
            vec![bytes(), bytes(), text("hi"), bytes(), text("a\"b\n")],
            r#"hi|[104 105]|6869|6869|"a\"b\n""#,
        ),
        (
            "%5d|%-5d|%+d|% d|%x|%#x|%o|%b|%c|%U",
            vec![int(7), int(7), int(7), int(7), int(255), int(255), int(8), int(5), int(65), int(65)],
            "    7|7    |+7| 7|ff|0xff|10|101|A|U+0041",
        ),
        (
            "%e|%.2f|%8.3f|%-8.1f|%g|%G",
            vec![double(1.5), double(1.005), double(2.5), double(2.5), double(1e21), double(1e-7)],
            "1.500000e+00|1.00|   2.500|2.5     |1e+21|1E-07",
        ),
        (
            "%v %v %v %v",
            vec![double(1.0), double(100_000.0), double(1e20), double(123_456_789.0)],
            "1 100000 1e+20 1.23456789e+08",
        ),
        ("%!|%z", vec![int(1), text("ab")], "%!!(int64=1)|%!z(string=ab)"),
        ("%5s|%-5s|%.2s|%05s", vec![text("ab"), text("ab"), text("abc"), text("ab")], "   ab|ab   |ab|000ab"),
        ("%[2]d %[1]d %d", vec![int(1), int(2)], "2 1 2"),
        ("%*d|%%|%6.2f%%", vec![int(5), int(42), double(99.5)], "   42|%| 99.50%"),
        ("%s extra", vec![text("a"), text("b"), int(3)], "a extra%!(EXTRA string=b, int64=3)"),
        ("%s missing %d", vec![text("a")], "a missing %!d(MISSING)"),
        ("%d|%t", vec![text("a"), Printable::Nil], "%!d(string=a)|%!t(<nil>)"),
        (
            "%6.3v|%6v|%-6v|%06v",
            vec![double(1.23456), text("a"), Printable::Bool(true), int(-3)],
            "  1.23|     a|true  |-00003",
        ),
        ("%", vec![text("a")], "%!(NOVERB)%!(EXTRA string=a)"),
        (
            "%v %v %g %.3g %.10g %+v",
            vec![double(1e6), double(1.5e-5), double(123_456.789), double(1_234_567.0), double(1.0 / 3.0), double(2.5)],
            "1e+06 1.5e-05 123456.789 1.23e+06 0.3333333333 2.5",
        ),
        (
            "%08.3f|%+08d|%x|%#o|%.0d|%5.3d|% x",
            vec![double(-2.71659), int(42), int(-255), int(8), int(0), int(5), text("abc")],
            "-002.717|+0000042|-ff|010||  005|61 62 63",
        ),
        ("%[5]d|%s", vec![int(1)], "%!d(BADINDEX)|%!s(int64=1)"),
        ("%v|%d|%T", vec![shown(), shown(), shown()], "1ns|1|time.Duration"),
        ("%v %s", vec![list(), Printable::List(vec![text("a")], "[]string")], "[a 1 <nil>] [a]"),
    ];
    for (pattern, arguments, expected) in cases {
        assert_eq!(format(pattern, &arguments).as_deref(), Ok(expected), "{pattern}");
    }
}

#[derive(Deserialize)]
struct Recorded {
    format: String,
    #[serde(default)]
    arguments: Vec<String>,
    printed: String,
}

/// A letter for the type, then the value.
fn argument(written: &str) -> Printable {
    let Some(kind) = written.chars().next() else { return Printable::Nil };
    let rest = &written[1..];
    match kind {
        'i' => Printable::Int(parse_integer(rest).expect("an integer")),
        'd' => Printable::Double(parse_double(rest).expect("a double")),
        'b' => Printable::Bool(rest == "true"),
        'x' => Printable::Bytes(rest.as_bytes().to_vec()),
        's' => text(rest),
        'l' => Printable::List(rest.split(',').map(argument).collect(), "[]interface {}"),
        _ => Printable::Nil,
    }
}

#[test]
fn formats_print_what_go_prints() {
    let mut wrong = Vec::new();
    for line in include_str!("../../../../tests/data/go/formats.jsonl").lines() {
        let recorded: Recorded = serde_json::from_str(line).expect("a record");
        let arguments: Vec<Printable> = recorded.arguments.iter().map(|written| argument(written)).collect();
        let printed = format(&recorded.format, &arguments).expect("short");
        if printed != recorded.printed {
            let Recorded { format, arguments, printed: wanted } = recorded;
            wrong.push(format!("{format:?} {arguments:?}: {printed:?}, Go prints {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn bytes_that_are_no_text_are_escaped() {
    for (pattern, bytes, printed) in [
        ("%q", &b"\x00\xff\x01"[..], r#""\x00\xff\x01""#),
        ("%q", b"\"\xff\"", r#""\"\xff\"""#),
        ("%#q", b"a\xe2\x82", r#""a\xe2\x82""#),
        ("%.2q", b"a\xff\xfeb", r#""a\xff""#),
        ("%+q", b"\xc3\xa9\xff", r#""\u00e9\xff""#),
    ] {
        assert_eq!(format(pattern, &[Printable::Bytes(bytes.to_vec())]).as_deref(), Ok(printed), "{pattern} {bytes:?}");
    }
}

#[test]
fn a_precision_may_be_greater_than_any_that_rust_has() {
    let double = || Printable::Double(1.5);
    let zeros = "0".repeat(99_999);
    for (pattern, value, printed) in [
        ("%.100000f", double(), format!("1.5{zeros}")),
        ("%.100000e", double(), format!("1.5{zeros}e+00")),
        ("%.100000g", double(), "1.5".to_owned()),
        ("%.100000x", double(), format!("0x1.8{zeros}p+00")),
        ("%.100000d", int(7), format!("{zeros}7")),
        ("%.100000U", int(7), format!("U+{zeros}7")),
        ("%.100000s", text("ab"), "ab".to_owned()),
    ] {
        assert_eq!(format(pattern, &[value]), Ok(printed), "{pattern}");
    }
}

#[test]
fn a_long_text_is_an_error_and_takes_no_memory() {
    assert!(format(&"%[2]*[1]d".repeat(10_000), &[int(1), int(1_000_000)]).is_err());
    assert!(format(&"%[1]s".repeat(10_000), &[text(&"x".repeat(100_000))]).is_err());
    assert!(format("%1000000d", &[Printable::List(vec![int(1); 100_000], "[]int64")]).is_err());
    assert!(format("%1000000b", &[Printable::Bytes(vec![1; 100_000])]).is_err());
    assert_eq!(format("%1000000d", &[int(1)]).map(|text| text.len()), Ok(1_000_000));
}

/// A few bytes of format may not ask for memory without end.
#[test]
fn the_longest_result() {
    for (times, fits) in [(4, true), (5, false)] {
        let arguments: Vec<Printable> = (0..times).map(int).collect();
        let printed = format(&"%1000000d".repeat(arguments.len()), &arguments);
        assert_eq!(printed.is_ok_and(|text| text.len() == arguments.len() * 1_000_000), fits, "{times}");
    }
}
