//! The steps of one configuration, as the stages of a plan.

use std::collections::BTreeMap;

use ringfence_core::{
    FencingKind, Level, MAX_DELAY_S, PlanStage, Problems, Resource, SufficientSet, TaskSpec,
};
use ringfence_engine::{Declaration, MethodDraft};

use super::dumps::{self, Dumps};
use super::method::{Action, Method, Reader};
use super::names::{METHOD, Scope, TEMPLATE, scope};
use super::properties::{self, Properties};
use super::sources::Source;

/// The key with the steps.
const CONFIG: &str = "config.properties";
/// The key with the seconds between isolation and power_management.
const DELAY: &str = "power_management_delay_s";
/// What every fence does at its start, and every rejoin takes back.
const MARK_UNSCHEDULABLE: &str = "mark-unschedulable";
/// The machine's own cloud switches it off, and on again.
pub(super) const RESTART_INSTANCE: &str = "restart-instance";
/// The steps where nothing else is declared.
pub(super) const DEFAULT: &str =
    "isolation=mark-unschedulable\npower_management=restart-instance\nrecovery=mark-unschedulable\n";

/// How the nodes of one configuration are fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub scope: Scope,
    /// Its methods, by their names in it.
    methods: BTreeMap<String, (Method, Resource)>,
    /// Names of methods that cut nodes off.
    isolation: Vec<String>,
    /// Names of methods that switch nodes off.
    off: Vec<String>,
    /// Seconds before that, in which the isolation may take effect.
    off_delay_s: u32,
    /// Whether the nodes are switched on again.
    is_on: bool,
    /// Whether the cloud of the nodes' machines switches them off.
    pub restarts_instance: bool,
    /// From where the messages of their crash kernels come.
    pub dumps: Dumps,
    /// What suffices for FENCED.
    pub sufficient_sets: Vec<SufficientSet>,
}

impl Steps {
    /// The methods, named after their place.
    pub fn drafts(&self, place: &str) -> Vec<MethodDraft> {
        let methods = self.methods.iter();
        let draft = |(name, (method, resource)): (&String, &(Method, Resource))| {
            method
                .clone()
                .draft(Declaration::method_name(place, name), *resource)
        };
        methods.map(draft).collect()
    }

    /// The stages; `restart_instance` is the name of the method of the nodes' cloud.
    pub fn stages(&self, place: &str, restart_instance: Option<&str>) -> Vec<PlanStage> {
        let mut stages = Vec::new();
        let isolation: Vec<TaskSpec> = [
            (FencingKind::StorageFence, Resource::Storage),
            (FencingKind::NetworkFence, Resource::Network),
        ]
        .into_iter()
        .filter_map(|(kind, resource)| {
            let of_kind = self
                .isolation
                .iter()
                .filter(|name| self.methods[*name].1 == resource);
            self.task(kind, place, of_kind, None)
        })
        .collect();
        let off = self.task(FencingKind::PowerOff, place, self.off.iter(), restart_instance);
        let has_off = off.is_some();
        let on = TaskSpec {
            kind: FencingKind::PowerOn,
            levels: Vec::new(),
        };
        let on = (self.is_on && has_off).then_some(on);
        let steps = [
            (0, isolation),
            (self.off_delay_s, off.into_iter().collect()),
            (0, on.into_iter().collect()),
        ];
        for (delay_s, tasks) in steps {
            if !tasks.is_empty() {
                stages.push(PlanStage { delay_s, tasks });
            }
        }
        stages
    }

    fn task<'a>(
        &'a self,
        kind: FencingKind,
        place: &str,
        methods: impl Iterator<Item = &'a String>,
        restart_instance: Option<&str>,
    ) -> Option<TaskSpec> {
        let mut levels: BTreeMap<u8, Vec<String>> = BTreeMap::new();
        if let Some(name) = restart_instance {
            levels.entry(1).or_default().push(name.to_owned());
        }
        for name in methods {
            let level = self.methods[name].0.level;
            levels
                .entry(level)
                .or_default()
                .push(Declaration::method_name(place, name));
        }
        let levels: Vec<Level> = levels
            .into_iter()
            .map(|(level, methods)| Level { level, methods })
            .collect();
        (!levels.is_empty()).then_some(TaskSpec { kind, levels })
    }
}

/// Reads the ConfigMap `name`. Names of methods that no step names are told as the second part.
pub(super) fn read(
    reader: &Reader<'_>,
    name: &str,
    source: &Source,
    problems: &mut Problems,
) -> Option<(Steps, Vec<String>)> {
    let before = problems.0.len();
    check_keys(source, problems);
    let Some(text) = source.data.get(CONFIG) else {
        problems.add(CONFIG, "is missing; lines KEY=VALUE are allowed");
        return None;
    };
    let mut config = properties::read(CONFIG, text, problems);
    let scope = scope(name, config.remove("node_name").as_deref(), problems);
    let steps = of_scope(reader, scope?, source, config, problems);
    if problems.0.len() > before {
        return None;
    }
    let named = &steps.1;
    let declared = source.data.keys().filter_map(|key| key.strip_prefix(METHOD));
    let unused = declared.filter(|name| !named.iter().any(|named| named == name));
    let unused = unused.map(str::to_owned).collect();
    Some((steps.0, unused))
}

