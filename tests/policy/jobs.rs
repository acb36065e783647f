use super::support::{argv, data, folder, unit, variable};

fn job(name: &str) -> super::support::Folder {
    folder(&[(name, &data(&format!("policy/jobs/{name}")))])
}

#[test]
fn quickstart_in_lua_and_yaml_give_one_plan() {
    let lua = data("policy/jobs/quickstart.lua");
    let yaml = data("policy/jobs/quickstart.yaml");
    let folder = folder(&[("job.lua", &lua), ("job.yaml", &yaml)]);
    let plans = ["job.lua", "job.yaml"].map(|job| {
        let plan = folder.plan(job);
        let mut json = serde_json::to_value(&plan).expect("a plan is JSON");
        strip_places(&mut json);
        json
    });
    let [lua, yaml] = plans.map(|plan| serde_json::to_string_pretty(&plan).expect("JSON"));
    assert_eq!(lua, yaml);
}

/// Takes out what says where something was written.
fn strip_places(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(map) => {
            map.retain(|key, _| !["location", "source", "job_file"].contains(&key.as_str()));
            map.values_mut().for_each(strip_places);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(strip_places),
        _ => {}
    }
}

#[test]
fn quickstart_is_complete() {
    let plan = job("quickstart.lua").plan("quickstart.lua");
    println!("{}", serde_json::to_string_pretty(&plan).expect("JSON"));
    let names: Vec<&str> = plan.units.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names, ["otel_collector", "policy_model", "weather", "agent", "driver"]);
    assert_eq!(argv(&plan, "driver"), ["python3", "driver.py", "--agent", "${url:agent}/run", "--rollouts", "8"]);
    assert_eq!(variable(&plan, "agent", "MODEL_URL").as_deref(), Some("${url:policy_model}"));
    assert_eq!(unit(&plan, "agent").depends_on, ["policy_model", "weather"]);
}
