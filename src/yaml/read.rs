//! The loader: events in, a tree out.

use std::collections::HashMap;
use std::fmt::Write as _;

use indexmap::IndexMap;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::value::{Yaml, YamlValue};
use crate::diag::{Location, Problem, Problems};

/// How deep lists and mappings may nest; people's files have a dozen levels.
const DEPTH_LIMIT: usize = 100;
/// How much all anchors and aliases together may copy: a node counts 1, and 1 for each 64 bytes of its text.
const COPY_LIMIT: usize = 100_000;

/// Reads one document. `file` is the name that every [`Location`] carries.
///
/// A byte order mark is skipped, and any line end counts as `\n`, in block scalars too. An empty document is a plain
/// empty scalar. Keys that stand twice and tags that mean nothing are all reported; a syntax error ends the reading.
pub fn read(text: &str, file: &str) -> Result<Yaml, Problems> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(at) = text.find('\0') {
        let line = 1 + text[..at].matches('\n').count();
        return Err(Problem::new("a NUL byte is no text").in_file(location(file, line)).into());
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut loader = Loader {
        parser: Parser::new_from_str(&text),
        file,
        anchors: HashMap::new(),
        copied: 0,
        path: String::new(),
        problems: Problems::new(),
    };
    match loader.stream() {
        Ok(yaml) => loader.problems.into_result(yaml),
        Err(problem) => {
            loader.problems.push(problem);
            Err(loader.problems)
        }
    }
}

fn location(file: &str, line: usize) -> Location {
    Location::new(file, u32::try_from(line).unwrap_or(u32::MAX))
}

/// A node that an anchor names.
struct Anchored {
    node: Yaml,
    weight: usize,
}

struct Loader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    file: &'a str,
    anchors: HashMap<usize, Anchored>,
    /// What anchors and aliases have copied so far.
    copied: usize,
    /// Keys from the root to the node that is being read.
    path: String,
    problems: Problems,
}

