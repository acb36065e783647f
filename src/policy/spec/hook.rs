//! Hooks of site fragments.

use indexmap::IndexMap;

use super::{EnvSpec, Placed, TargetSpec};
use crate::diag::Location;
use crate::plan::{Source, Text, Tree};

/// The hooks of this version, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// What is stamped on every resource.
    Attributes,
    /// What is scraped.
    Scrape,
    /// Variables of each process.
    Environment,
    /// argv of each process.
    Launch,
    /// The document of collector.yaml.
    Collector,
}

impl Hook {
    /// All, in the order in which they run.
    pub const ALL: [Self; 5] = [Self::Attributes, Self::Scrape, Self::Environment, Self::Launch, Self::Collector];

    /// The key of the fragment.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attributes => "attributes",
            Self::Scrape => "scrape",
            Self::Environment => "environment",
            Self::Launch => "launch",
            Self::Collector => "collector",
        }
    }
}

/// A hook as a function, or in its table form.
#[derive(Clone, Debug, PartialEq)]
pub enum HookForm {
    /// A Lua function, by its place in the VM's registry.
    Function(usize),
    /// Merged into the attributes.
    Attributes(IndexMap<String, Placed<Tree>>),
    /// Appended to the targets.
    Scrape(Vec<TargetSpec>),
    /// Merged into the environment of each process.
    Environment(IndexMap<String, EnvSpec>),
    /// Put in front of argv.
    Launch {
        /// The words.
        prefix: Vec<Text>,
    },
    /// Merged into the document of collector.yaml.
    Collector(Tree),
}

/// A hook and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct HookSpec {
    /// What it does.
    pub form: HookForm,
    /// Where it was written.
    pub location: Location,
}

/// A fragment that took part.
#[derive(Clone, Debug, PartialEq)]
pub struct FragmentSpec {
    /// Its name and file.
    pub source: Source,
    /// Its hooks.
    pub hooks: IndexMap<Hook, HookSpec>,
}
