//! What exporters of one configuration write to: two that write one file do so in the same way, or one of them is not
//! obeyed.

use super::checked::Components;
use super::node::Node;
use super::pipelines::Pipeline;
use super::section::Findings;
use crate::collector::component::WrittenFile;
use crate::diag::Problem;

/// Names those among the exporters in use that write the file of another one in another way.
pub(super) fn check(root: &Node, components: &Components, pipelines: &[Pipeline], findings: &Findings) {
    let mut known: Vec<(&str, WrittenFile)> = Vec::new();
    for (declared, exporter) in components.exporters_in(pipelines) {
        let Some(file) = exporter.file() else { continue };
        if let Some((other, their)) = known.iter().find(|(_, their)| their.path == file.path) {
            let differences = file.keys.iter().zip(&their.keys).filter(|(ours, theirs)| ours != theirs);
            for ((key, here), (_, there)) in differences {
                let path = file.path.display();
                let what = format!("{path} is the file of `exporters.{other}` too, with another `{key}`");
                let problem = Problem::new(format!("{what} (`{here}` here, `{there}` there)"));
                let problem = problem.hint("give both the same, or name one exporter in all of the pipelines");
                let keys = ["exporters", &declared.id, key];
                findings.push(root.line_at(&keys), &keys.join("."), problem);
            }
        }
        known.push((&declared.id, file));
    }
}

#[cfg(test)]
mod tests {
    use crate::collector::fuzzing::load_config;

    fn problems(one: &str, other: &str, used: &str) -> String {
        let text = format!(
            "receivers: {{otlp: {{protocols: {{http: }}}}}}\nexporters:\n  file/a: {{path: /tmp/x.jsonl{one}}}\n  \
             file/b: {{path: /tmp/./x.jsonl{other}}}\n  file/c: {{path: /tmp/y.jsonl, append: true}}\n\
             service: {{pipelines: {{traces: {{receivers: [otlp], exporters: [file/a, file/c{used}]}}}}}}\n"
        );
        load_config(&text, &|_| None).err().map(|problems| problems.to_string()).unwrap_or_default()
    }

    #[test]
    fn two_exporters_of_one_file_agree_on_all_of_it() {
        for (key, other, here, there) in [
            ("format", "format: proto", "proto", "json"),
            ("compression", "compression: zstd", "zstd, level 3", "none"),
            ("append", "append: true", "true", "false"),
            ("flush_interval", "flush_interval: 200ms", "200ms", "1s"),
            ("create_directory", "create_directory: true", "0755", "false"),
            ("rotation", "rotation: {max_megabytes: 7}", "7 MiB, 0 days, 100 backups, UTC", "none"),
        ] {
            let text = problems("", &format!(", {other}"), ", file/b");
            assert_eq!(text.matches("is the file of").count(), 1, "{text}");
            let words = format!("`exporters.file/a` too, with another `{key}` (`{here}` here, `{there}` there)");
            assert!(text.contains(&words) && text.contains(":4") && text.contains("file/b"), "{text}");
            assert_eq!(problems("", &format!(", {other}"), ""), "", "unused");
        }
        let same = ", compression: zstd, rotation: {max_days: 3}";
        assert_eq!(problems(same, same, ", file/b"), "");
        let groups = |name: &str| format!("g{name}*, group_by: {{enabled: true, resource_attribute: {name}}}");
        assert_eq!(problems(&groups("a"), &groups("b"), ", file/b"), "", "other files");
    }

    #[test]
    fn the_line_is_that_of_the_key() {
        let text = "receivers: {otlp: {protocols: {http: }}}\nexporters:\n  file/a: {path: /x}\n  file/b:\n    path: /x\n    \
                    append: true\nservice: {pipelines: {traces: {receivers: [otlp], exporters: [file/a, file/b]}}}\n";
        let said = load_config(text, &|_| None).err().expect("they differ").to_string();
        assert!(said.contains(":6"), "{said}");
    }

    /// Which attribute leads to a file of a group does not matter to the file.
    #[test]
    fn two_exporters_of_the_same_groups_agree_too() {
        let group = |more: &str| format!(".*, group_by: {{enabled: true, resource_attribute: b}}{more}");
        assert_eq!(problems(&group(""), &group(""), ", file/b"), "");
        assert!(problems(&group(""), &group(", append: true"), ", file/b").contains("another `append`"));
    }
}
