//! From a draft to a plan: names, circles, ports, secrets, order.

use super::support::{folder, plan, problems, unit};

fn job(body: &str) -> String {
    format!("local gym = require 'gymrun'\nreturn gym.job {{ name = 'x',\n{body} }}")
}

fn server(name: &str, rest: &str) -> String {
    format!("{name} = gym.server {{ type = 'resources_servers', command = {{ '{name}' }}, {rest} }},\n")
}

#[test]
fn an_unknown_dependency_is_named_with_those_that_are_known() {
    let text =
        problems(&job(&format!("servers = {{ {} {} }}", server("a", "depends_on = { 'nope' }"), server("b", ""))));
    assert!(text.contains("servers.a.depends_on[1]") && text.contains("nope"), "{text}");
    assert!(text.contains("--> job.lua:3"), "{text}");
    let text =
        problems(&job(&format!("servers = {{ {} {} }}", server("agent", ""), server("b", "depends_on = { 'agnet' }"))));
    assert!(text.contains("did you mean `agent`"), "{text}");
}

#[test]
fn a_circle_is_named_in_full() {
    let text = problems(&job(&format!(
        "servers = {{ {} {} {} }}",
        server("a", "depends_on = { 'b' }"),
        server("b", "depends_on = { 'c' }"),
        server("c", "depends_on = { 'a' }"),
    )));
    assert!(text.contains("a -> b -> c -> a"), "{text}");
    assert_eq!(text.matches("error:").count(), 1, "{text}");
    let text = problems(&job(&format!("servers = {{ {} }}", server("a", "depends_on = { 'a' }"))));
    assert_eq!(text.matches("error:").count(), 1, "{text}");
}

#[test]
fn one_fixed_port_has_one_holder() {
    let text =
        problems(&job(&format!("servers = {{ {} {} }}", server("a", "port = 8100"), server("b", "port = 8100"))));
    assert!(text.contains("port 8100") && text.contains("servers.a.port") && text.contains("servers.b.port"), "{text}");
    let text = problems(&job(&format!(
        "otel = {{ ports = {{ http = 4318 }} }}, servers = {{ {} }}",
        server("a", "port = 4318")
    )));
    assert!(
        text.contains("port 4318") && text.contains("otel.ports.http") && text.contains("servers.a.port"),
        "{text}"
    );
    let text = problems(&job(&format!(
        "services = {{ v = gym.vllm {{ model = 'm', ports = {{ x = 9000 }} }} }}, servers = {{ {} }}",
        server("a", "ports = { y = 9000 }")
    )));
    assert!(text.contains("services.v.ports.x") && text.contains("servers.a.ports.y"), "{text}");
}

#[test]
fn references_lead_somewhere() {
    for (expression, expected) in [
        ("gym.url 'nobody'", "nobody"),
        ("gym.port('a', 'side')", "side"),
        ("gym.port 'driver'", "has no port"),
        ("gym.port()", "has no port"),
        ("gym.file 'nothing.json'", "nothing.json"),
    ] {
        let text = problems(&job(&format!(
            "servers = {{ {} }}, driver = {{ command = {{ 'd' }}, env = {{ X = {expression} }} }}",
            server("a", "")
        )));
        assert!(text.contains(expected) && text.contains("job.lua"), "{expression}\n{text}");
        assert_eq!(text.matches("error:").count(), 1, "{expression}\n{text}");
    }
}

#[test]
fn secrets_stand_where_they_are_not_seen() {
    for (body, path) in [
        ("driver = { command = { 'd', gym.secret('S', 'd') } }", "driver.command"),
        ("files = { f = gym.secret('S', 'd') }", "files.f"),
        ("attributes = { a = gym.secret('S', 'd') }", "attributes.a"),
        (
            "scrape = { { job_name = 'j', targets = { 'a:1' }, labels = { l = gym.secret('S', 'd') } } }",
            "scrape[1].labels.l",
        ),
    ] {
        let text = problems(&job(body));
        assert!(text.contains(path) && text.contains("secret"), "{body}\n{text}");
    }
}

#[test]
fn what_is_not_set_is_named_unless_nobody_looks() {
    let script = job(
        "driver = { command = { 'd' }, env = { A = gym.secret 'MY_SECRET', B = gym.runtime 'MY_VALUE', C = gym.runtime('OTHER', '') } }",
    );
    let text = problems(&script);
    assert!(text.contains("MY_SECRET") && text.contains("MY_VALUE") && !text.contains("OTHER"), "{text}");
    let mut folder = folder(&[("job.lua", &script)]);
    folder.world.look_up_secrets = false;
    folder.plan("job.lua");
}

#[test]
fn the_token_is_asked_for_by_name_and_never_shown() {
    let script = job(
        "otel = { endpoint = 'https://x', token_env = 'CORP_TOKEN', headers = { ['X-Scope'] = gym.secret 'SCOPE' } }, driver = { command = { 'd' } }",
    );
    let text = problems(&script);
    assert!(text.contains("otel.token_env") && text.contains("CORP_TOKEN"), "{text}");
    let plan =
        folder(&[("job.lua", &script)]).variable("CORP_TOKEN", "s3cr3t$1").variable("SCOPE", "sc0pe").plan("job.lua");
    let json = serde_json::to_string(&plan).expect("JSON");
    assert!(!json.contains("s3cr3t") && !json.contains("sc0pe"), "{json}");
    assert!(json.contains("Bearer ${env:CORP_TOKEN}") && json.contains("\"${env:SCOPE}\""), "{json}");
    let local = plan.collector.as_ref().and_then(|c| c.config.get("processors")?.get("resource/local").cloned());
    assert!(!serde_json::to_string(&local).expect("JSON").contains("CORP_TOKEN"));
    assert!(unit(&plan, "otel_collector").env.contains_key("CORP_TOKEN"));
}

