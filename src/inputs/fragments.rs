//! Site fragments: where they lie, which are used, in what order.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::files::{Language, SourceFile};
use super::node::{Node, NodeValue};
use super::world::World;
use crate::diag::{Location, Problem, Problems};
use crate::plan::Source;

/// A fragment in the binary.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// What it is written in.
    pub language: Language,
    /// Its text.
    pub text: &'static str,
}

/// A fragment that takes part.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Its name and file.
    pub source: Source,
    /// What it says, `extends` taken out.
    pub node: Node,
}

/// Reads a file to a [`Node`], whatever its language.
pub type ReadFile<'a> = dyn FnMut(&SourceFile) -> Result<Node, Problems> + 'a;

/// Where fragments lie: the first folder that has a name wins, the binary comes last.
#[derive(Clone, Debug)]
pub struct Library<'a> {
    world: &'a World,
    folders: Vec<PathBuf>,
    built_in: &'a [BuiltIn],
}

impl<'a> Library<'a> {
    /// `./site-fragments`, those of `$GYMRUN_SITE_PATH`, the user's, the machine's, the binary's.
    #[must_use]
    pub fn new(world: &'a World, built_in: &'a [BuiltIn]) -> Self {
        let set = |name| world.variable(name).filter(|value| !value.is_empty());
        let mut folders = vec![world.working_directory.join("site-fragments")];
        let listed = set("GYMRUN_SITE_PATH").unwrap_or_default().split(':').filter(|folder| !folder.is_empty());
        folders.extend(listed.map(|folder| world.absolute(folder.as_ref())));
        let user =
            set("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| set("HOME").map(|h| PathBuf::from(h).join(".config")));
        folders.extend(user.map(|folder| folder.join("gymrun/site-fragments")));
        folders.push("/etc/gymrun/site-fragments".into());
        // Each name is looked for under three endings: not where there is nothing.
        folders.retain(|folder| folder.is_dir());
        Self { world, folders, built_in }
    }

    /// Whether there is a fragment of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.built_in.iter().any(|b| b.name == name)
            || self
                .folders
                .iter()
                .any(|f| LANGUAGES.iter().any(|(ending, _)| f.join(format!("{name}.{ending}")).is_file()))
    }

    /// The names of all fragments, sorted.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.built_in.iter().map(|b| b.name.to_owned()).collect();
        for entry in self.folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten() {
            let path = entry.path();
            let ending = path.extension().and_then(|e| e.to_str());
            if let (Some(stem), Some("lua" | "yaml" | "yml")) = (path.file_stem().and_then(|s| s.to_str()), ending) {
                names.insert(stem.to_owned());
            }
        }
        names
    }

    /// The file of that name; `asked` is where the name was said.
    fn open(&self, name: &str, asked: &Location) -> Result<SourceFile, Problem> {
        for folder in &self.folders {
            let found: Vec<(PathBuf, Language)> = LANGUAGES
                .iter()
                .map(|(ending, language)| (folder.join(format!("{name}.{ending}")), *language))
                .filter(|(path, _)| path.is_file())
                .collect();
            match found.as_slice() {
                [] => {}
                [(path, language)] => return SourceFile::read(path, *language, self.world),
                [(first, _), (second, _), ..] => {
                    let (first, second) = (self.world.display(first), self.world.display(second));
                    return Err(Problem::new(format!(
                        "the site fragment `{name}` is there twice: `{first}` and `{second}`"
                    ))
                    .at("site")
                    .in_file(asked.clone())
                    .hint("keep one of the two files"));
                }
            }
        }
        if let Some(built_in) = self.built_in.iter().find(|b| b.name == name) {
            return Ok(SourceFile {
                display: format!("<built-in {name}>"),
                path: None,
                language: built_in.language,
                text: built_in.text.to_owned(),
            });
        }
        let names = self.names();
        Err(Problem::new(format!("there is no site fragment `{name}`"))
            .at("site")
            .in_file(asked.clone())
            .suggest(name, names.iter().map(String::as_str)))
    }

    /// The fragments `names` and all that they extend, lowest first, each once.
    ///
    /// Every name that is not found, every file that cannot be read and every circle of `extends` is reported.
    pub fn collect(&self, names: &[(String, Location)], read: &mut ReadFile<'_>) -> Result<Vec<Fragment>, Problems> {
        let mut walk = Walk { library: self, read, open: Vec::new(), done: Vec::new(), problems: Problems::new() };
        for (name, asked) in names {
            walk.visit(name, asked);
        }
        let done = walk.done.into_iter().filter_map(|(_, fragment)| fragment).collect();
        walk.problems.into_result(done)
    }
}

/// The endings of fragments.
const LANGUAGES: [(&str, Language); 3] = [("lua", Language::Lua), ("yaml", Language::Yaml), ("yml", Language::Yaml)];

struct Walk<'a, 'b> {
    library: &'a Library<'a>,
    read: &'a mut ReadFile<'b>,
    /// Names between the first and the one at hand.
    open: Vec<String>,
    /// Names that are through, in order; `None` where reading failed.
    done: Vec<(String, Option<Fragment>)>,
    problems: Problems,
}

impl Walk<'_, '_> {
    fn visit(&mut self, name: &str, asked: &Location) {
        if self.done.iter().any(|(done, _)| done == name) {
            return;
        }
        if let Some(at) = self.open.iter().position(|open| open == name) {
            let circle = self.open[at..].iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(" -> ");
            self.problems.push(
                Problem::new(format!("site fragments extend each other in a circle: {circle}"))
                    .at("extends")
                    .in_file(asked.clone()),
            );
            return;
        }
        if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') {
            self.problems.push(
                Problem::new(format!("`{name}` is no name of a site fragment"))
                    .at("site")
                    .in_file(asked.clone())
                    .hint("a fragment is named without its folder and ending; $GYMRUN_SITE_PATH adds folders"),
            );
            return;
        }
        self.open.push(name.to_owned());
        let fragment = self.read(name, asked);
        self.open.pop();
        self.done.push((name.to_owned(), fragment));
    }

    fn read(&mut self, name: &str, asked: &Location) -> Option<Fragment> {
        let file = self.library.open(name, asked).map_err(|problem| self.problems.push(problem)).ok()?;
        let mut node = (self.read)(&file).map_err(|problems| self.problems.extend(problems)).ok()?;
        if let NodeValue::Map(map) = &mut node.value
            && let Some(extends) = map.shift_remove("extends")
        {
            for (below, asked) in names(&extends, "extends", &mut self.problems) {
                self.visit(&below, &asked);
            }
        }
        Some(Fragment { source: Source { name: name.to_owned(), file: file.display }, node })
    }
}

/// The names in a text or a list of texts.
pub fn names(node: &Node, path: &str, problems: &mut Problems) -> Vec<(String, Location)> {
    let text = |node: &Node| match &node.value {
        NodeValue::Plain(text) => Some(text.clone()),
        NodeValue::Text(text) => text.as_literal().map(str::to_owned),
        _ => None,
    };
    let items = match &node.value {
        NodeValue::List(items) => items.as_slice(),
        NodeValue::Map(map) if map.is_empty() => &[],
        _ => std::slice::from_ref(node),
    };
    let mut found = Vec::new();
    for item in items {
        if let Some(name) = text(item) {
            found.push((name, item.location.clone()));
        } else {
            problems.push(
                Problem::new("names of site fragments are due: text or a list of text")
                    .at(path)
                    .in_file(item.location.clone()),
            );
        }
    }
    found
}
