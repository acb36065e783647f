//! Labels of targets, resources and scopes.

use super::{Target, attributes, lines_of, metrics, points, request, rules};

#[test]
fn target_labels_and_honor_labels() {
    let page = "a{team=\"mine\",job=\"own\"} 1\n";
    let mut target = Target::with(rules(&[("team", "rl")]));
    assert_eq!(target.text(page), ["a gauge{exported_job=own,exported_team=mine,team=rl} 1"]);
    let mut honor = rules(&[("team", "rl")]);
    honor.honor_labels = true;
    honor.external = [("cluster".to_owned(), "c1".to_owned())].into();
    let mut target = Target::with(honor);
    let record = target.page(page, None);
    assert_eq!(points(&record), ["a gauge{cluster=c1,team=mine} 1"]);
    let names: Vec<String> = request(&record)
        .resource_metrics
        .iter()
        .map(|of| attributes(&of.resource.as_ref().expect("resource").attributes[..1]))
        .collect();
    assert_eq!(names, ["service.name=own", "service.name=j"]);
    let up = metrics(&record).into_iter().find(|metric| metric.name == "up").expect("up");
    assert_eq!(lines_of(&up), ["up gauge{cluster=c1,team=rl} 1"]);
}

#[test]
fn exemplars_stay_beside_external_labels() {
    let mut rules = rules(&[]);
    rules.external = [("cluster".to_owned(), "c1".to_owned())].into();
    let page = "# TYPE a counter\na_total{x=\"y\"} 1 # {k=\"v\"} 1\n# EOF\n";
    let found = Target::with(rules).openmetrics(page);
    assert_eq!(found, ["a_total counter{cluster=c1,x=y} 1 exemplar 0 k=v"]);
}

#[test]
fn target_info_and_scopes() {
    let page = "# TYPE target_info gauge\ntarget_info{host=\"h\",job=\"x\"} 1\n\
                a{otel_scope_name=\"lib\",otel_scope_version=\"1\",otel_scope_k=\"v\",z=\"1\"} 1\n";
    let record = Target::new().page(page, None);
    assert_eq!(points(&record), ["a gauge{z=1} 1"]);
    let request = request(&record);
    let resource = request.resource_metrics[0].resource.as_ref().expect("resource");
    assert!(attributes(&resource.attributes).ends_with("exported_job=x,host=h"));
    let scopes: Vec<_> = request.resource_metrics[0].scope_metrics.iter().filter_map(|of| of.scope.as_ref()).collect();
    let lib = scopes.iter().find(|scope| scope.name == "lib").expect("scope");
    assert_eq!((lib.version.as_str(), attributes(&lib.attributes).as_str()), ("1", "k=v"));
}
