//! `${...}` in YAML and on the command line.

use crate::diag::Problem;
use crate::inputs::World;
use crate::plan::{Reference, Text};

/// What a reader needs to know besides the text.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The environment and the directories.
    pub world: &'a World,
    /// The job id: `${job:id}` is known before anything is read.
    pub job_id: &'a str,
}

/// Every form, for the hint of a wrong one.
const FORMS: &str = "known: ${env:X}, ${env:X:-default}, ${secret:X}, ${runtime:X}, ${port:N}, ${port:N.KEY}, ${host:N}, \
                     ${url:N}, ${job:dir}, ${job:id}, ${file:F}; the text `${` itself is written `$${`";

/// `text` with its `${...}` read: what is known now becomes literal text, the rest references. One pass: what a variable
/// holds is never looked at again, and every other `$` is itself.
///
/// The error has no place yet.
pub fn interpolate(text: &str, reading: Reading<'_>) -> Result<Text, Problem> {
    let mut out = Text::default();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_literal(&rest[..at - 1]);
            out.push_literal("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_literal(&rest[..at]);
        let Some(end) = rest[at..].find('}') else {
            return Err(Problem::new(format!("`{}` has no `}}`", &rest[at..])).hint(FORMS));
        };
        form(&rest[at + 2..at + end], reading, &mut out)?;
        rest = &rest[at + end + 1..];
    }
    out.push_literal(rest);
    Ok(out)
}

/// What stands between the braces.
fn form(inside: &str, reading: Reading<'_>, out: &mut Text) -> Result<(), Problem> {
    let unknown = || Problem::new(format!("unknown form `${{{inside}}}`"));
    let Some((scheme, argument)) = inside.split_once(':') else {
        let problem = unknown();
        return Err(if is_variable(inside) {
            problem.hint(format!("did you mean `${{env:{inside}}}`? for the text itself write `$${{{inside}}}`"))
        } else {
            problem.hint(FORMS)
        });
    };
    let reference = match scheme {
        "env" | "secret" | "runtime" => {
            let (name, default) = match argument.split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (argument, None),
            };
            if !is_variable(name) {
                return Err(unknown().hint("the name of a variable is letters, digits and `_`"));
            }
            let name = name.to_owned();
            match scheme {
                "secret" => Reference::Secret { name, default },
                "runtime" => Reference::Inherited { name, default },
                _ => {
                    let value = reading.world.variable(&name).map(str::to_owned).or(default);
                    let Some(value) = value else {
                        return Err(Problem::new(format!("the variable `{name}` is not set"))
                            .hint(format!("set it, or give a default: `${{env:{name}:-default}}`")));
                    };
                    out.push_literal(&value);
                    return Ok(());
                }
            }
        }
        "port" => match argument.split_once('.') {
            Some((process, key)) if is_name(process) && is_name(key) => {
                Reference::Port { process: process.to_owned(), key: Some(key.to_owned()) }
            }
            None if is_name(argument) => Reference::Port { process: argument.to_owned(), key: None },
            _ => return Err(unknown().hint(FORMS)),
        },
        "host" if is_name(argument) => Reference::Host { process: argument.to_owned() },
        "url" if is_name(argument) => Reference::Url { process: argument.to_owned() },
        "job" if argument == "dir" => Reference::JobDir,
        "job" if argument == "id" => {
            out.push_literal(reading.job_id);
            return Ok(());
        }
        "file" if !argument.is_empty() => {
            out.push_reference(Reference::JobDir);
            out.push_literal("/files/");
            out.push_literal(argument);
            return Ok(());
        }
        _ => return Err(unknown().hint(FORMS)),
    };
    out.push_reference(reference);
    Ok(())
}

/// Whether this can name a variable of the environment.
fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether this can name a process or one of its ports.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}
