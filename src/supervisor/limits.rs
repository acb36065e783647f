//! What the kernel takes of a command line and an environment, checked before anything is started.
//!
//! Its own answer, "Argument list too long", names neither the variable nor the way out.

use std::ffi::OsString;

use nix::sys::resource::{Resource, getrlimit};

use crate::diag::Problem;
use crate::process::Environment;
use crate::procfs::page_size;

const WAY_OUT: &str = "put it into a file (`files` of the job) and give the process its path (`gym.file`)";
/// `ARG_MAX`: that much is always taken.
const ALWAYS: usize = 128 * 1024;
/// Three quarters of `_STK_LIM`: more is never taken, however large the stack may be.
const NEVER: usize = 6 * 1024 * 1024;

/// The limits of this machine, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of one word of the command line, or one variable with its name (`MAX_ARG_STRLEN`).
    word: usize,
    /// Of all of them, their pointers included.
    all: usize,
}

impl Limits {
    /// Asks the system.
    pub(super) fn of_system() -> Self {
        let stack = getrlimit(Resource::RLIMIT_STACK).map_or(u64::MAX, |(now, _)| now);
        let stack = usize::try_from(stack).unwrap_or(usize::MAX);
        Self { word: 32 * usize::try_from(page_size()).unwrap_or(4096), all: (stack / 4).clamp(ALWAYS, NEVER) }
    }

    /// Whether the kernel will take them.
    pub(super) fn check(self, unit: &str, argv: &[OsString], environment: &Environment) -> Result<(), Problem> {
        // Each ends with a zero.
        let variables = environment.entries().map(|(name, entry)| (name, entry.count_bytes() + 1));
        let words = argv.iter().map(|word| word.len() + 1);
        if let Some((name, size)) = variables.clone().find(|(_, size)| *size > self.word) {
            let name = name.display();
            let message = format!("the variable `{name}` has {size} bytes, and a process takes {} at most", self.word);
            return Err(Problem::new(message).at(format!("{unit}.env.{name}")).hint(WAY_OUT));
        }
        if let Some((place, size)) = words.clone().enumerate().find(|(_, size)| *size > self.word) {
            let message =
                format!("word {place} of the command has {size} bytes, and a process takes {} at most", self.word);
            return Err(Problem::new(message).at(format!("{unit}.command")).hint(WAY_OUT));
        }
        let pointer = size_of::<usize>();
        let all: usize = variables.clone().map(|(_, size)| size).chain(words).map(|size| size + pointer).sum();
        if all > self.all {
            let largest = variables.max_by_key(|(_, size)| *size);
            let largest = largest.map_or(String::new(), |(name, size)| {
                format!("; the largest variable is `{}` with {size}", name.display())
            });
            let message = format!(
                "the command and the environment have {all} bytes together, and a process takes {} at most{largest}",
                self.all
            );
            return Err(Problem::new(message).at(unit).hint(WAY_OUT));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::Limits;
    use crate::process::Environment;

    fn check(argv: &[&str], environment: &[(&str, usize)]) -> String {
        let argv: Vec<OsString> = argv.iter().map(Into::into).collect();
        let mut all = Environment::default();
        for (name, size) in environment {
            all.set(name, "x".repeat(*size)).expect("no NUL byte");
        }
        let checked = Limits { word: 100, all: 250 }.check("a", &argv, &all);
        checked.map_or_else(|problem| format!("{}: {}", problem.path, problem.message), |()| "fine".into())
    }

    #[test]
    fn what_is_too_long_is_named_with_its_size() {
        assert_eq!(check(&["a"], &[("A", 97)]), "fine");
        assert_eq!(
            check(&["a"], &[("A", 98)]),
            "a.env.A: the variable `A` has 101 bytes, and a process takes 100 at most"
        );
        let long = "y".repeat(100);
        assert_eq!(
            check(&["a", &long], &[]),
            "a.command: word 1 of the command has 101 bytes, and a process takes 100 at most"
        );
        assert_eq!(
            check(&["a"], &[("A", 80), ("B", 90), ("C", 70)]),
            "a: the command and the environment have 283 bytes together, and a process takes 250 at most; \
             the largest variable is `B` with 93"
        );
    }
}
