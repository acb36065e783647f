//! Patterns and templates beside what Go makes of them (`tests/data/go`).

use serde::Deserialize;

use super::{Pattern, compile};

/// The texts of the recorder.
const TEXTS: [&str; 7] = [
    "",
    "a",
    "abab aab",
    "aAbBkK\u{212a} sS\u{17f}",
    "\u{c9}\u{e9} a_b-1\u{663} \n\t\u{b}[x]y\n",
    "\u{3b1}\u{3a9} ab1\nba2 \u{4e2d}",
    "^$.*+?(){2}[]|\\&&--~~#<>:,=a{,3}\0\u{1}\u{7f}",
];

#[derive(Deserialize)]
struct Recorded {
    pattern: String,
    #[serde(default)]
    template: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    matches: Vec<Vec<i64>>,
    #[serde(default)]
    replaced: Vec<String>,
}

/// Start and end of every group of every match, -1 for one that took no part.
fn matches(pattern: &Pattern, text: &str) -> Vec<i64> {
    let place = |place: usize| i64::try_from(place).expect("short");
    let mut all = Vec::new();
    for found in pattern.captures_iter(text) {
        for group in found.iter() {
            all.extend(group.map_or([-1, -1], |group| [place(group.start()), place(group.end())]));
        }
    }
    all
}

fn replaced(pattern: &Pattern, text: &str, template: &str) -> String {
    let (mut new, mut end) = (String::new(), 0);
    for found in pattern.captures_iter(text) {
        let whole = found.get(0).expect("a match");
        new += &text[end..whole.start()];
        new += &pattern.expand(template, &found);
        end = whole.end();
    }
    new + &text[end..]
}

#[test]
fn patterns_mean_what_they_mean_to_go() {
    let mut wrong = Vec::new();
    let lines = include_str!("../../../../tests/data/go/patterns.jsonl").lines();
    for line in lines {
        let recorded: Recorded = serde_json::from_str(line).expect("a record");
        let shown = &recorded.pattern;
        match compile(shown) {
            Err(error) if recorded.error.is_empty() => wrong.push(format!("{shown:?} is refused: {error}")),
            Err(error) if !recorded.error.is_empty() && error != recorded.error => {
                wrong.push(format!("{shown:?}: error {error:?}, Go says {:?}", recorded.error));
            }
            // Other spellings of what Go knows: they hurt nobody.
            Ok(_) if [r"\p{Grek}", r"\p{IsGreek}"].contains(&shown.as_str()) => {}
            Ok(_) if !recorded.error.is_empty() => wrong.push(format!("{shown:?} is accepted: {}", recorded.error)),
            Err(_) => {}
            Ok(pattern) => {
                for (text, (wanted, became)) in TEXTS.iter().zip(recorded.matches.iter().zip(&recorded.replaced)) {
                    let found = matches(&pattern, text);
                    if found != *wanted {
                        wrong.push(format!("{shown:?} in {text:?}: {found:?}, Go finds {wanted:?}"));
                    } else if replaced(&pattern, text, &recorded.template) != *became {
                        let template = &recorded.template;
                        let got = replaced(&pattern, text, template);
                        wrong.push(format!("{shown:?} -> {template:?} in {text:?}: {got:?}, Go gives {became:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_too_large_or_too_deep_is_refused() {
    for pattern in [r"\pL{1000}(?:\pL{1000}){1000}".to_owned(), format!("{}{}", "(".repeat(5000), ")".repeat(5000))] {
        assert!(compile(&pattern).is_err());
    }
    assert!(compile(&format!("{}a{}", "(".repeat(200), ")".repeat(200))).is_ok());
    assert!(compile(r".{1000}\w{1000}\pL{50}").is_ok());
}
