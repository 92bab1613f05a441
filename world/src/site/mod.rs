//! What is really so: feeds and paths, the machine and its boots, its workloads, and what its storage has accepted. Knows nothing of the
//! rules, so that it can show them wrong.

mod devices;
mod hearing;
mod machine;

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use ringfence_core::{FrozenPlan, ProofKind, Resource, SufficientSet, Timestamp};

use crate::cloud::Uses;
use crate::feed::{Feed, Manner};

/// One task's devices by level; a level that is switched off as a whole takes the thing away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// What it carries.
    pub resource: Resource,
    /// The names of the methods, by level.
    pub levels: Vec<Vec<String>>,
}

/// The machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// It has no power, or it has power and waits for its button.
    Off,
    /// It starts; its workloads start with it at that moment.
    Booting(Timestamp),
    /// It runs.
    On,
    /// Its kernel has died: it neither runs anything nor answers. Its crash kernel may say so.
    Crashed,
    /// It stands still, and knows nothing of it.
    Frozen,
}

/// What began a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It ran before anything happened, or started by itself.
    Itself,
    /// A worker switched it on, or released something to it.
    Ringfence,
    /// A person switched it on without Ringfence.
    Stranger,
}

/// A sign of life that a source had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When it came.
    pub at: Timestamp,
    /// The number of the boot that it came from.
    pub boot: u32,
    /// When that boot began.
    pub booted_at: Timestamp,
}

/// The physical world around one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// How devices behave that are not honest, by the names of their methods.
    pub manners: BTreeMap<String, Manner>,
    /// Its devices, by the names of their methods.
    pub feeds: BTreeMap<String, Feed>,
    /// The ways by which power, storage and network are taken from it.
    pub paths: Vec<Path>,
    /// What suffices.
    pub sets: Vec<SufficientSet>,
    /// After how many seconds alone the host fences itself.
    pub watchdog_s: Option<u32>,
    /// Its workloads start once its agent has asked, and not with its boot: where its watchdog resets it, or it starts again after a dump.
    pub asks_first: bool,
    /// By how much its watchdog strikes earlier than that.
    pub watchdog_early: TimeDelta,
    /// It resets the host, which boots again; otherwise it switches the host off.
    pub watchdog_resets: bool,
    /// No person has pulled the plugs.
    pub plugged: bool,
    /// A person has put the plugs in.
    pub plugged_by_hand: bool,
    /// When a person last switched something on without Ringfence.
    pub meddled_at: Option<Timestamp>,
    /// The machine.
    pub machine: Machine,
    /// The number of its boot.
    pub boot: u32,
    /// When that began.
    pub booted_at: Timestamp,
    /// What began it, or the one that it follows by itself.
    pub cause: Cause,
    /// The number of the boot that was begun so.
    pub begun_with: u32,
    /// Milliseconds from the power to the workloads.
    pub boot_ms: i64,
    /// Its workloads run (and write, where storage is connected).
    pub running: bool,
    /// What was written can still land for so long after its writer has stopped or was cut off.
    pub lands_ms: i64,
    /// Until when something that was written still lands.
    pub landing_until: Option<Timestamp>,
    /// Until when that still lands which was written to another storage than that which is fenced.
    pub landing_elsewhere_until: Option<Timestamp>,
    /// Which sources can hear it, by name.
    pub links: BTreeMap<String, bool>,
    /// When each source last heard it, and which boot.
    pub heard: BTreeMap<String, Heard>,
    /// Since when no source can hear it.
    pub alone_since: Option<Timestamp>,
    /// Boots that were cut off from storage while they ran.
    pub cut_boots: BTreeSet<u32>,
    /// Storage was cut and is connected again.
    pub has_had_storage_back: bool,
    /// A boot that was cut off and has storage again.
    pub released_to: Option<u32>,
    /// Storage was cut when it was last looked at.
    pub was_cut: bool,
    /// It had power when it was last looked at.
    pub had_power: bool,
    /// The time.
    pub at: Timestamp,
}

fn is_by_kdump(set: &SufficientSet) -> bool {
    set.contains(&ProofKind::Kdump)
}

