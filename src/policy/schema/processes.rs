//! Services, servers and the driver: their tables chosen, defaults put below them, typed.

use indexmap::IndexMap;

use super::check::{check, chosen, table};
use super::defaults::{apply, by_kind};
use super::fields::{Fields, late, path};
use super::hooks::no_peer;
use super::kinds::{Choice, Keys, Table, Type};
use super::path::{Path, below};
use super::process::{Process, vllm};
use super::tables;
use super::value::{entries, is_name, literal, tree};
use crate::diag::{Location, Problem, Problems};
use crate::inputs::{Node, World};
use crate::plan::{COLLECTOR, DRIVER, Kind, Reference, Stdin, Text, Tree};
use crate::policy::spec::{Detail, DriverSpec, EvalSpec, Placed, ProcessSpec, ServerSpec, ServerType};

/// A process typed, and the node that it came from.
pub struct Built {
    /// The process.
    pub spec: ProcessSpec,
    /// Its table with `process_defaults` below it.
    pub node: Node,
}

/// Builds processes of one job.
pub struct Builder<'a> {
    /// `process_defaults`, if anybody wrote some.
    pub defaults: Option<&'a Node>,
    /// The type of each server.
    pub server_types: IndexMap<String, ServerType>,
    /// The machine.
    pub world: &'a World,
    /// What is wrong.
    pub problems: &'a mut Problems,
}

