//! One entry of `scrape_configs`, and the targets that it makes.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use super::super::discovery::{Found, Job};
use super::super::record::Rules;
use super::super::scrape::Request;
use super::global::{self, Global};
use super::http;
use super::limits::AllLimits;
use super::protocols::{self, Naming};
use super::receiver::Whole;
use super::rules::rules;
use super::scalars;
use crate::collector::config::node::Value;
use crate::collector::config::section::Section;
use crate::collector::net::host::bare;
use crate::diag::Problem;

/// One target with all that its scrapes need.
#[derive(Clone, Debug)]
pub struct TargetSettings {
    /// What is fetched, or why that is impossible.
    pub url: Result<Url, String>,
    /// What goes along.
    pub request: Arc<Request>,
    /// From scrape to scrape.
    pub interval: Duration,
    /// For one scrape.
    pub timeout: Duration,
    /// Before the first scrape, on top of the target's own place in the interval.
    pub offset: Duration,
    /// Whether there is one more scrape at the stop.
    pub at_stop: bool,
    /// Why every scrape fails without being tried.
    pub forced_failure: Option<String>,
    /// How pages are recorded.
    pub rules: Arc<Rules>,
}

/// Kinds of service discovery, and what else a job may have in Prometheus.
const UNSUPPORTED: &[&str] = &[
    "azure_sd_configs",
    "consul_sd_configs",
    "digitalocean_sd_configs",
    "dns_sd_configs",
    "docker_sd_configs",
    "dockerswarm_sd_configs",
    "ec2_sd_configs",
    "eureka_sd_configs",
    "file_sd_configs",
    "gce_sd_configs",
    "hetzner_sd_configs",
    "http_sd_configs",
    "ionos_sd_configs",
    "kubernetes_sd_configs",
    "kuma_sd_configs",
    "lightsail_sd_configs",
    "linode_sd_configs",
    "marathon_sd_configs",
    "moby_sd_configs",
    "nerve_sd_configs",
    "nomad_sd_configs",
    "openstack_sd_configs",
    "outscale_sd_configs",
    "ovhcloud_sd_configs",
    "puppetdb_sd_configs",
    "scaleway_sd_configs",
    "serverset_sd_configs",
    "stackit_sd_configs",
    "triton_sd_configs",
    "uyuni_sd_configs",
    "vultr_sd_configs",
    "xds_sd_configs",
    "zookeeper_sd_configs",
    http::UNSUPPORTED[0],
    http::UNSUPPORTED[1],
    http::UNSUPPORTED[2],
    http::UNSUPPORTED[3],
    http::UNSUPPORTED[4],
];

/// Reads a job and makes its targets. `names` are those of the jobs before it.
pub fn targets(
    section: &mut Section<'_>,
    global: &Global,
    whole: &Whole,
    names: &mut Vec<String>,
) -> Vec<TargetSettings> {
    section.unsupported(UNSUPPORTED);
    let name = job_name(section, names);
    let interval = scalars::duration(section, "scrape_interval").unwrap_or(global.interval);
    let timeout = global::timeout(section, interval).unwrap_or(global.timeout.min(interval));
    // Logs of failures have no effect in otelcol either; limits of native histograms have none without those.
    scalars::text(section, "scrape_failure_log_file");
    section.integer("native_histogram_bucket_limit", 0);
    section.number("native_histogram_min_bucket_factor");
    protocols::native_histograms(section);
    let naming = Naming::read(section, &global.naming);
    let limits = AllLimits::read(section, &global.limits);
    let own_protocols = protocols::protocols(section);
    let accept = protocols::accept(own_protocols.as_deref().or(global.protocols.as_deref()), &naming);
    let request = http::request(section, accept, limits.body);
    let extra_report = section.boolean("extra_scrape_metrics").unwrap_or(global.extra_report);
    let rules_of_samples = Rules {
        external: Arc::clone(&global.external),
        honor_labels: section.boolean("honor_labels").unwrap_or(false),
        honor_timestamps: section.boolean("honor_timestamps").unwrap_or(true),
        track_timestamps: section.boolean("track_timestamps_staleness").unwrap_or(false),
        fallback: protocols::fallback(section),
        relabel: rules(section, "metric_relabel_configs", naming.names).into(),
        names: naming.names,
        limits: limits.page,
        trim_suffixes: whole.trim_suffixes,
        ..Rules::default()
    };
    let job = Job {
        name,
        scheme: section.word("scheme", &["http", "https"]).unwrap_or("http").to_owned(),
        path: scalars::text(section, "metrics_path").unwrap_or_else(|| "/metrics".into()),
        parameters: parameters(section),
        interval,
        timeout,
        relabel: rules(section, "relabel_configs", naming.names),
    };
    let found = found(section, &job, global);
    let failure = limits
        .targets
        .filter(|limit| found.len() > *limit)
        .map(|limit| format!("the job has {} targets, `target_limit` allows {limit}", found.len()));
    let request = Arc::new(request);
    let settings = |found: Found| TargetSettings {
        request: request_of(&request, &found),
        url: found.url,
        interval: found.interval,
        timeout: found.timeout,
        offset: whole.offset,
        at_stop: whole.scrape_at_stop,
        forced_failure: failure.clone(),
        rules: Arc::new(Rules {
            target: found.labels,
            scheme: found.scheme,
            extra_report: extra_report.then_some(found.timeout),
            ..rules_of_samples.clone()
        }),
    };
    found.into_iter().map(settings).collect()
}

