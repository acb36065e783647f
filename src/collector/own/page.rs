//! The page of a pull reader: Prometheus text, as the reference writes it.

use std::fmt::Write as _;

use super::family::{Family, Label, Labels, Number, Point};
use super::instruments::{Instrument, InstrumentKind};
use crate::collector::text::go_format::shortest;
use crate::collector::text::value_text::as_text;
use crate::otlp::AnyValue;

/// How names and labels are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Units and `_total` at the end of names.
    pub suffixes: bool,
    /// Labels that name the scope.
    pub scope: bool,
    /// Which attributes of the resource are labels of every point.
    pub constant: Option<Constant>,
}

/// Names of attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constant {
    /// Only these; all if it is empty.
    pub included: Vec<String>,
    /// But not these.
    pub excluded: Vec<String>,
}

impl Constant {
    fn has(&self, name: &str) -> bool {
        let among = |names: &[String]| names.iter().any(|known| known == name);
        !among(&self.excluded) && (self.included.is_empty() || among(&self.included))
    }
}

/// The page. `any_names`: the client takes names with dots; otherwise they have underscores.
#[must_use]
pub fn render(families: &[Family], resource: &[(String, AnyValue)], style: &Style, any_names: bool) -> String {
    let mut page = Page { text: String::new(), any_names };
    let constant: Labels = resource
        .iter()
        .filter(|(name, _)| style.constant.as_ref().is_some_and(|constant| constant.has(name)))
        .map(|(name, value)| (name.clone().into(), Label::Text(as_text(value))))
        .collect();
    for family in families {
        let instrument = family.instrument;
        let mut more = constant.clone();
        if style.scope {
            let label = |name, value: &str| (std::borrow::Cow::Borrowed(name), Label::from(value));
            more.extend([
                label("otel_scope_name", instrument.scope),
                label("otel_scope_schema_url", ""),
                label("otel_scope_version", ""),
            ]);
        }
        let name = if style.suffixes { with_suffixes(instrument) } else { instrument.name.to_owned() };
        page.head(&name, instrument.description, word(instrument.kind));
        for point in &family.points {
            page.point(&name, point, &more);
        }
    }
    page.head("target_info", "Target metadata", "gauge");
    let attributes = resource.iter().map(|(name, value)| (name.clone().into(), Label::Text(as_text(value))));
    page.line("target_info", attributes.collect(), "1");
    page.text
}

fn word(kind: InstrumentKind) -> &'static str {
    match kind {
        InstrumentKind::Counter => "counter",
        InstrumentKind::UpDown | InstrumentKind::Gauge => "gauge",
        InstrumentKind::Histogram => "histogram",
    }
}

fn with_suffixes(instrument: &Instrument) -> String {
    let unit = match instrument.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let mut name = instrument.name.to_owned();
    for suffix in [unit, if instrument.kind == InstrumentKind::Counter { "_total" } else { "" }] {
        if !name.ends_with(suffix) {
            name.push_str(suffix);
        }
    }
    name
}

