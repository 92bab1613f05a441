//! What is really so: feeds, paths, and the host's workloads. Knows nothing of `decide`, so that it can show it wrong.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{FrozenPlan, ObservedState, Outcome, ProofKind, Resource, TaskKind, Timestamp};

/// How a device behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Honest,
    /// Says ok, does nothing, and reads as what it is.
    Lies,
    /// Writes down what is wanted, and nothing comes of it; whoever reads it knows as much.
    OnPaper,
    /// Never answers.
    Silent,
    /// Says no.
    Refuses,
}

/// One task's devices by level; a level that is switched off as a whole takes the thing away.
#[derive(Clone, Debug)]
struct Path {
    resource: Resource,
    levels: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
pub struct Site {
    pub manners: BTreeMap<String, Manner>,
    /// By method: whether it lets power, data or packets through.
    feeds: BTreeMap<String, bool>,
    paths: Vec<Path>,
    watchdog_s: Option<u32>,
    /// Somebody has not pulled the plugs.
    pub plugged: bool,
    powered_since: Option<Timestamp>,
    alone_since: Option<Timestamp>,
    /// The workloads are running (and write, where storage is connected).
    pub running: bool,
}

impl Site {
    pub fn new(plan: &FrozenPlan, watchdog_s: Option<u32>, now: Timestamp) -> Self {
        let tasks = plan.stages.iter().flat_map(|stage| &stage.tasks);
        let paths: Vec<Path> = tasks
            .filter(|task| task.kind.is_fencing())
            .map(|task| Path {
                resource: task.kind.resource(),
                levels: task
                    .levels
                    .iter()
                    .map(|level| level.iter().map(|m| m.name.clone()).collect())
                    .collect(),
            })
            .collect();
        let names = paths.iter().flat_map(|path| path.levels.iter().flatten());
        Self {
            manners: BTreeMap::new(),
            feeds: names.map(|name| (name.clone(), true)).collect(),
            paths,
            watchdog_s,
            plugged: true,
            powered_since: Some(now),
            alone_since: None,
            running: true,
        }
    }

    pub fn manner(&self, method: &str) -> Manner {
        self.manners.get(method).copied().unwrap_or(Manner::Honest)
    }

    /// A worker commands the device of `method`.
    pub fn command(&mut self, kind: TaskKind, method: &str) {
        let acts = match self.manner(method) {
            Manner::Honest => true,
            Manner::OnPaper => !kind.is_fencing(),
            Manner::Lies | Manner::Silent | Manner::Refuses => false,
        };
        if acts && let Some(feed) = self.feeds.get_mut(method) {
            *feed = matches!(
                kind,
                TaskKind::PowerOn | TaskKind::StorageUnfence | TaskKind::NetworkUnfence
            );
        }
    }

    /// What a worker reports after it has acted.
    pub fn report(&self, kind: TaskKind, method: &str) -> (Outcome, Option<ObservedState>) {
        let lets_through = self.feeds.get(method).copied().unwrap_or(true);
        let shown = match (kind, lets_through) {
            (TaskKind::PowerOff | TaskKind::PowerOn, true) => ObservedState::On,
            (TaskKind::PowerOff | TaskKind::PowerOn, false) => ObservedState::Off,
            (_, true) => ObservedState::Unfenced,
            (_, false) => ObservedState::Fenced,
        };
        match self.manner(method) {
            Manner::OnPaper => (Outcome::Confirmed, Some(kind.wanted_state())),
            Manner::Honest | Manner::Lies => (Outcome::Confirmed, Some(shown)),
            Manner::Silent => (Outcome::Unknown, None),
            Manner::Refuses => (Outcome::Refused, None),
        }
    }

    /// One feed is put back by hand.
    pub fn reconnect(&mut self, method: &str) {
        if let Some(feed) = self.feeds.get_mut(method) {
            *feed = true;
        }
    }

    /// Every feed is switched on by somebody else.
    pub fn restore_power(&mut self) {
        let paths = self.paths.iter().filter(|path| path.resource == Resource::Power);
        for name in paths.flat_map(|path| path.levels.iter().flatten()) {
            self.feeds.insert(name.clone(), true);
        }
        self.plugged = true;
    }

    pub fn set_contact(&mut self, contact: bool, now: Timestamp) {
        match (contact, self.alone_since) {
            (true, _) => self.alone_since = None,
            (false, None) => self.alone_since = Some(now),
            (false, Some(_)) => {}
        }
    }

    pub fn is_powered(&self) -> bool {
        self.plugged && !self.is_cut(Resource::Power)
    }

    /// Every path of the resource has a level that lets nothing through.
    fn is_cut(&self, resource: Resource) -> bool {
        let is_off = |name: &String| self.feeds.get(name) == Some(&false);
        let mut paths = self
            .paths
            .iter()
            .filter(|path| path.resource == resource)
            .peekable();
        paths.peek().is_some()
            && paths.all(|path| {
                path.levels
                    .iter()
                    .any(|level| !level.is_empty() && level.iter().all(is_off))
            })
    }

    /// Nature takes its course. Workloads start by themselves on a host that nobody calls FENCED.
    pub fn settle(&mut self, now: Timestamp, may_start: bool) {
        match (self.is_powered(), self.powered_since) {
            (false, _) => {
                self.powered_since = None;
                self.running = false;
                self.set_contact(false, now);
            }
            (true, None) => {
                self.powered_since = Some(now);
                self.running = may_start;
            }
            (true, Some(_)) if may_start && self.alone_since.is_none() => self.running = true,
            (true, Some(_)) => {}
        }
        if let (Some(alone), Some(powered), Some(watchdog_s)) =
            (self.alone_since, self.powered_since, self.watchdog_s)
            && alone.max(powered) + TimeDelta::seconds(i64::from(watchdog_s)) <= now
        {
            self.running = false;
        }
    }

    /// Whether what this kind of proof stands for is so.
    pub fn holds(&self, kind: ProofKind) -> bool {
        match kind {
            ProofKind::PowerOff | ProofKind::SelfFencing | ProofKind::Operator => !self.running,
            ProofKind::StorageFence => self.is_cut(Resource::Storage) || !self.running,
            ProofKind::NetworkFence => self.is_cut(Resource::Network) || !self.running,
        }
    }
}