#[test]
fn start_order_is_by_dependency_and_stop_order_the_other_way() {
    let plan = plan(&job(&format!(
        "driver = {{ command = {{ 'd' }} }}, services = {{ z = {{ command = {{ 'z' }} }} }}, servers = {{ {} {} {} {} }}",
        server("a", "depends_on = { 'c' }"),
        server("b", ""),
        server("c", "depends_on = { 'd' }"),
        server("d", "depends_on = { 'z' }"),
    )));
    let names: Vec<&str> = plan.units.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names[0], "otel_collector");
    assert_eq!(names.last(), Some(&"driver"));
    let place = |name: &str| names.iter().position(|n| *n == name).expect("there");
    assert!(place("z") < place("d") && place("d") < place("c") && place("c") < place("a"), "{names:?}");
    let levels = plan.stop_levels();
    assert_eq!(levels.first(), Some(&vec!["driver".to_owned()]));
    assert_eq!(levels.last(), Some(&vec!["otel_collector".to_owned()]));
    let mut first = levels[1].clone();
    first.sort();
    assert_eq!(first, ["a", "b"]);
}

#[test]
fn fixed_ports_are_numbers_everywhere() {
    let plan = plan(&job(&format!(
        "files = {{ f = gym.json {{ p = gym.port 'a' }} }}, servers = {{ {} }}, driver = {{ command = {{ 'd', gym.port 'a', gym.url 'a' }} }}",
        server("a", "port = 8101, metrics = true")
    )));
    assert_eq!(unit(&plan, "driver").argv[1].as_literal(), Some("8101"));
    assert_eq!(plan.scrape[0].targets[0].as_literal(), Some("localhost:8101"));
    let json = serde_json::to_value(&plan).expect("JSON");
    let file = json["files"].as_array().expect("a list").iter().find(|f| f["path"] == "files/f").expect("the file");
    assert_eq!(file["contents"]["value"]["p"], 8101);
}

#[test]
fn a_job_id_is_the_name_of_a_directory() {
    let folder = folder(&[("job.lua", &job("driver = { command = { 'd' } }"))]);
    for id in ["", "..", "a/b", "-x", "a b"] {
        let mut request = folder.request("job.lua");
        request.job_id = Some(id.into());
        assert!(gymrun::policy::load(request).is_err(), "{id}");
    }
}

#[test]
fn a_token_that_cannot_be_a_header_is_refused_unseen() {
    let script = job("otel = { endpoint = 'https://x' }, driver = { command = { 'd' } }");
    let text = folder(&[("job.lua", &script)]).variable("OTEL_TOKEN", "s3cr3t\nmore").problems("job.lua");
    assert!(text.contains("OTEL_TOKEN") && !text.contains("s3cr3t"), "{text}");
    folder(&[("job.lua", &script)]).variable("OTEL_TOKEN", "s3cr3t\n").plan("job.lua");
}

/// What cannot be sent is kept below the job directory, by gymrun's own collector alone: an otelcol would keep the token.
#[test]
fn a_queue_on_disk_is_a_storage_of_the_embedded_collector() {
    let plan_of = |more: &str| {
        let body = format!("otel = {{ service_name = 's', {more} }}, driver = {{ command = {{ 'd' }} }}");
        folder(&[("job.lua", &job(&body))]).variable("OTEL_TOKEN", "t")
    };
    let document = |more: &str| {
        let plan = plan_of(more).plan("job.lua");
        serde_json::to_value(&plan.collector.expect("a collector").config).expect("JSON")
    };
    let on_disk = document("endpoint = 'https://x', queue = 'disk'");
    assert_eq!(on_disk["exporters"]["otlp_http/managed"]["sending_queue"]["storage"], "file_storage", "{on_disk}");
    let storage = &on_disk["extensions"]["file_storage"];
    assert!(
        storage["directory"].to_string().contains("/otel/queue") && storage["create_directory"] == true,
        "{storage}"
    );
    assert_eq!(on_disk["service"]["extensions"].as_array().map(Vec::len), Some(2));
    for more in
        ["endpoint = 'https://x'", "endpoint = 'https://x', queue = 'memory'", "endpoint = false, queue = 'disk'"]
    {
        let document = document(more);
        assert!(document["extensions"].get("file_storage").is_none(), "{more}: {document}");
        assert!(!document.to_string().contains("sending_queue"), "{more}: {document}");
    }
    let text = plan_of("endpoint = 'https://x', queue = 'disk', binary = '/bin/otelcol'").problems("job.lua");
    assert!(text.contains("otel.queue") && text.contains("embedded"), "{text}");
}

#[test]
fn what_no_program_can_be_given_is_refused() {
    for (body, path) in [
        ("driver = { command = { 'd', ('x'):rep(140000) } }", "driver.command"),
        ("driver = { command = { 'd' }, env = { BIG = ('x'):rep(140000) } }", "driver.env.BIG"),
        (
            "driver = { command = { 'd' } }, servers = { s = gym.server { type = 'resources_servers', command = { 's' }, config = { t = ('x'):rep(140000) } } }",
            "servers.s.env.NEMO_GYM_CONFIG_DICT",
        ),
    ] {
        let text = problems(&job(body));
        assert!(text.contains(path) && text.contains("128 KiB"), "{body}\n{text}");
    }
}
