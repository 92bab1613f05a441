//! The configurations, and which nodes each of them is for.

use std::collections::BTreeMap;

use ringfence_core::Problems;

use super::checking::check_draft;
use super::cloud::Cloud;
use super::clouds::Clouds;
use super::method::Reader;
use super::names::{Kind, Scope, kind};
use super::policy::of_segment;
use super::reading::{Declared, Given, Node, Object, PlanOf, Verdict, config_map, prefix};
use super::sources::Source;
use super::steps::{self, RESTART_INSTANCE, Steps};

/// The configuration of nodes for which none is declared.
const DEFAULT: &str = "fence-config-default";

/// One configuration.
pub(super) struct Config {
    pub found: Result<Steps, Problems>,
    warnings: Vec<String>,
}

/// All configurations, by the names of their ConfigMaps.
pub(super) struct Configs(pub BTreeMap<String, Config>);

/// The nodes of each configuration; those of none are under [`DEFAULT`].
pub(super) type Used<'a> = BTreeMap<String, Vec<&'a Node>>;

impl Configs {
    /// The configurations, and the verdicts on all other ConfigMaps.
    pub fn read(given: &Given<'_>) -> (Self, Vec<Verdict>) {
        let reader = Reader {
            cluster: given.cluster,
            namespace: given.namespace,
            drivers: given.drivers,
            sources: given.sources,
        };
        let (mut configs, mut verdicts) = (BTreeMap::new(), Vec::new());
        for (name, source) in &given.sources.0 {
            match kind(name) {
                Some(Kind::Config) => drop(configs.insert(name.clone(), config(&reader, name, source))),
                Some(Kind::Method | Kind::Template) => verdicts.push(part(&reader, name)),
                Some(Kind::Segment(segment)) => verdicts.push(of_segment(name, segment, source)),
                None => {}
            }
        }
        let mut configs = Self(configs);
        configs.refuse_twins();
        (configs, verdicts)
    }

    /// Two for the nodes of one scope: neither counts.
    fn refuse_twins(&mut self) {
        let mut by_scope: BTreeMap<Scope, Vec<String>> = BTreeMap::new();
        for (name, config) in &self.0 {
            if let Some(scope) = config.scope() {
                by_scope.entry(scope.clone()).or_default().push(name.clone());
            }
        }
        for names in by_scope.into_values().filter(|names| names.len() > 1) {
            for name in &names {
                let others: Vec<&str> = names
                    .iter()
                    .filter(|other| *other != name)
                    .map(String::as_str)
                    .collect();
                let mut problems = Problems::default();
                problems.add(
                    "metadata.name",
                    format!(
                        "is {name}, and {} is for these nodes as well; delete one of them",
                        others.join(", ")
                    ),
                );
                if let Some(config) = self.0.get_mut(name) {
                    config.found = Err(problems);
                }
            }
        }
    }

    /// The configuration of each node: its own one, that of its type, or the default one.
    pub fn used<'a>(&self, nodes: &'a [Node]) -> Used<'a> {
        let mut by_scope = BTreeMap::new();
        for (name, config) in &self.0 {
            if let Some(scope) = config.scope() {
                by_scope.insert(scope.clone(), name);
            }
        }
        let mut used = Used::new();
        for node in nodes {
            let of_type = node.kind.clone().map(Scope::Type);
            let scopes = [
                Some(Scope::Node(node.name.clone())),
                of_type,
                Some(Scope::Default),
            ];
            let mut scopes = scopes.into_iter().flatten();
            let name = scopes.find_map(|scope| by_scope.get(&scope));
            let name = name.map_or_else(|| DEFAULT.to_owned(), |name| (*name).clone());
            used.entry(name).or_default().push(node);
        }
        used
    }

    /// The configuration of nodes for which none is declared, where the credentials of their cloud are there.
    pub fn by_default(&self, given: &Given<'_>, clouds: &Clouds, used: &Used<'_>) -> Option<Verdict> {
        let nodes = used.get(DEFAULT).filter(|_| !self.has_default())?;
        let mut known = nodes.iter().filter_map(|node| clouds.of_node(node).ok());
        known.next()?;
        let config = Config {
            found: Ok(steps::default(&Reader {
                cluster: given.cluster,
                namespace: given.namespace,
                drivers: given.drivers,
                sources: given.sources,
            })),
            warnings: Vec::new(),
        };
        Some(config.verdict(DEFAULT, given, clouds, used))
    }

    fn has_default(&self) -> bool {
        let mut all = self.0.iter();
        all.any(|(name, config)| name == DEFAULT || config.scope() == Some(&Scope::Default))
    }

    /// Nodes that their cloud is to switch off, and that cannot be.
    pub fn nodes_without(&self, clouds: &Clouds, used: &Used<'_>) -> Vec<Verdict> {
        let is_default = !self.has_default() && !clouds.ready.is_empty();
        let mut verdicts = Vec::new();
        for (name, nodes) in used {
            let wants = match self.0.get(name) {
                Some(config) => config.found.as_ref().is_ok_and(|steps| steps.restarts_instance),
                None => is_default,
            };
            let own = clouds.most_of(nodes);
            for node in nodes.iter().filter(|_| wants) {
                let why = match clouds.of_node(node) {
                    Ok(cloud) if Some(cloud) == own => continue,
                    Ok(cloud) => format!(
                        "it is of {}, and {name} restarts instances of {}; give it a fence-config-node-{} or a type of its own",
                        cloud.word(),
                        own.map_or("no cloud", Cloud::word),
                        node.name
                    ),
                    Err(why) => why,
                };
                let mut problems = Problems::default();
                problems.add(
                    RESTART_INSTANCE,
                    format!("cannot fence node {}: {why}", node.name),
                );
                verdicts.push(Verdict {
                    object: Object {
                        kind: "Node",
                        name: node.name.clone(),
                    },
                    found: Err(problems),
                    warnings: Vec::new(),
                });
            }
        }
        verdicts
    }
}

