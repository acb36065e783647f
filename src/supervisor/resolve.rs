//! The one place where references become values: for files, probes and spawns alike.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Number, Value as Json};

use super::limits::Limits;
use super::ports::{Ports, port_name};
use crate::diag::Problem;
use crate::health::{self, Schedule, Target, TargetKind};
use crate::plan::{
    Encoding, PROCESS_MARK, Plan, ProbeKind, Question, Readiness, Reference, Segment, Text, Tree, Unit, Value,
    VariableValue, escape_for_collector, process_mark,
};
use crate::process::{Cgroup, Environment};
use crate::yaml;

/// Variables of gymrun itself: no child gets them. A gymrun that runs inside a job sets its own again.
const OWN_PREFIX: &str = "GYMRUN_";

/// The value of a variable that was made last, by its name: large documents are the same for all servers of a job, and
/// are encoded once.
type Known<'a> = HashMap<&'a str, (&'a Value, OsString)>;

/// What a job knows once its ports are chosen.
#[derive(Clone, Debug)]
pub struct Resolver {
    /// The chosen ports.
    pub ports: Ports,
    /// gymrun's own environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// The job directory, absolute.
    pub job_dir: PathBuf,
    /// W3C `traceparent` of gymrun's root span.
    pub traceparent: String,
}

/// A unit with every reference filled in.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// argv; not empty.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub environment: Arc<Environment>,
    /// The working directory.
    pub cwd: PathBuf,
    /// gymrun's own PATH: where bare program names are looked up.
    pub search: Option<OsString>,
    /// The entry of its environment that marks it.
    pub mark: String,
    /// How one finds out that it is ready, if it is asked.
    pub probe: Option<ResolvedProbe>,
    /// What is asked for as long as it is ready.
    pub liveness: Option<Target>,
    /// Its ports. Who answers there must be of its own tree.
    pub own_ports: Vec<u16>,
    /// The cgroup of its own, if it has one.
    pub cgroup: Option<Arc<Cgroup>>,
}

impl Resolved {
    /// Gives it a cgroup of its own, its probes included.
    pub(super) fn put_into(&mut self, cgroup: Cgroup) {
        let cgroup = Some(Arc::new(cgroup));
        let probes = self.probe.as_mut().map(|probe| &mut probe.target).into_iter().chain(self.liveness.as_mut());
        for probe in probes {
            if let TargetKind::Exec(command) = &mut probe.kind {
                command.cgroup.clone_from(&cgroup);
            }
        }
        self.cgroup = cgroup;
    }
}

/// A probe with every reference filled in.
#[derive(Clone, Debug)]
pub struct ResolvedProbe {
    /// What is asked.
    pub target: Target,
    /// How often.
    pub schedule: Schedule,
    /// From spawn to ready.
    pub limit: Duration,
}

/// What people write as a limit and mean as none; added to the clock it is still a moment.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// Seconds of a plan as a duration, a year at most.
#[must_use]
pub fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.max(0.0)).map_or(LONGEST, |duration| duration.min(LONGEST))
}