impl<'a> Loader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn at(&self, span: Span) -> Location {
        location(self.file, span.start.line())
    }

    fn syntax(&self, error: &ScanError) -> Problem {
        let problem = Problem::new(format!("not valid YAML: {} (column {})", error.info(), error.marker().col() + 1))
            .in_file(location(self.file, error.marker().line()));
        if error.info().contains("tab") { problem.hint("indent with blanks") } else { problem }
    }

    fn stream(&mut self) -> Result<Yaml, Problem> {
        let mut document = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::DocumentStart(_) if document.is_some() => {
                    return Err(Problem::new("a second YAML document begins here; a file holds one")
                        .in_file(self.at(span))
                        .hint("give each document a file of its own"));
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    document = Some(self.node(event, span, 0)?.0);
                }
                Event::StreamEnd => break,
                _ => {}
            }
        }
        Ok(document.unwrap_or_else(|| Yaml {
            value: YamlValue::Scalar { text: String::new(), plain: true },
            location: location(self.file, 1),
            tag: None,
        }))
    }

    /// The node that begins with `event`, and its weight.
    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<(Yaml, usize), Problem> {
        if depth > DEPTH_LIMIT {
            return Err(
                Problem::new(format!("lists and mappings nest deeper than {DEPTH_LIMIT}")).in_file(self.at(span))
            );
        }
        let place = self.at(span);
        let (value, tag, anchor, weight) = match event {
            Event::Alias(anchor) => return self.alias(anchor, place),
            Event::Scalar(text, style, anchor, tag) => {
                let weight = 1 + text.len() / 64;
                let (tag, text_tag) = self.tag(tag.as_deref(), &place, "scalar");
                let plain = style == ScalarStyle::Plain && !text_tag;
                (YamlValue::Scalar { text: text.into_owned(), plain }, tag, anchor, weight)
            }
            Event::SequenceStart(anchor, tag) => {
                let (tag, _) = self.tag(tag.as_deref(), &place, "list");
                let (value, weight) = self.list(depth)?;
                (value, tag, anchor, weight)
            }
            Event::MappingStart(anchor, tag) => {
                let (tag, _) = self.tag(tag.as_deref(), &place, "mapping");
                let (value, weight) = self.map(depth)?;
                (value, tag, anchor, weight)
            }
            _ => return Err(Problem::new("not valid YAML: a value is missing").in_file(place)),
        };
        let node = Yaml { value, location: place, tag };
        if anchor != 0 {
            self.copy(weight, &node.location)?;
            self.anchors.insert(anchor, Anchored { node: node.clone(), weight });
        }
        Ok((node, weight))
    }

    /// What an alias stands for, with the alias's own line.
    fn alias(&mut self, anchor: usize, place: Location) -> Result<(Yaml, usize), Problem> {
        let Some(weight) = self.anchors.get(&anchor).map(|a| a.weight) else {
            return Err(Problem::new("an alias inside of the value that it names").in_file(place));
        };
        self.copy(weight, &place)?;
        let mut node = self.anchors[&anchor].node.clone();
        node.location = place;
        Ok((node, weight))
    }

    fn copy(&mut self, weight: usize, place: &Location) -> Result<(), Problem> {
        self.copied += weight;
        if self.copied <= COPY_LIMIT {
            return Ok(());
        }
        Err(Problem::new(format!("alias limit: anchors and aliases copy more than {COPY_LIMIT} values"))
            .in_file(place.clone())
            .hint("write the values out, or use fewer aliases of aliases"))
    }

    fn list(&mut self, depth: usize) -> Result<(YamlValue, usize), Problem> {
        let mut items = Vec::new();
        let mut weight = 1;
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok((YamlValue::List(items), weight));
            }
            let parent = self.path.len();
            let _ = write!(self.path, "[{}]", items.len() + 1);
            let (item, item_weight) = self.node(event, span, depth + 1)?;
            self.path.truncate(parent);
            items.push(item);
            weight += item_weight;
        }
    }

    fn map(&mut self, depth: usize) -> Result<(YamlValue, usize), Problem> {
        let mut map: IndexMap<String, Yaml> = IndexMap::new();
        let mut merged: Option<(Yaml, usize)> = None;
        let mut weight = 1;
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let place = self.at(span);
            let (key, merge) = match event {
                Event::Scalar(text, style, _, None) => {
                    if style == ScalarStyle::Plain && matches!(&*text, "" | "~") {
                        return Err(Problem::new("a key is missing before `:`").at(&self.path).in_file(place));
                    }
                    let merge = style == ScalarStyle::Plain && text == "<<";
                    (text.into_owned(), merge)
                }
                Event::Alias(anchor) => {
                    let (node, _) = self.alias(anchor, place.clone())?;
                    match node.value {
                        YamlValue::Scalar { text, .. } => (text, false),
                        _ => return Err(Problem::new("a key must be text").at(&self.path).in_file(place)),
                    }
                }
                _ => {
                    return Err(Problem::new("a key must be text, without a tag")
                        .at(&self.path)
                        .in_file(place)
                        .hint("quote text that begins with `{`, `[`, `!` or `?`"));
                }
            };
            let parent = self.path.len();
            if parent > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            let (event, span) = self.next()?;
            let (mut value, value_weight) = self.node(event, span, depth + 1)?;
            value.location = place;
            let first = if merge { merged.as_ref().map(|m| &m.0) } else { map.get(&key) };
            if let Some(first) = first {
                self.problems.push(twice(&key, &first.location, &value.location, merge).at(&self.path));
            } else if merge {
                merged = Some((value, value_weight));
            } else {
                weight += value_weight;
                map.insert(key, value);
            }
            self.path.truncate(parent);
        }
        if let Some((source, source_weight)) = merged {
            weight += source_weight;
            self.merge(&mut map, source);
        }
        Ok((YamlValue::Map(map), weight))
    }

    /// `<<`: adds what `source` (a mapping, or several of which the first wins) has and `map` has not.
    fn merge(&mut self, map: &mut IndexMap<String, Yaml>, source: Yaml) {
        match source.value {
            YamlValue::Map(entries) => {
                for (key, value) in entries {
                    map.entry(key).or_insert(value);
                }
            }
            YamlValue::List(sources) if sources.iter().all(|s| matches!(s.value, YamlValue::Map(_))) => {
                for source in sources {
                    self.merge(map, source);
                }
            }
            _ => self.problems.push(
                Problem::new("`<<` merges a mapping or a list of mappings")
                    .at(&self.path)
                    .in_file(source.location)
                    .hint("`<<: *name`, where `&name` stands before the mapping to take over"),
            ),
        }
    }

    /// The tag to keep, and whether it makes the scalar text.
    fn tag(&mut self, tag: Option<&Tag>, place: &Location, kind: &str) -> (Option<String>, bool) {
        let Some(tag) = tag else { return (None, false) };
        let known = if tag.is_yaml_core_schema() {
            match tag.suffix.as_str() {
                "str" => kind == "scalar",
                "null" | "bool" | "int" | "float" if kind == "scalar" => return (None, false),
                "seq" if kind == "list" => return (None, false),
                "map" if kind == "mapping" => return (None, false),
                _ => false,
            }
        } else if tag.handle == "!" && matches!(tag.suffix.as_str(), "unset" | "off") {
            return (Some(tag.suffix.clone()), false);
        } else {
            // A lone `!` says: not typed, so text.
            tag.suffix == "!" && tag.handle.is_empty() || tag.handle == "!" && tag.suffix.is_empty()
        };
        if !known {
            let written = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
            self.problems.push(
                Problem::new(format!("unknown tag `{written}` on a {kind}"))
                    .at(&self.path)
                    .in_file(place.clone())
                    .hint("known: `!unset`, `!off`, `!!str`; quote text that begins with `!`"),
            );
        }
        (None, true)
    }
}

fn twice(key: &str, first: &Location, second: &Location, merge: bool) -> Problem {
    let lines = match (first.line, second.line) {
        (Some(a), Some(b)) if a != b => format!("on lines {a} and {b}"),
        (Some(a), _) => format!("twice on line {a}"),
        _ => String::new(),
    };
    let problem = Problem::new(format!("the key `{key}` stands more than once, {lines}")).in_file(second.clone());
    if merge { problem.hint("merge several mappings with `<<: [*a, *b]`") } else { problem.hint("keep one of them") }
}