impl Site {
    /// A host that runs, with the devices of a plan.
    #[must_use]
    pub fn new(plan: &FrozenPlan, watchdog_s: Option<u32>, now: Timestamp) -> Self {
        let tasks = plan.stages.iter().flat_map(|stage| &stage.tasks);
        let paths: Vec<Path> = tasks
            .filter(|task| task.kind.takes())
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
            feeds: names.map(|name| (name.clone(), Feed::default())).collect(),
            paths,
            sets: plan.sufficient_sets.clone(),
            watchdog_s,
            asks_first: watchdog_s.is_some() || plan.sufficient_sets.iter().any(is_by_kdump),
            watchdog_early: TimeDelta::zero(),
            watchdog_resets: false,
            plugged: true,
            plugged_by_hand: false,
            meddled_at: None,
            machine: Machine::On,
            boot: 1,
            booted_at: now - TimeDelta::hours(1),
            cause: Cause::Itself,
            begun_with: 1,
            boot_ms: 4_000,
            running: true,
            lands_ms: 0,
            landing_until: None,
            landing_elsewhere_until: None,
            links: BTreeMap::from([("monitor".to_owned(), true)]),
            heard: BTreeMap::new(),
            alone_since: None,
            cut_boots: BTreeSet::new(),
            released_to: None,
            has_had_storage_back: false,
            was_cut: false,
            had_power: true,
            at: now,
        }
    }

    /// Time passes.
    pub fn pass(&mut self, to: Timestamp) {
        while let Some(at) = self.next().filter(|at| *at <= to) {
            self.at = at.max(self.at);
            self.hear();
            self.do_what_is_due();
        }
        self.at = to.max(self.at);
        self.hear();
    }

    /// When something changes by itself.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        let booted = match self.machine {
            Machine::Booting(at) => Some(at),
            Machine::Off | Machine::On | Machine::Crashed | Machine::Frozen => None,
        };
        let feeds = self.feeds.values().filter_map(Feed::next);
        let own = [
            booted,
            self.landing_until,
            self.landing_elsewhere_until,
            self.watchdog_strikes_at(),
        ];
        feeds.chain(own.into_iter().flatten()).min()
    }

    fn do_what_is_due(&mut self) {
        let now = self.at;
        for feed in self.feeds.values_mut() {
            feed.pass(now);
        }
        if self.landing_until.is_some_and(|at| at <= now) {
            self.landing_until = None;
        }
        if self.landing_elsewhere_until.is_some_and(|at| at <= now) {
            self.landing_elsewhere_until = None;
        }
        if self.watchdog_strikes_at().is_some_and(|at| at <= now) {
            self.stop_workloads();
            self.machine = Machine::Off;
            if self.watchdog_resets {
                self.start(Cause::Itself);
            }
        }
        if matches!(self.machine, Machine::Booting(at) if at <= now) {
            self.machine = Machine::On;
            self.look_around();
        }
        self.settle(Cause::Ringfence);
        self.start_workloads();
    }

    /// What follows from the feeds as they are.
    fn settle(&mut self, cause: Cause) {
        match (self.is_powered(), self.machine) {
            (false, _) => {
                self.stop_workloads();
                self.machine = Machine::Off;
                self.had_power = false;
            }
            (true, Machine::Off) if !self.had_power => {
                self.had_power = true;
                self.start(cause);
            }
            (true, _) => self.had_power = true,
        }
        self.note_cut(cause);
    }

    /// A boot that is cut off while its workloads run must not get its storage back.
    fn note_cut(&mut self, cause: Cause) {
        let is_cut = self.is_cut(Resource::Storage);
        let is_there = matches!(self.machine, Machine::On | Machine::Frozen | Machine::Booting(_));
        // A host whose agent has yet to ask has nothing that was half written.
        if is_cut && !self.was_cut && is_there && (self.running || self.will_run()) {
            self.cut_boots.insert(self.boot);
            if self.running {
                self.begin_landing();
            }
        }
        let is_same = self.was_cut && !is_cut && is_there && self.cut_boots.contains(&self.boot);
        if is_same && cause == Cause::Ringfence {
            self.released_to = Some(self.boot);
        }
        self.has_had_storage_back |= self.was_cut && !is_cut;
        self.was_cut = is_cut;
    }

    /// Whether what this kind of proof stands for is so.
    #[must_use]
    pub fn holds(&self, kind: ProofKind) -> bool {
        let has_stopped = !self.running && !self.will_run() && self.landing_until.is_none();
        match kind {
            ProofKind::PowerOff | ProofKind::SelfFencing | ProofKind::Kdump | ProofKind::Operator => {
                has_stopped
            }
            ProofKind::StorageFence => {
                has_stopped || (self.is_cut(Resource::Storage) && self.landing_until.is_none())
            }
            ProofKind::NetworkFence => has_stopped || self.is_cut(Resource::Network),
        }
    }

    /// Whether anything of the host may run or write now: nothing that would suffice is so.
    #[must_use]
    pub fn harm(&self) -> bool {
        let is_so = |set: &SufficientSet| !set.is_empty() && set.iter().all(|kind| self.holds(*kind));
        !self.sets.iter().any(is_so)
    }

    /// Whether a workload of the host may spoil now what it uses.
    #[must_use]
    pub fn may_spoil(&self, uses: Uses) -> bool {
        use ProofKind::{NetworkFence, PowerOff, StorageFence};
        let is_cut_off = match uses {
            Uses::WhatSuffices => return self.harm(),
            Uses::FencedStorage => self.holds(StorageFence),
            Uses::OtherStorage if self.landing_elsewhere_until.is_some() => return true,
            Uses::OtherStorage => self.holds(StorageFence) && self.holds(NetworkFence),
            Uses::Network => self.holds(NetworkFence),
        };
        !is_cut_off && !self.holds(PowerOff)
    }
}