impl Resolver {
    fn variable(&self, name: &str, default: Option<&str>, what: &str) -> Result<String, Problem> {
        match self.environment.get(OsStr::new(name)) {
            Some(value) => value
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| Problem::new(format!("the value of the {what} `{name}` is no UTF-8 text"))),
            None => default.map(str::to_owned).ok_or_else(|| {
                Problem::new(format!("the {what} `{name}` is not set")).hint(format!("set the variable {name}"))
            }),
        }
    }

    fn port(&self, process: &str, key: Option<&str>) -> Result<u16, Problem> {
        let name = port_name(process, key);
        self.ports.get(&name).copied().ok_or_else(|| Problem::new(format!("`{name}` has no port")))
    }

    /// The value of one reference.
    pub fn reference(&self, reference: &Reference) -> Result<String, Problem> {
        match reference {
            Reference::Port { process, key } => self.port(process, key.as_deref()).map(|port| port.to_string()),
            Reference::Host { .. } => Ok("127.0.0.1".into()),
            Reference::Url { process } => Ok(format!("http://127.0.0.1:{}", self.port(process, None)?)),
            Reference::Secret { name, default } => self.variable(name, default.as_deref(), "secret"),
            Reference::Inherited { name, default } => self.variable(name, default.as_deref(), "variable"),
            Reference::JobDir => Ok(self.job_dir.display().to_string()),
            Reference::TraceParent => Ok(self.traceparent.clone()),
            Reference::CollectorEnv { name } => Ok(format!("${{env:{name}}}")),
        }
    }

    /// A text.
    pub fn text(&self, text: &Text) -> Result<String, Problem> {
        text.resolve(|reference| self.reference(reference))
    }

    /// A value: a text, or a document in its encoding.
    pub fn value(&self, value: &Value) -> Result<String, Problem> {
        match value {
            Value::Text(text) => self.text(text),
            Value::Encoded { encoding, value } => {
                let document = self.document(value, *encoding)?;
                Ok(match encoding {
                    Encoding::Json => document.to_string(),
                    Encoding::Yaml | Encoding::Collector => yaml::write(&document),
                })
            }
        }
    }

    fn document(&self, tree: &Tree, encoding: Encoding) -> Result<Json, Problem> {
        Ok(match tree {
            Tree::Null => Json::Null,
            Tree::Bool(value) => Json::Bool(*value),
            Tree::Int(value) => Json::from(*value),
            Tree::Float(value) => Number::from_f64(*value)
                .map(Json::Number)
                .ok_or_else(|| Problem::new(format!("a document cannot hold the number {value}")))?,
            Tree::Text(text) => match text.segments() {
                [Segment::Reference(Reference::Port { process, key })] => self.port(process, key.as_deref())?.into(),
                _ if encoding == Encoding::Collector => Json::String(self.collector_text(text)?),
                _ => Json::String(self.text(text)?),
            },
            Tree::List(items) => {
                Json::Array(items.iter().map(|item| self.document(item, encoding)).collect::<Result<_, _>>()?)
            }
            Tree::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key.clone(), self.document(value, encoding)?);
                }
                Json::Object(map)
            }
        })
    }

    /// A text of collector.yaml: all but its `${env:X}` is protected from the collector's expansion.
    fn collector_text(&self, text: &Text) -> Result<String, Problem> {
        let mut out = String::new();
        let mut pending = String::new();
        for segment in text.segments() {
            match segment {
                Segment::Literal(literal) => pending.push_str(literal),
                Segment::Reference(reference @ Reference::CollectorEnv { .. }) => {
                    out.push_str(&escape_for_collector(&pending, true));
                    pending.clear();
                    out.push_str(&self.reference(reference)?);
                }
                Segment::Reference(reference) => pending.push_str(&self.reference(reference)?),
            }
        }
        out.push_str(&escape_for_collector(&pending, false));
        Ok(out)
    }

    /// What all units inherit.
    fn inherited(&self) -> Result<Environment, Problem> {
        let own = |name: &OsString| name.as_encoded_bytes().starts_with(OWN_PREFIX.as_bytes());
        Environment::shared(self.environment.iter().filter(|(name, _)| !own(name)))
            .map_err(|_| Problem::new("gymrun's environment holds a NUL byte"))
    }

    /// The whole environment of a unit.
    fn environment_of<'a>(
        &self,
        plan: &Plan,
        unit: &'a Unit,
        inherited: &Environment,
        known: &mut Known<'a>,
    ) -> Result<Environment, Problem> {
        let mut all = inherited.clone();
        for (name, variable) in &unit.env {
            let located = |problem: Problem| problem.at(format!("{}.env.{name}", unit.name));
            let nul = |_| located(Problem::new(format!("the variable `{name}` holds a NUL byte")));
            match &variable.value {
                VariableValue::Set(value) => {
                    let text = match known.get(name.as_str()) {
                        Some((same, text)) if *same == value => text.clone(),
                        _ => {
                            let text = OsString::from(self.value(value).map_err(located)?);
                            known.insert(name, (value, text.clone()));
                            text
                        }
                    };
                    all.set(name, text).map_err(nul)?;
                }
                VariableValue::Unset => {
                    all.unset(name);
                }
                VariableValue::CollectorCopy { variable, default } => {
                    let value = self.variable(variable, default.as_deref(), "variable").map_err(located)?;
                    all.set(name, value.trim_end().replace('$', "$$")).map_err(nul)?;
                }
            }
        }
        // It cannot be taken away: what is left behind is found by it.
        all.set(PROCESS_MARK, process_mark(&plan.job_id, &unit.name))
            .map_err(|_| Problem::new("the job id holds a NUL byte"))?;
        Ok(all)
    }

    /// All units with every reference filled in.
    ///
    /// # Errors
    /// A variable is not set, a port is no number, or the kernel would not take a command line or an environment.
    pub fn units(&self, plan: &Plan) -> Result<Vec<Resolved>, Problem> {
        let mut known = Known::new();
        let inherited = self.inherited()?;
        let units = plan.units.iter().map(|unit| {
            self.unit(plan, unit, &inherited, &mut known).map_err(|problem| {
                let place = problem.location.is_unknown();
                let problem = if problem.path.is_empty() { problem.at(unit.name.clone()) } else { problem };
                if place { problem.in_file(unit.location.clone()) } else { problem }
            })
        });
        units.collect()
    }

    fn unit<'a>(
        &self,
        plan: &Plan,
        unit: &'a Unit,
        inherited: &Environment,
        known: &mut Known<'a>,
    ) -> Result<Resolved, Problem> {
        let argv = self.words(&unit.argv)?;
        let environment = self.environment_of(plan, unit, inherited, known)?;
        Limits::of_system().check(&unit.name, &argv, &environment)?;
        let cwd = Path::new(&unit.cwd).to_owned();
        let search = self.environment.get(OsStr::new("PATH")).cloned();
        let mut resolved = Resolved {
            argv,
            environment: Arc::new(environment),
            cwd,
            search,
            mark: format!("{PROCESS_MARK}={}", process_mark(&plan.job_id, &unit.name)),
            probe: None,
            liveness: None,
            own_ports: self.ports_of(unit),
            cgroup: None,
        };
        if let Readiness::Probe(probe) = &unit.readiness {
            resolved.probe = Some(ResolvedProbe {
                target: self.target(&probe.question, &resolved)?,
                schedule: probe.interval_seconds.map_or(Schedule::Growing, |s| Schedule::Fixed(seconds(s))),
                limit: seconds(probe.timeout_seconds),
            });
        }
        if let Some(liveness) = &unit.liveness {
            resolved.liveness = Some(self.target(&liveness.question, &resolved)?);
        }
        Ok(resolved)
    }

    /// What a question asks.
    fn target(&self, question: &Question, of: &Resolved) -> Result<Target, Problem> {
        let host = || question.host.as_ref().map_or(Ok("127.0.0.1".to_owned()), |host| self.text(host));
        let port = || {
            let text = question.port.as_ref().map_or(Ok(String::new()), |port| self.text(port))?;
            text.parse::<u16>().map_err(|_| Problem::new(format!("the health check's port `{text}` is no port")))
        };
        let kind = match &question.kind {
            ProbeKind::Http { paths, statuses } => {
                TargetKind::Http { host: host()?, port: port()?, paths: paths.clone(), statuses: statuses.clone() }
            }
            ProbeKind::Tcp => TargetKind::Tcp { host: host()?, port: port()? },
            ProbeKind::Grpc { service } => TargetKind::Grpc { host: host()?, port: port()?, service: service.clone() },
            ProbeKind::Exec { command } => TargetKind::Exec(health::Command {
                argv: self.words(command)?,
                environment: Arc::clone(&of.environment),
                cwd: of.cwd.clone(),
                search: of.search.clone(),
                cgroup: None,
            }),
        };
        Ok(Target { kind, request_timeout: seconds(question.request_timeout_seconds) })
    }

    /// The ports of a unit.
    fn ports_of(&self, unit: &Unit) -> Vec<u16> {
        let keys = unit.ports.keys().map(|key| Some(key.as_str())).chain([None]);
        keys.filter_map(|key| self.port(&unit.name, key).ok()).collect()
    }

    fn words(&self, words: &[Text]) -> Result<Vec<OsString>, Problem> {
        words.iter().map(|word| self.text(word).map(OsString::from)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use indexmap::IndexMap;

    use super::{LONGEST, Resolver, seconds};
    use crate::plan::{Encoding, Reference, Text, Tree, Value};

    #[test]
    fn every_number_of_seconds_can_be_added_to_the_clock() {
        for value in [f64::MAX, f64::INFINITY, 1e18, 2e19] {
            assert_eq!(seconds(value), LONGEST, "{value}");
        }
        assert!(seconds(f64::NAN).is_zero() && seconds(-1.0).is_zero());
        assert_eq!(seconds(1.5).as_millis(), 1500);
    }

    fn resolver() -> Resolver {
        Resolver {
            ports: [("agent".to_owned(), 8103), ("otel_collector.http".to_owned(), 4318)].into_iter().collect(),
            environment: BTreeMap::from([("TOKEN".into(), "a$b\n".into())]),
            job_dir: "/jobs/$x".into(),
            traceparent: "00-1-2-01".into(),
        }
    }

    fn port() -> Text {
        Text::reference(Reference::Port { process: "otel_collector".into(), key: Some("http".into()) })
    }

    fn encoded(encoding: Encoding, tree: Tree) -> String {
        resolver().value(&Value::Encoded { encoding, value: tree.into() }).expect("everything is known")
    }

    #[test]
    fn references_become_text_and_nothing_is_expanded_twice() {
        let mut text = Text::reference(Reference::Url { process: "agent".into() });
        text.push_literal("/run?x=${HOME}&t=");
        text.push_reference(Reference::Secret { name: "TOKEN".into(), default: None });
        assert_eq!(resolver().text(&text), Ok("http://127.0.0.1:8103/run?x=${HOME}&t=a$b\n".into()));
        let missing = Text::reference(Reference::Inherited { name: "NOPE".into(), default: None });
        assert_eq!(resolver().text(&missing).expect_err("it is not set").message, "the variable `NOPE` is not set");
    }

    #[test]
    fn a_lone_port_is_a_number_in_a_document_and_text_elsewhere() {
        let mut joined = Text::literal("127.0.0.1:");
        joined.push(&port());
        let tree = Tree::Map(IndexMap::from([
            ("port".to_owned(), Tree::Text(port())),
            ("endpoint".to_owned(), Tree::Text(joined)),
            ("zeros".to_owned(), Tree::Text("0510".into())),
            ("country".to_owned(), Tree::Text("no".into())),
        ]));
        assert_eq!(
            encoded(Encoding::Json, tree),
            r#"{"port":4318,"endpoint":"127.0.0.1:4318","zeros":"0510","country":"no"}"#
        );
    }

    #[test]
    fn the_collector_expands_only_what_is_meant_for_it() {
        let mut text = Text::literal("${1}_$");
        text.push_reference(Reference::CollectorEnv { name: "SLURM_JOB_ID".into() });
        text.push_reference(Reference::JobDir);
        let tree = Tree::Map(IndexMap::from([("value".to_owned(), Tree::Text(text))]));
        assert_eq!(encoded(Encoding::Collector, tree), "value: $${1}_$$${env:SLURM_JOB_ID}/jobs/$x\n");
    }
}