/// The configuration of nodes for which none is declared.
pub(super) fn default(reader: &Reader<'_>) -> Steps {
    let mut problems = Problems::default();
    let config = properties::read(CONFIG, DEFAULT, &mut problems);
    of_scope(reader, Scope::Default, &Source::default(), config, &mut problems).0
}

fn check_keys(source: &Source, problems: &mut Problems) {
    for key in source.data.keys() {
        let is_method = key.starts_with(METHOD) && !key.starts_with(TEMPLATE);
        if key != CONFIG && !is_method {
            problems.add(key, format!("is unknown; {CONFIG} and {METHOD}NAME are allowed"));
        }
    }
}

/// The steps, and all methods that they name.
fn of_scope(
    reader: &Reader<'_>,
    scope: Scope,
    source: &Source,
    mut config: Properties,
    problems: &mut Problems,
) -> (Steps, Vec<String>) {
    let isolation = names("isolation", config.remove("isolation"), problems);
    let power = power_names(&mut config, problems);
    let recovery = names("recovery", config.remove("recovery"), problems);
    let off_delay_s = delay(config.remove(DELAY), problems);
    let dumps = Dumps::read(config.remove(dumps::KEY), &scope, CONFIG, problems);
    let sufficient_sets = dumps::sufficient_sets(config.remove(dumps::SUFFICES), &dumps, CONFIG, problems);
    for key in config.keys() {
        problems.add(
            format!("{CONFIG}: {key}"),
            format!(
                "is unknown; node_name, isolation, power_management, {DELAY}, recovery, kdump and kdump_suffices are allowed"
            ),
        );
    }
    let named = [isolation.clone(), power.clone(), recovery.clone()].concat();
    let mut builder = Builder {
        reader,
        source,
        problems,
        read: BTreeMap::new(),
        steps: Steps {
            scope,
            methods: BTreeMap::new(),
            isolation: Vec::new(),
            off: Vec::new(),
            off_delay_s,
            is_on: false,
            restarts_instance: false,
            dumps,
            sufficient_sets,
        },
    };
    builder.isolation(&isolation);
    builder.power_management(&power);
    builder.recovery(&recovery);
    (builder.steps, named)
}

fn delay(given: Option<String>, problems: &mut Problems) -> u32 {
    let Some(given) = given else { return 0 };
    let delay_s = given.parse().ok().filter(|seconds| *seconds <= MAX_DELAY_S);
    if delay_s.is_none() {
        problems.add(
            format!("{CONFIG}: {DELAY}"),
            format!("is {given:?}; 0 to {MAX_DELAY_S} seconds are allowed"),
        );
    }
    delay_s.unwrap_or(0)
}

fn power_names(config: &mut Properties, problems: &mut Problems) -> Vec<String> {
    let (one, other) = (
        config.remove("power_management"),
        config.remove("power-management"),
    );
    if one.is_some() && other.is_some() {
        problems.add(
            format!("{CONFIG}: power-management"),
            "is given, and power_management as well; one of them is allowed",
        );
    }
    names("power_management", one.or(other), problems)
}

fn names(step: &str, given: Option<String>, problems: &mut Problems) -> Vec<String> {
    let given = given.unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for name in given.split_whitespace() {
        if names.iter().any(|known| known == name) {
            problems.add(
                format!("{CONFIG}: {step}"),
                format!("names {name} twice; each name is allowed once"),
            );
        } else {
            names.push(name.to_owned());
        }
    }
    names
}

/// Steps that are being read.
struct Builder<'a> {
    reader: &'a Reader<'a>,
    source: &'a Source,
    problems: &'a mut Problems,
    /// Methods that were read; `None` for one with a fault, which is told once.
    read: BTreeMap<String, Option<Method>>,
    steps: Steps,
}

