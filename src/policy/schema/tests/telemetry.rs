//! Telemetry, its variables, the collector, secrets.

use super::case::{Case, good};
use crate::diag::Severity;
use crate::plan::PortChoice;
use crate::policy::spec::{EnvValue, Exporter};

#[test]
fn who_has_the_last_word_on_telemetry() {
    let job = "name: x\ntelemetry: {span_groups: job, traces_enabled: no, service_name: mine}\n";
    let telemetry =
        |variables: &[(&str, &str)], set: &[&str]| Case { job, set, variables, ..Case::default() }.good().telemetry;
    // The collector switches on what nobody says.
    let plain = telemetry(&[], &[]);
    assert_eq!((plain.enabled.value, plain.enabled.source.to_string().as_str()), (true, "otel.gym_telemetry"));
    assert_eq!((plain.span_groups.value.as_str(), plain.logs_enabled.value), ("job", true));
    assert_eq!(plain.span_groups.source.to_string(), "jobs/job.yaml:2");
    assert_eq!((plain.traces_enabled.value, plain.metrics_enabled.value), (false, true));
    assert_eq!((plain.run_id.value.as_str(), plain.service_name.value.as_str()), ("j1", "mine"));
    // Variables win over the block, Gym's over lens's, --set over all; blank ones count as unset.
    let variables = [
        ("NEMO_LENS_TRACES_ENABLED", " On "),
        ("NEMO_LENS_SPAN_GROUPS", "all"),
        ("NEMO_GYM_OTEL_SPAN_GROUPS", "Rollout, verify,,"),
        ("NEMO_GYM_OTEL_ENABLED", "0"),
        ("NEMO_GYM_OTEL_RUN_ID", "  "),
        ("OTEL_SERVICE_NAME", "theirs"),
        ("NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS", "0.5"),
        ("NEMO_GYM_OTEL_EXPORTER", "console"),
    ];
    let loud = telemetry(&variables, &["telemetry.logs_enabled=false", "telemetry.memory_profiling.enabled=yes"]);
    assert!(loud.traces_enabled.value && !loud.enabled.value && !loud.logs_enabled.value);
    assert_eq!(loud.span_groups.value, "Rollout, verify,,");
    assert_eq!(loud.span_groups.source.to_string(), "NEMO_GYM_OTEL_SPAN_GROUPS of the environment");
    assert_eq!((loud.run_id.value.as_str(), loud.service_name.value.as_str()), ("j1", "theirs"));
    assert_eq!((loud.memory_profiling.enabled.value, loud.memory_profiling.interval_seconds.value), (true, 0.5));
    assert_eq!(loud.exporter.value, Exporter::Console);
    let set =
        telemetry(&variables, &["telemetry.enabled=true", "telemetry.service_name=s", "telemetry.span_groups=agent"]);
    assert_eq!(
        (set.enabled.value, set.service_name.value.as_str(), set.span_groups.value.as_str()),
        (true, "s", "agent")
    );
    // Without a collector, or with gym_telemetry off, the defaults hold.
    for off in ["otel.enabled=false", "otel.gym_telemetry=false"] {
        let off = Case { job: "name: x", set: &[off], ..Case::default() }.good().telemetry;
        assert!(!off.enabled.value && !off.logs_enabled.value);
        assert_eq!(off.span_groups.value, "default");
    }
}

#[test]
fn every_spelling_of_a_boolean_variable_is_read() {
    let spellings = [
        ("1", true),
        ("true", true),
        ("YES", true),
        (" oN\t", true),
        ("0", false),
        ("False", false),
        ("no", false),
        ("OFF ", false),
    ];
    for name in [
        "ENABLED",
        "TRACES_ENABLED",
        "METRICS_ENABLED",
        "LOGS_ENABLED",
        "SERVICE_NAME_PER_SERVER",
        "MEMORY_PROFILING_ENABLED",
    ] {
        for (text, value) in spellings {
            let variable = format!("NEMO_GYM_OTEL_{name}");
            let checked = Case { job: "name: x", variables: &[(&variable, text)], ..Case::default() }.checked();
            assert!(checked.problems.is_empty(), "{}", checked.problems);
            let telemetry = checked.spec.telemetry;
            let field = match name {
                "ENABLED" => telemetry.enabled,
                "TRACES_ENABLED" => telemetry.traces_enabled,
                "METRICS_ENABLED" => telemetry.metrics_enabled,
                "LOGS_ENABLED" => telemetry.logs_enabled,
                "SERVICE_NAME_PER_SERVER" => telemetry.service_name_per_server,
                _ => telemetry.memory_profiling.enabled,
            };
            assert_eq!(field.value, value, "{variable}={text:?}");
        }
    }
}

