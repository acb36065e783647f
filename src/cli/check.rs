//! `gymrun check FILE...`: every problem of each file, without looking for secrets.

use super::arguments::{CheckArguments, print, say_problems};
use crate::diag::{Problems, exit};

/// Checks the files; 2 if one of them is no valid job.
pub(super) fn run(arguments: &CheckArguments) -> i32 {
    let mut code = exit::OK;
    for file in &arguments.files {
        let checked = arguments.job.load(file, &[], false);
        match checked {
            Ok(plan) => {
                let mut warnings = Problems::new();
                plan.warnings.into_iter().for_each(|w| warnings.push(w));
                say_problems(&warnings);
                print(&format!("{}: ok\n", file.display()));
            }
            Err(problems) => {
                say_problems(&problems);
                code = exit::INVALID;
            }
        }
    }
    code
}