impl Builder<'_> {
    fn isolation(&mut self, names: &[String]) {
        for name in names.iter().filter(|name| *name != MARK_UNSCHEDULABLE) {
            let Some(method) = self.method("isolation", name) else {
                continue;
            };
            if method.action.unwrap_or(Action::Off) != Action::Off {
                self.wrong(
                    "isolation",
                    name,
                    "which does not cut a node off; a method with action=off is allowed",
                );
                continue;
            }
            match method.resource {
                Some(resource @ (Resource::Storage | Resource::Network)) => {
                    self.steps.isolation.push(name.clone());
                    self.steps.methods.insert(name.clone(), (method, resource));
                }
                Some(Resource::Power) => self.wrong(
                    "isolation",
                    name,
                    "which acts on power; name it in power_management",
                ),
                Some(Resource::Workloads | Resource::Query | Resource::Heartbeat) => self.wrong(
                    "isolation",
                    name,
                    "which does not cut a node off; storage or network is allowed as its resource",
                ),
                None => self.problems.add(
                    format!("{METHOD}{name}: resource"),
                    "is missing, and its agent does not say what it cuts off; storage or network is allowed",
                ),
            }
        }
    }

    fn power_management(&mut self, names: &[String]) {
        let mut on: Vec<Method> = Vec::new();
        for name in names {
            if name == RESTART_INSTANCE {
                self.steps.restarts_instance = true;
                self.steps.is_on = true;
                continue;
            }
            let Some(method) = self.method("power_management", name) else {
                continue;
            };
            if !matches!(method.resource, None | Some(Resource::Power)) {
                self.wrong(
                    "power_management",
                    name,
                    "which does not act on power; name it in isolation",
                );
                continue;
            }
            let action = method.action.unwrap_or(Action::Reboot);
            if matches!(action, Action::On | Action::Reboot) {
                self.steps.is_on = true;
                on.push(method.clone());
            }
            match action {
                Action::On => self.require_off_before(name, &method),
                Action::Off | Action::Reboot => {
                    self.steps.off.push(name.clone());
                    self.steps.methods.insert(name.clone(), (method, Resource::Power));
                }
            }
        }
        self.require_on_for_each(&on);
    }

    fn require_off_before(&mut self, name: &str, on: &Method) {
        let mut off = self.steps.off.iter().map(|off| &self.steps.methods[off].0);
        if !off.any(|off| off.is_of_the_device_of(on)) {
            self.wrong(
                "power_management",
                name,
                "which switches on what no method before it switches off; a method with action=off and the values of this one has to stand before it",
            );
        }
    }

    /// Every device that was switched off is switched on, or none.
    fn require_on_for_each(&mut self, on: &[Method]) {
        if !self.steps.is_on {
            return;
        }
        let off = self.steps.off.clone();
        for name in off {
            let method = &self.steps.methods[&name].0;
            if !on.iter().any(|on| on.is_of_the_device_of(method)) {
                self.wrong(
                    "power_management",
                    &name,
                    "whose device no method switches on again, while others are switched on; action=reboot, or a method with action=on, is allowed for each or for none",
                );
            }
        }
    }

    fn recovery(&mut self, names: &[String]) {
        for name in names.iter().filter(|name| *name != MARK_UNSCHEDULABLE) {
            let Some(method) = self.method("recovery", name) else {
                continue;
            };
            let mut cut = self.steps.isolation.iter().map(|cut| &self.steps.methods[cut].0);
            let undoes = cut.any(|cut| cut.is_of_the_device_of(&method));
            if method.action.unwrap_or(Action::On) != Action::On || !undoes {
                self.wrong(
                    "recovery",
                    name,
                    "which undoes no method of isolation; Ringfence gives back what the fence has taken, and nothing else: \
                     mark-unschedulable is allowed, and a method with action=on that has the values of a method of isolation",
                );
            }
        }
    }

    fn method(&mut self, step: &str, name: &str) -> Option<Method> {
        if matches!(name, MARK_UNSCHEDULABLE | RESTART_INSTANCE) {
            let place = match name {
                MARK_UNSCHEDULABLE => "isolation and recovery",
                _ => "power_management",
            };
            self.wrong(step, name, &format!("which stands in {place} alone"));
            return None;
        }
        if let Some(known) = self.read.get(name) {
            return known.clone();
        }
        let method = self.read(step, name);
        self.read.insert(name.to_owned(), method.clone());
        method
    }

    fn read(&mut self, step: &str, name: &str) -> Option<Method> {
        let key = format!("{METHOD}{name}");
        if let Some(text) = self.source.data.get(&key) {
            return self.reader.read(&key, text, self.problems);
        }
        match self.reader.sources.text_of(&key) {
            Some(Ok(text)) => self.reader.read(&key, text, self.problems),
            Some(Err(why)) => {
                self.wrong(step, name, &format!("and ConfigMap {key} cannot be used: {why}"));
                None
            }
            None => {
                let why = format!(
                    "and there is neither a key {key} in this ConfigMap nor a ConfigMap {key} in namespace {}",
                    self.reader.namespace
                );
                self.wrong(step, name, &why);
                None
            }
        }
    }

    fn wrong(&mut self, step: &str, name: &str, why: &str) {
        self.problems
            .add(format!("{CONFIG}: {step}"), format!("names {name}, {why}"));
    }
}