impl Config {
    pub fn scope(&self) -> Option<&Scope> {
        self.found.as_ref().ok().map(|steps| &steps.scope)
    }

    pub fn verdict(&self, name: &str, given: &Given<'_>, clouds: &Clouds, used: &Used<'_>) -> Verdict {
        let object = config_map(name);
        let nodes = used.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut warnings = self.warnings.clone();
        let found = self.found.clone().and_then(|steps| {
            warnings.extend(unused(&steps.scope, nodes, given));
            plan(name, &steps, given, clouds, nodes)
        });
        Verdict {
            object,
            found: found.map(|plan| Declared::Plan(Box::new(plan))),
            warnings,
        }
    }
}

fn config(reader: &Reader<'_>, name: &str, source: &Source) -> Config {
    let mut problems = Problems::default();
    if let Some(why) = source.refusal() {
        problems.add("data", why);
    }
    let read = match problems.0.is_empty() {
        true => steps::read(reader, name, source, &mut problems),
        false => None,
    };
    let found = problems.into_result();
    let unused = read.iter().flat_map(|(_, unused)| unused);
    Config {
        warnings: unused
            .map(|method| format!("fence-method-{method} is declared, and no step names it"))
            .collect(),
        // Where there are no steps, something is wrong.
        found: found.and_then(|()| read.map(|(steps, _)| steps).ok_or_else(Problems::default)),
    }
}

fn unused(scope: &Scope, nodes: &[&Node], given: &Given<'_>) -> Option<String> {
    match scope {
        Scope::Default => None,
        Scope::Type(word) => {
            let has = given.nodes.iter().any(|node| node.kind.as_ref() == Some(word));
            (!has).then(|| format!("no node has the label type={word}"))
        }
        Scope::Node(name) => nodes.is_empty().then(|| format!("there is no node {name}")),
    }
}

fn plan(
    name: &str,
    steps: &Steps,
    given: &Given<'_>,
    clouds: &Clouds,
    nodes: &[&Node],
) -> Result<PlanOf, Problems> {
    let place = format!("{}{name}", prefix(given.cluster));
    let mut problems = Problems::default();
    let methods = steps.drafts(&place);
    for draft in &methods {
        check_draft(draft, &place, given, &mut problems);
    }
    let restart_instance = match steps.restarts_instance {
        false => None,
        true => match clouds.most_of(nodes) {
            Some(cloud) => Some(cloud.method_name(&prefix(given.cluster))),
            None => {
                let why = nodes.first().map_or_else(
                    || "there is no node yet for which it is".to_owned(),
                    |node| match clouds.of_node(node) {
                        Ok(_) => "no cloud is known".to_owned(),
                        Err(why) => format!("node {}: {why}", node.name),
                    },
                );
                problems.add(
                    "config.properties: power_management",
                    format!("names {RESTART_INSTANCE}, which cannot be used: {why}"),
                );
                None
            }
        },
    };
    problems.into_result()?;
    Ok(PlanOf {
        stages: steps.stages(&place, restart_instance.as_deref()),
        sufficient_sets: steps.sufficient_sets.clone(),
        scope: steps.scope.clone(),
        methods,
        place,
    })
}

/// A method or a template in a ConfigMap of its own: its faults are told there, too.
fn part(reader: &Reader<'_>, name: &str) -> Verdict {
    let mut problems = Problems::default();
    match reader.sources.text_of(name) {
        Some(Ok(text)) if kind(name) == Some(Kind::Method) => {
            reader.read(name, text, &mut problems);
        }
        Some(Ok(text)) => reader.check_template(name, text, &mut problems),
        Some(Err(why)) => problems.add("data", why),
        None => {}
    }
    Verdict {
        object: config_map(name),
        found: problems.into_result().map(|()| Declared::Part),
        warnings: Vec::new(),
    }
}