#[test]
fn variables_that_make_no_sense_are_warnings_and_do_what_gym_does() {
    for (name, text, enabled) in [
        ("NEMO_GYM_OTEL_ENABLED", "maybe", false),
        ("NEMO_GYM_OTEL_TRACES_ENABLED", "2", false),
        ("NEMO_LENS_METRICS_ENABLED", "x", false),
        ("NEMO_GYM_OTEL_LOGS_ENABLED", "x", false),
        ("NEMO_GYM_OTEL_EXPORTER", "stdout", false),
        ("NEMO_GYM_OTEL_SPAN_GROUPS", "default,nope", false),
        ("NEMO_GYM_OTEL_SERVICE_NAME_PER_SERVER", "x", true),
        ("NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED", "x", true),
        ("NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS", "nan", true),
        ("NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS", "0", true),
        ("NEMO_GYM_OTEL_SANDBOX_RESOURCE_SAMPLE_INTERVAL_SECONDS", "-1", true),
    ] {
        let checked = Case { job: "name: x", variables: &[(name, text)], ..Case::default() }.checked();
        let problems: Vec<_> = checked.problems.iter().collect();
        assert_eq!(problems.len(), 1, "{name}");
        assert_eq!(problems[0].severity, Severity::Warning);
        assert!(problems[0].message.contains(name) && problems[0].message.contains(text), "{}", problems[0]);
        let telemetry = checked.spec.telemetry;
        assert_eq!(telemetry.enabled.value, enabled, "{name}");
        assert_eq!(telemetry.memory_profiling.interval_seconds.value, 1.0);
        assert_eq!(telemetry.sandbox_resource_sample_interval_seconds.value, 10.0);
        assert_eq!(telemetry.service_name_per_server.value, name != "NEMO_GYM_OTEL_SERVICE_NAME_PER_SERVER");
    }
    let said = Case { job: "name: x\ntelemetry: {span_groups: defualt, export_rank: 0}", ..Case::default() }.said();
    assert!(
        said.contains("warning: telemetry.span_groups: the span group `defualt`")
            && said.contains("did you mean `default`?"),
        "{said}"
    );
    assert!(said.contains("warning: telemetry.export_rank: the key has no effect"), "{said}");
}

#[test]
fn a_collector_needs_somewhere_to_send_to() {
    let said =
        |site: &str, variables: &[(&str, &str)]| Case { site, job: "name: x", variables, ..Case::default() }.said();
    let text = said("cluster: c", &[]);
    assert!(
        text.contains("error: otel.endpoint: the key `endpoint` is missing")
            && text.contains("error: otel.service_name:"),
        "{text}"
    );
    assert_eq!(said("otel: {enabled: false}", &[]), "");
    let site = "otel: {endpoint: \"https://otlp.example.com\", service_name: s, token_env: CORP}";
    let text = said(site, &[]);
    assert!(
        text.contains("error: otel.token_env: the variable `CORP` with the token is not set\n  --> site/here.yaml:1"),
        "{text}"
    );
    assert_eq!(said(site, &[("CORP", "t0ken")]), "");
    assert!(said(site, &[("CORP", " ")]).contains("otel.token_env"));
    assert_eq!(said(&site.replace("CORP", "off"), &[]), "");
    assert_eq!(said(&site.replace(", token_env: CORP", ""), &[("OTEL_TOKEN", "x")]), "");
    let spec = Case { site, job: "name: x", variables: &[("CORP", "t")], ..Case::default() }.good();
    assert_eq!(spec.otel.endpoint.unwrap().value, "https://otlp.example.com");
    assert_eq!((spec.otel.gpu_metrics_port, spec.otel.node_metrics_port), (Some(9400), Some(9100)));
    assert_eq!(spec.otel.ports.grpc, PortChoice::Range(4317, 4417));
    // Off in every spelling, null for the exporters' ports.
    let site = "otel: {endpoint: no, service_name: s, gpu_metrics_port: ~, node_metrics_port: off, binary: false, tenant_attribute: false}";
    let otel = Case { site, job: "name: x", ..Case::default() }.good().otel;
    assert_eq!((otel.endpoint, otel.gpu_metrics_port, otel.node_metrics_port), (None, None, None));
    assert!(otel.binary.is_none() && otel.tenant_attribute.is_none() && otel.token_env.is_none());
}

#[test]
fn secrets_are_looked_up_only_if_the_world_says_so() {
    let job =
        "name: x\ndriver: {command: [x], env: {T: \"${secret:NOPE}\", U: \"${runtime:NOPE2}\", V: \"${secret:N:-d}\"}}";
    let case = Case { job, ..Case::default() };
    let said = case.said();
    assert!(
        said.contains("driver.env.T: the secret `NOPE` is not set") && said.contains("the variable `NOPE2`"),
        "{said}"
    );
    assert_eq!(said.matches("error:").count(), 2);
    let env = &case.checked().spec.driver.unwrap().env;
    assert!(env["T"].masked && !env["U"].masked);
    let named =
        good("name: x\ndriver: {command: [x], env: {MY_api_key: abc, PLAIN: abc, KEYS: !off}}").driver.unwrap().env;
    assert!(named["MY_api_key"].masked && !named["PLAIN"].masked && !named["KEYS"].masked);
    assert_eq!(named["KEYS"].value, EnvValue::Unset);
}
