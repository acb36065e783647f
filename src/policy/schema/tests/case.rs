//! One job and its world, for the tests of this module.

use super::super::{Checked, check};
use crate::inputs::{Fragment, Layers, Reading, World, read_yaml, settings};
use crate::plan::{ProbeKind, Readiness, Source};
use crate::policy::spec::{ProcessSpec, Spec};

/// A site that sends nowhere.
pub const FILES: &str = "otel: {endpoint: false, service_name: s}";

#[derive(Default)]
pub struct Case<'a> {
    pub site: &'a str,
    pub job: &'a str,
    pub set: &'a [&'a str],
    pub variables: &'a [(&'a str, &'a str)],
}

impl Case<'_> {
    pub fn world(&self) -> World {
        let environment = self.variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        World { environment, ..World::isolated("/home/tester") }
    }

    pub fn checked(&self) -> Checked {
        let world = self.world();
        let reading = Reading { world: &world, job_id: "j1" };
        let set: Vec<String> = self.set.iter().map(|s| (*s).to_owned()).collect();
        let site = if self.site.is_empty() { FILES } else { self.site };
        let fragment = Fragment {
            source: Source { name: "here".into(), file: "site/here.yaml".into() },
            node: read_yaml(site, "site/here.yaml", reading).unwrap(),
        };
        let layers = Layers {
            unreadable: crate::diag::Problems::new(),
            job_file: "jobs/job.yaml".into(),
            fragments: vec![fragment],
            job: read_yaml(self.job, "jobs/job.yaml", reading).unwrap(),
            settings: settings(&set, reading).unwrap(),
        };
        check(layers, "j1", &world)
    }

    pub fn good(&self) -> Spec {
        let checked = self.checked();
        assert!(!checked.problems.any_error(), "{}", checked.problems);
        checked.spec
    }

    pub fn said(&self) -> String {
        self.checked().problems.to_string()
    }
}

pub fn good(job: &str) -> Spec {
    Case { job, ..Case::default() }.good()
}

pub fn process<'a>(spec: &'a Spec, name: &str) -> &'a ProcessSpec {
    spec.process(name).unwrap()
}

pub fn http(process: &ProcessSpec) -> (Vec<String>, f64) {
    match &process.readiness {
        Readiness::Probe(probe) => match &probe.question.kind {
            ProbeKind::Http { paths, .. } => (paths.clone(), probe.timeout_seconds),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}