struct Page {
    text: String,
    any_names: bool,
}

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let name = self.name(name);
        // Writing to a text does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn point(&mut self, name: &str, point: &Point, more: &Labels) {
        let labels: Labels = point.labels.iter().chain(more).cloned().collect();
        match &point.number {
            Number::Integer(value) => self.line(name, labels, &shortest(*value as f64)),
            Number::Double(value) => self.line(name, labels, &shortest(*value)),
            Number::Buckets { bounds, counts, sum } => {
                let mut total = 0;
                let bounds = bounds.iter().map(|bound| shortest(*bound as f64)).chain(["+Inf".to_owned()]);
                for (bound, count) in bounds.zip(counts) {
                    total += count;
                    self.labelled(&format!("{name}_bucket"), labels.clone(), Some(&bound), &shortest(total as f64));
                }
                self.line(&format!("{name}_sum"), labels.clone(), &shortest(*sum as f64));
                self.line(&format!("{name}_count"), labels, &shortest(total as f64));
            }
        }
    }

    fn line(&mut self, name: &str, labels: Labels, value: &str) {
        self.labelled(name, labels, None, value);
    }

    /// A line whose last label is the upper bound of a bucket.
    fn labelled(&mut self, name: &str, mut labels: Labels, bound: Option<&str>, value: &str) {
        labels.sort();
        let mut parts: Vec<String> = labels
            .iter()
            .map(|(name, value)| {
                let value = match value {
                    Label::Text(text) => text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"),
                    Label::Integer(number) => number.to_string(),
                };
                format!("{}=\"{value}\"", self.name(name))
            })
            .collect();
        parts.extend(bound.map(|bound| format!("le=\"{bound}\"")));
        let mut name = self.name(name);
        if name.starts_with('"') {
            parts.insert(0, std::mem::take(&mut name));
        }
        let braces = if parts.is_empty() { String::new() } else { format!("{{{}}}", parts.join(",")) };
        let _ = writeln!(self.text, "{name}{braces} {value}");
    }

    /// A name as it may stand; in quotes where it has other characters than the old format takes.
    fn name(&self, name: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.chars().all(plain) {
            name.to_owned()
        } else if self.any_names {
            format!("\"{name}\"")
        } else {
            name.chars().map(|c| if plain(c) { c } else { '_' }).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::{Families, labels};
    use super::super::instruments::{BATCH_SIZE, CPU, Detail, FILTERED, INCOMING, UPTIME};
    use super::super::meters::Buckets;
    use super::*;

    fn families() -> Vec<Family> {
        let mut families = Families::new(Detail::Normal);
        let both = || labels([("processor", "filter/\"a\""), ("otel.signal", "traces")]);
        families.add(&INCOMING, both(), Number::Integer(600_000));
        families.add(&INCOMING, both(), Number::Integer(400_000));
        families.add(&FILTERED[0], labels([("filter", "filter")]), Number::Integer(2));
        families.add(&UPTIME, Vec::new(), Number::Double(0.25));
        let sizes = Buckets::new(&[10, 25]);
        for size in [3, 10, 11, 26] {
            sizes.record(size);
        }
        families.add(&BATCH_SIZE, labels([("processor", "batch")]), sizes.get().expect("something"));
        families.sorted()
    }

    fn lines(style: &Style, any_names: bool) -> Vec<String> {
        let resource = vec![("service.name".to_owned(), AnyValue::from("gymrun"))];
        let page = render(&families(), &resource, style, any_names);
        page.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn plain_names_as_the_reference_writes_them() {
        let wanted = [
            "otelcol_process_uptime 0.25",
            r#"otelcol_processor_batch_batch_send_size_bucket{processor="batch",le="10"} 2"#,
            r#"otelcol_processor_batch_batch_send_size_bucket{processor="batch",le="25"} 3"#,
            r#"otelcol_processor_batch_batch_send_size_bucket{processor="batch",le="+Inf"} 4"#,
            r#"otelcol_processor_batch_batch_send_size_sum{processor="batch"} 50"#,
            r#"otelcol_processor_batch_batch_send_size_count{processor="batch"} 4"#,
            r#"otelcol_processor_filter_spans_filtered{filter="filter"} 2"#,
            r#"otelcol_processor_incoming_items{otel_signal="traces",processor="filter/\"a\""} 1e+06"#,
            r#"target_info{service_name="gymrun"} 1"#,
        ];
        assert_eq!(lines(&Style::default(), false), wanted);
    }

    #[test]
    fn suffixes_scopes_constants_and_names_with_dots() {
        let constant = Some(Constant { included: vec!["service.name".into()], excluded: Vec::new() });
        let lines = lines(&Style { suffixes: true, scope: true, constant }, true);
        let scope = "otel_scope_name=\"go.opentelemetry.io/collector/service\",otel_scope_schema_url=\"\",otel_scope_version=\"\"";
        assert!(
            lines
                .contains(&format!("otelcol_process_uptime_seconds_total{{{scope},\"service.name\"=\"gymrun\"}} 0.25")),
            "{lines:#?}"
        );
        assert!(
            lines.iter().any(|line| line.starts_with("{\"otelcol_processor_filter_spans.filtered_total\",filter=")),
            "{lines:#?}"
        );
        assert_eq!(with_suffixes(&CPU), "otelcol_process_cpu_seconds_total");
    }
}
