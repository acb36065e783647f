//! `gymrun check FILE...`: every problem of each file, without looking for secrets.

use std::path::Path;

use super::arguments::{CheckArguments, Purpose};
use super::say::{print, say_problems};
use crate::diag::{Problems, exit};

/// Checks the files; 2 if one of them is no valid job.
pub(super) fn run(arguments: &CheckArguments) -> i32 {
    let mut code = exit::OK;
    for file in &arguments.files {
        let checked = arguments.job.load(file, &[], Purpose::Check);
        let good = checked.is_ok();
        let problems = match checked {
            Ok(plan) => plan.warnings.into_iter().collect(),
            Err(problems) => problems,
        };
        if arguments.job.json {
            code = code.max(print(&json_lines(file, &problems)));
        } else {
            say_problems(&problems);
            if good {
                code = code.max(print(&format!("{}: ok\n", file.display())));
            }
        }
        if !good {
            code = code.max(exit::INVALID);
        }
    }
    code
}

/// One object a problem, each with the file that was checked.
fn json_lines(file: &Path, problems: &Problems) -> String {
    let mut text = String::new();
    for problem in problems {
        let mut object = serde_json::json!({ "file": file.display().to_string() });
        if let (Some(object), Ok(serde_json::Value::Object(problem))) =
            (object.as_object_mut(), serde_json::to_value(problem))
        {
            object.extend(problem);
        }
        text.push_str(&object.to_string());
        text.push('\n');
    }
    text
}
