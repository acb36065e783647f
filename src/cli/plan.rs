//! `gymrun plan FILE`: what would run, as text, JSON or YAML.

use super::arguments::{Format, PlanArguments, Purpose, Show};
use super::say::{print, say_problems};
use crate::diag::exit;
use crate::plan::Plan;
use crate::report::{PlanView, plan_text};
use crate::yaml;

/// Prints the plan; 2 if the job is invalid.
pub(super) fn run(arguments: &PlanArguments) -> i32 {
    match arguments.job.load(&arguments.file, &arguments.arguments, Purpose::Show) {
        Ok(plan) => {
            say_problems(&plan.warnings.iter().cloned().collect());
            let format = if arguments.job.json { Format::Json } else { arguments.format };
            let code = print(&render(&plan, format, arguments.show));
            // The end of the process frees it at once.
            std::mem::forget(plan);
            code
        }
        Err(problems) => {
            say_problems(&problems);
            exit::INVALID
        }
    }
}

fn render(plan: &Plan, format: Format, show: Option<Show>) -> String {
    let document = match (show, format) {
        (None, Format::Text) => return plan_text(plan, PlanView::Whole),
        (Some(Show::Environment), Format::Text) => return plan_text(plan, PlanView::Environment),
        (Some(Show::Order), Format::Text) => return plan_text(plan, PlanView::Order),
        // collector.yaml is YAML to people too.
        (Some(Show::Collector), Format::Text) => {
            return match &plan.collector {
                Some(collector) => yaml::write(&collector.config),
                None => "# otel.enabled is false: no collector\n".to_owned(),
            };
        }
        (None, _) => serde_json::to_value(plan),
        (Some(Show::Collector), _) => serde_json::to_value(plan.collector.as_ref().map(|c| &c.config)),
        (Some(Show::Environment), _) => Ok(plan
            .units
            .iter()
            .map(|unit| (unit.name.clone(), serde_json::to_value(&unit.env).unwrap_or_default()))
            .collect()),
        (Some(Show::Order), _) => {
            let start: Vec<&str> = plan.units.iter().map(|u| u.name.as_str()).collect();
            Ok(serde_json::json!({"start": start, "stop": plan.stop_levels()}))
        }
    };
    let document = document.unwrap_or_default();
    if format == Format::Yaml {
        yaml::write(&document)
    } else {
        let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
        text.push('\n');
        text
    }
}
