//! When to try again: exponential, randomised, bounded.

use std::time::Duration;

use crate::collector::config::section::Section;
use crate::diag::Problem;

/// `retry_on_failure`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collector::exporters) struct Retry {
    /// Before the first further try.
    pub initial: Duration,
    /// A pause is drawn from `1 - randomization` to `1 + randomization` times the interval.
    pub randomization: f64,
    /// The interval grows by this factor.
    pub multiplier: f64,
    /// The largest interval.
    pub largest: Duration,
    /// From the first try to the last; zero is without end.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(5),
            randomization: 0.5,
            multiplier: 1.5,
            largest: Duration::from_secs(30),
            longest: Duration::from_mins(5),
        }
    }
}

impl Retry {
    /// `retry_on_failure` of a section; `None`: one try. `tolerant`: unknown keys are a warning.
    pub fn read(section: &mut Section<'_>, tolerant: bool) -> Option<Self> {
        if !section.has("retry_on_failure") {
            return Some(Self::default());
        }
        section.section("retry_on_failure", |inner| read(inner, tolerant)).unwrap_or_default()
    }
}

fn read(section: &mut Section<'_>, tolerant: bool) -> Option<Retry> {
    if tolerant {
        section.tolerate_unknown();
    }
    let defaults = Retry::default();
    let enabled = section.boolean("enabled").unwrap_or(true);
    let retry = Retry {
        initial: section.duration("initial_interval").unwrap_or(defaults.initial),
        randomization: section.number("randomization_factor").unwrap_or(defaults.randomization),
        multiplier: section.number("multiplier").unwrap_or(defaults.multiplier),
        largest: section.duration("max_interval").unwrap_or(defaults.largest),
        longest: section.duration("max_elapsed_time").unwrap_or(defaults.longest),
    };
    if !(0.0..=1.0).contains(&retry.randomization) {
        section.problem("randomization_factor", Problem::new("`randomization_factor` is not between 0 and 1"));
    }
    if !retry.multiplier.is_finite() {
        section.problem("multiplier", Problem::new("`multiplier` is no finite number"));
    } else if retry.multiplier < 0.0 {
        section.problem("multiplier", Problem::new("`multiplier` is negative"));
    }
    let bounds = [("initial_interval", retry.initial), ("max_interval", retry.largest)];
    for (key, _) in bounds.iter().filter(|(_, bound)| !retry.longest.is_zero() && retry.longest < *bound) {
        section.problem("max_elapsed_time", Problem::new(format!("`max_elapsed_time` is less than `{key}`")));
    }
    enabled.then_some(retry)
}

/// An endpoint that asks for a longer pause is asked again after this.
const LONGEST_ASKED: Duration = Duration::from_hours(24);

/// Between two tries, whatever the settings say: no endpoint needs more of them.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// The pauses of one request.
pub(super) struct Backoff {
    retry: Retry,
    interval: Duration,
}

impl Backoff {
    pub fn new(retry: Retry) -> Self {
        Self { interval: retry.initial, retry }
    }

    /// The next pause, at least what the endpoint asked for; `None` if the time is up. `draw` is from 0 to 1.
    pub fn next(&mut self, elapsed: Duration, asked: Option<Duration>, draw: f64) -> Option<Duration> {
        let spread = self.retry.randomization * (2.0 * draw - 1.0);
        let pause = scaled(self.interval, 1.0 + spread);
        self.interval = scaled(self.interval, self.retry.multiplier).min(self.retry.largest);
        let pause = pause.max(asked.unwrap_or_default().min(LONGEST_ASKED)).max(SHORTEST_PAUSE);
        let in_time = self.retry.longest.is_zero() || elapsed.saturating_add(pause) <= self.retry.longest;
        in_time.then_some(pause)
    }
}

fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::from_secs(1 << 40))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fuzzing::load_config;

    #[test]
    fn grows_to_the_largest_obeys_the_endpoint_and_ends() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(Retry { largest: seconds(10), longest: seconds(60), ..Retry::default() });
        assert_eq!(backoff.next(seconds(0), None, 0.5), Some(seconds(5)));
        assert_eq!(backoff.next(seconds(5), None, 0.5), Some(Duration::from_millis(7500)));
        assert_eq!(backoff.next(seconds(12), None, 1.0), Some(seconds(15)));
        assert_eq!(backoff.next(seconds(12), Some(seconds(40)), 0.0), Some(seconds(40)));
        assert_eq!(backoff.next(seconds(30), Some(seconds(40)), 0.0), None);
        assert_eq!(backoff.next(seconds(58), None, 0.0), None);
    }

    #[test]
    fn no_pause_is_none() {
        let none = Duration::ZERO;
        for (initial, largest, randomization) in
            [(none, none, 0.0), (none, none, 1.0), (Duration::from_secs(5), none, 1.0)]
        {
            let retry = Retry { initial, largest, randomization, longest: none, ..Retry::default() };
            let mut backoff = Backoff::new(retry);
            for _ in 0..5 {
                assert_eq!(backoff.next(none, None, 0.0), Some(SHORTEST_PAUSE));
            }
        }
    }

    #[test]
    fn a_factor_is_called_what_it_is() {
        for (factor, what) in [("-1", "is negative"), (".nan", "is no finite number"), ("-.inf", "is no finite number")]
        {
            let text = format!(
                "receivers: {{otlp: {{protocols: {{http: }}}}}}\n\
                 exporters: {{otlp_http: {{endpoint: 'http://x:1', retry_on_failure: {{multiplier: {factor}}}}}}}\n\
                 service: {{pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}}}}}\n"
            );
            let problems = load_config(&text, &|_| None).err().expect("a problem").to_string();
            assert!(problems.contains(&format!("`multiplier` {what}")), "{factor}: {problems}");
        }
    }

    #[test]
    fn no_endpoint_asks_for_too_much() {
        let mut backoff = Backoff::new(Retry::default());
        assert_eq!(backoff.next(Duration::from_secs(1), Some(Duration::MAX), 0.5), None);
        let mut backoff = Backoff::new(Retry { longest: Duration::ZERO, ..Retry::default() });
        assert_eq!(backoff.next(Duration::MAX, Some(Duration::MAX), 0.5), Some(LONGEST_ASKED));
    }
}