fn job_name(section: &mut Section<'_>, names: &mut Vec<String>) -> String {
    let name = scalars::filled(section, "job_name").unwrap_or_default();
    if name.is_empty() {
        section.missing("job_name");
    } else if names.contains(&name) {
        section.problem("job_name", Problem::new(format!("two jobs are named `{name}`")));
    }
    names.push(name.clone());
    name
}

/// The targets of `static_configs`, each once. One that relabelling makes impossible is left out with a warning.
fn found(section: &mut Section<'_>, job: &Job, global: &Global) -> Vec<Found> {
    const KEY: &str = "static_configs";
    if let Some(Value::List(items)) = section.node(KEY).map(|node| &node.value)
        && items.iter().any(|item| item.value == Value::Null)
    {
        section.problem(KEY, Problem::new(format!("an entry of `{KEY}` is empty")).hint("write `- targets: [...]`"));
    }
    let groups = section.sections(KEY, |group| {
        (scalars::texts(group, "targets").unwrap_or_default(), scalars::labels(group, "labels"))
    });
    let mut all: Vec<Found> = Vec::new();
    for (addresses, labels) in groups.unwrap_or_default() {
        for address in addresses {
            section.secret_user(&address);
            if job.relabel.is_empty()
                && let Err(why) = is_address(&address)
            {
                let problem = Problem::new(format!("`{address}` is no address of a target: {why}"));
                section.problem(KEY, problem.hint("write `host:port`; scheme and path are keys of the job"));
                continue;
            }
            let left_out = match job.target(&address, &labels) {
                Ok(Some(found)) if has_job(&found, global) => {
                    if !all.iter().any(|known| known.is_same(&found)) {
                        all.push(found);
                    }
                    continue;
                }
                Ok(Some(_)) => "it has no `job` label after relabelling".to_owned(),
                Ok(None) => continue,
                Err(why) => why,
            };
            section.problem(KEY, Problem::warning(format!("the target `{address}` is left out: {left_out}")));
        }
    }
    all
}

/// Without a job, nothing of a target can be recorded.
fn has_job(found: &Found, global: &Global) -> bool {
    let external = global.external.iter().any(|(name, value)| name == "job" && !value.is_empty());
    external || !found.labels.get("job").is_empty()
}

fn is_address(address: &str) -> Result<(), String> {
    if address.is_empty() || address.contains(['/', '@', '?', '#']) {
        return Err("it is more than host and port".into());
    }
    Url::parse(&format!("http://{address}")).map(drop).map_err(|error| error.to_string())
}

/// A certificate that is checked for another name than the host's needs a client that knows the host.
fn request_of(request: &Arc<Request>, found: &Found) -> Arc<Request> {
    if request.client.tls.told_name().is_none() {
        return Arc::clone(request);
    }
    let host = found.url.as_ref().ok().and_then(|url| url.host_str().map(str::to_owned));
    let mut own = Request::clone(request);
    own.client.named_host = host.map(|host| bare(&host).to_owned());
    Arc::new(own)
}

/// `params`: lists of texts by name, sorted.
fn parameters(section: &mut Section<'_>) -> Vec<(String, Vec<String>)> {
    const KEY: &str = "params";
    let Some(node) = section.node(KEY) else { return Vec::new() };
    let values = |node: &crate::collector::config::node::Node| -> Option<Vec<String>> {
        match &node.value {
            Value::Null => Some(Vec::new()),
            Value::List(items) => items.iter().map(scalars::text_of).collect(),
            _ => None,
        }
    };
    let read: Option<Vec<_>> = node
        .entries()
        .and_then(|entries| entries.iter().map(|entry| Some((entry.key.clone(), values(&entry.node)?))).collect());
    let Some(mut parameters) = read else {
        section.problem(KEY, Problem::new("`params` is no map of lists of texts").hint("write `{name: [value]}`"));
        return Vec::new();
    };
    parameters.sort();
    parameters
}
