//! All that the collector says about itself at one moment.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};

use super::family::{Families, Family, Label, Labels, Number, labels};
use super::instruments::{
    ACCEPTED, CPU, DROPPED_ITEMS, Detail, FAILED, IN_FLIGHT, Instrument, MEMORY, RECEIVED_ITEMS, REFUSED,
    REFUSED_ITEMS, REJECTED_ITEMS, RESUMED_ITEMS, SEND_FAILED, SENT, SENT_ITEMS, STORED_ITEMS, UPTIME, WRITTEN_ITEMS,
    of,
};
use super::meters::Meters;
use super::payload::{Span, payload};
use super::resource::OwnResource;
use crate::collector::component::Context;
use crate::collector::counters::{Counters, Tally};
use crate::otlp::Payload;
use crate::procfs::own_resident_memory;

/// Reads counts and meters.
pub struct Gatherer {
    detail: Detail,
    counters: Arc<Counters>,
    meters: Arc<Meters>,
    resource: Arc<OwnResource>,
    begin: (SystemTime, Instant),
}

impl Gatherer {
    /// Of the collector that `context` is of.
    #[must_use]
    pub fn new(detail: Detail, context: &Context) -> Self {
        Self {
            detail,
            counters: context.counters.clone(),
            meters: context.shared.get(),
            resource: context.shared.get(),
            begin: (SystemTime::now(), Instant::now()),
        }
    }

    /// The collector's own attributes.
    #[must_use]
    pub fn resource(&self) -> &OwnResource {
        &self.resource
    }

    /// Everything.
    #[must_use]
    pub fn all(&self) -> Vec<Family> {
        let mut families = Families::new(self.detail);
        self.meters.read(&mut families);
        self.components(&mut families);
        self.process(&mut families);
        self.items(&mut families);
        families.sorted()
    }

    /// Everything, as a request.
    #[must_use]
    pub fn payload(&self) -> Payload {
        payload(&self.all(), self.resource.all(), self.span())
    }

    /// The counts of `delivery.json`, as a request.
    #[must_use]
    pub fn report(&self) -> Payload {
        let mut families = Families::new(Detail::Detailed);
        self.items(&mut families);
        payload(&families.sorted(), self.resource.all(), self.span())
    }

    fn span(&self) -> Span {
        let nanoseconds = |time: SystemTime| {
            time.duration_since(UNIX_EPOCH).ok().and_then(|age| u64::try_from(age.as_nanos()).ok()).unwrap_or(0)
        };
        Span { begin: nanoseconds(self.begin.0), end: nanoseconds(SystemTime::now()) }
    }

    fn process(&self, families: &mut Families) {
        let mut add = |instrument, number| families.add(instrument, Vec::new(), number);
        add(&UPTIME, Number::Double(self.begin.1.elapsed().as_secs_f64()));
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
            add(&CPU, Number::Double(seconds(usage.user_time()) + seconds(usage.system_time())));
        }
        if let Some(bytes) = own_resident_memory() {
            add(&MEMORY, Number::Integer(bytes));
        }
    }

    /// Receivers that scrape, and files: all that has no meter of its own.
    fn components(&self, families: &mut Families) {
        for (component, signal, tally, items) in self.counters.all() {
            let Some((group, id)) = component.split_once('/') else { continue };
            let kind = id.split('/').next().unwrap_or_default();
            let mut add = |instrument, labels, items| families.add(instrument, labels, Number::Integer(items));
            match (group, kind) {
                ("receivers", "prometheus") => {
                    let labels = || labels([("receiver", id), ("transport", "http")]);
                    let counts = [
                        (&ACCEPTED, if tally == Tally::Received { items } else { 0 }),
                        (&REFUSED, if tally == Tally::Refused { items } else { 0 }),
                        (&FAILED, 0),
                    ];
                    for (instruments, items) in counts {
                        add(of(instruments, signal), labels(), items);
                    }
                }
                ("exporters", "file") => {
                    let labels = || labels([("exporter", id)]);
                    add(of(&SENT, signal), labels(), if tally == Tally::Written { items } else { 0 });
                    if matches!(tally, Tally::Dropped(_)) {
                        add(of(&SEND_FAILED, signal), labels(), items);
                    }
                    let mut labels = labels();
                    labels.push((Cow::Borrowed("data_type"), Label::from(signal.name())));
                    add(&IN_FLIGHT, labels, 0);
                }
                _ => {}
            }
        }
    }

    fn items(&self, families: &mut Families) {
        for (component, signal, tally, items) in self.counters.all() {
            let mut labels: Labels = labels([("component", component.as_str()), ("signal", signal.name())]);
            let instrument: &'static Instrument = match tally {
                Tally::Received => &RECEIVED_ITEMS,
                Tally::Refused => &REFUSED_ITEMS,
                Tally::Written => &WRITTEN_ITEMS,
                Tally::Sent => &SENT_ITEMS,
                Tally::Rejected => &REJECTED_ITEMS,
                Tally::Stored => &STORED_ITEMS,
                Tally::Resumed => &RESUMED_ITEMS,
                Tally::Dropped(reason) => {
                    labels.push((Cow::Borrowed("reason"), Label::from(reason.as_ref())));
                    &DROPPED_ITEMS
                }
            };
            families.add(instrument, labels, Number::Integer(items));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::{Style, render};
    use super::*;
    use crate::collector::testing::context;
    use crate::otlp::Signal;

    #[test]
    fn counts_become_the_reference_s_metrics_and_our_own() {
        let context = context("collector");
        for (component, tally, items) in [
            ("receivers/prometheus/a", Tally::Received, 5),
            ("receivers/prometheus/a", Tally::Refused, 2),
            ("exporters/file/metrics", Tally::Written, 4),
            ("exporters/file/metrics", Tally::Dropped("write_failed".into()), 1),
            ("exporters/otlp_http", Tally::Dropped("http_400".into()), 3),
        ] {
            context.counters.add(component, Signal::Metrics, tally, items);
        }
        let page = render(&Gatherer::new(Detail::Normal, &context).all(), &Vec::new(), &Style::default(), false);
        for line in [
            r#"otelcol_receiver_accepted_metric_points{receiver="prometheus/a",transport="http"} 5"#,
            r#"otelcol_receiver_refused_metric_points{receiver="prometheus/a",transport="http"} 2"#,
            r#"otelcol_receiver_failed_metric_points{receiver="prometheus/a",transport="http"} 0"#,
            r#"otelcol_exporter_sent_metric_points{exporter="file/metrics"} 4"#,
            r#"otelcol_exporter_send_failed_metric_points{exporter="file/metrics"} 1"#,
            r#"otelcol_exporter_in_flight_requests{data_type="metrics",exporter="file/metrics"} 0"#,
            r#"gym_collector_dropped{component="exporters/otlp_http",reason="http_400",signal="metrics"} 3"#,
            r#"gym_collector_written{component="exporters/file/metrics",signal="metrics"} 4"#,
        ] {
            assert!(page.lines().any(|known| known == line), "{line}: {page}");
        }
        for name in ["otelcol_process_uptime ", "otelcol_process_cpu_seconds ", "otelcol_process_memory_rss "] {
            assert!(page.contains(&format!("\n{name}")), "{name}: {page}");
        }
    }
}