impl Builder<'_> {
    /// All services or servers below a key of the job.
    pub fn group(&mut self, key: &str, node: Option<&Node>, kind: Kind, choice: &'static Choice) -> Vec<Built> {
        let Some(node) = node else { return Vec::new() };
        let Some(map) = entries(node) else {
            // Says that a mapping is due.
            check(node, &Type::Map(Keys::Names, &Type::Choice(&tables::SERVICE)), &Path::Of(key), self.problems);
            return Vec::new();
        };
        let mut built = Vec::new();
        for (name, node) in map {
            let path = below(key, name);
            self.name(name, &path, &node.location);
            built.extend(self.process(name, &path, node, kind, choice));
        }
        built
    }

    fn name(&mut self, name: &str, path: &str, location: &Location) {
        let wrong = |message: String| Problem::new(message).at(path).in_file(location.clone());
        if !is_name(name, false) {
            self.problems.push(wrong(format!("{} is due as a key, not `{name}`", Type::Name.due())));
        } else if [COLLECTOR, DRIVER, "self"].contains(&name) {
            self.problems
                .push(wrong(format!("the name `{name}` is taken by gymrun itself")).hint("choose another name"));
        }
    }

    /// One process: checked with its defaults below it, so that a default can give a key that must be there.
    pub fn process(
        &mut self,
        name: &str,
        path: &str,
        node: &Node,
        kind: Kind,
        choice: &'static Choice,
    ) -> Option<Built> {
        let of_type = chosen(node, choice, &Path::Of(path), self.problems)?;
        let said = entries(node).and_then(|map| map.get("type")).and_then(literal);
        let type_name = said.or(choice.default).unwrap_or_default();
        let by_kind = by_kind(kind, type_name);
        let is_task = kind == Kind::Service && type_name == "task";
        let group = match kind {
            Kind::Service => "services",
            Kind::Server => "servers",
            _ => "driver",
        };
        let layer = |key: &str| self.defaults.and_then(entries).and_then(|map| map.get(key));
        let layers: Vec<&Node> =
            ["all", group].into_iter().filter_map(layer).filter(|node| entries(node).is_some()).collect();
        let merged = apply(node, &layers, of_type, by_kind, is_task);
        self.check_process(&merged, of_type, path);
        let process = Process { name, kind, type_name, path, node: &merged, table: of_type, by_kind };
        let (detail, makes_its_own, peers) = self.detail(&process);
        let mut spec = process.spec(detail, makes_its_own, self.world, self.problems);
        for peer in peers {
            if spec.depends_on.iter().all(|known| known.value != peer.value) && peer.value != name {
                spec.depends_on.push(peer);
            }
        }
        Some(Built { spec, node: merged })
    }

    /// What is wrong with a process, but for what has been said of `process_defaults` already.
    fn check_process(&mut self, node: &Node, of_type: &Table, path: &str) {
        let mut found = Problems::new();
        table(node, of_type, &Path::Of(path), &mut found);
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
        for problem in found {
            let said = self.problems.iter().any(|known| {
                known.path.starts_with("process_defaults.")
                    && (&known.message, &known.location) == (&problem.message, &problem.location)
                    && last(&known.path) == last(&problem.path)
            });
            if !said {
                self.problems.push(problem);
            }
        }
    }

    /// What only its kind has, whether that makes a command of its own, and its peers.
    fn detail(&mut self, process: &Process<'_>) -> (Detail, bool, Vec<Placed<String>>) {
        let fields = Fields::new(process.node, process.table);
        match process.kind {
            Kind::Service if process.type_name == "vllm" => {
                (Detail::Vllm(vllm(process.node, self.world)), true, Vec::new())
            }
            Kind::Server => self.server(process, &fields),
            Kind::Driver => {
                let eval = (process.type_name == "eval").then(|| self.eval(&fields));
                let own = eval.is_some();
                let driver = DriverSpec {
                    eval,
                    policy_host: fields.text("policy_host"),
                    policy_model_type: fields.text("policy_model_type").unwrap_or_default(),
                    stdin: if fields.text("stdin").as_deref() == Some("inherit") {
                        Stdin::Inherit
                    } else {
                        Stdin::Null
                    },
                };
                (Detail::Driver(driver), own, Vec::new())
            }
            _ => (Detail::Plain, false, Vec::new()),
        }
    }

    fn server(&mut self, process: &Process<'_>, fields: &Fields<'_>) -> (Detail, bool, Vec<Placed<String>>) {
        let implementation = fields.placed("implementation");
        if implementation.is_some() {
            for key in ["command", "shell", "cwd"] {
                if let Some(node) = fields.said(key) {
                    self.problems.push(
                        Problem::new(format!(
                            "`implementation` makes its own command and directory: `{key}` cannot be said"
                        ))
                        .at(below(process.path, key))
                        .in_file(node.location.clone())
                        .hint(format!("leave out `{key}` or `implementation`")),
                    );
                }
            }
        }
        let mut peers = Vec::new();
        let config = fields
            .entries("config")
            .map(|(key, node)| {
                let mut peer = |name: &str| {
                    peers.push(Placed { value: name.to_owned(), location: node.location.clone() });
                    self.peer(name)
                };
                (key.to_owned(), tree(node, &mut peer))
            })
            .collect();
        let own = implementation.is_some();
        let server = ServerSpec {
            server_type: ServerType::parse(process.type_name).unwrap_or(ServerType::ResourcesServers),
            implementation,
            python: fields.path("python", true, self.world).unwrap_or_default(),
            root: fields
                .path("root", false, self.world)
                .map(|value| Placed { value, location: fields.location("root") }),
            config,
            num_workers: fields.int("num_workers"),
        };
        (Detail::Server(server), own, peers)
    }

    /// `{type, name}` of a server.
    fn peer(&self, name: &str) -> Tree {
        let type_name = self.server_types.get(name).map_or("", |server| server.name());
        let text = |text: &str| Tree::Text(Text::literal(text));
        Tree::Map(IndexMap::from([("type".to_owned(), text(type_name)), ("name".to_owned(), text(name))]))
    }

    fn eval(&self, fields: &Fields<'_>) -> EvalSpec {
        // A path, unless it is known at launch only.
        let file = |key: &str| {
            let node = fields.said(key)?;
            path(node, false, self.world).map(Text::from).or_else(|| late(node))
        };
        let rollouts = || {
            let mut text = Text::reference(Reference::JobDir);
            text.push_literal("/artifacts/rollouts.jsonl");
            text
        };
        EvalSpec {
            agent: fields
                .placed("agent")
                .unwrap_or_else(|| Placed { value: String::new(), location: fields.location("agent") }),
            input: file("input").unwrap_or_default(),
            output: file("output").unwrap_or_else(rollouts),
            repeats: fields.int("repeats"),
            concurrency: fields.maybe_int("concurrency"),
            require_complete: fields.bool("require_complete"),
            overrides: fields
                .entries("overrides")
                .map(|(key, node)| (key.to_owned(), tree(node, &mut |name| self.peer(name))))
                .collect(),
            executable: fields.path("executable", true, self.world).unwrap_or_default(),
        }
    }
}

/// The type of each server, for those that say a right one.
pub fn server_types(node: Option<&Node>) -> IndexMap<String, ServerType> {
    let servers = node.and_then(entries).into_iter().flatten();
    servers
        .filter_map(|(name, node)| {
            let said = entries(node)?.get("type").and_then(literal)?;
            Some((name.clone(), ServerType::parse(said)?))
        })
        .collect()
}

/// Values that are no process's, typed as somebody else's configuration.
pub fn configuration(node: Option<&Node>) -> IndexMap<String, Tree> {
    let entries = node.and_then(entries).into_iter().flatten();
    entries.map(|(key, node)| (key.clone(), tree(node, &mut no_peer))).collect()
}
