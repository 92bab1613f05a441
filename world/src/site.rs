//! What is really so: feeds and paths, the machine and its boots, its workloads, and what its storage has accepted. Knows nothing of the
//! rules, so that it can show them wrong.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use ringfence_core::{
    FencingKind, FrozenPlan, ObservedState, Outcome, ProofKind, Resource, SufficientSet, Timestamp,
};

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
    /// Its kernel has died: it neither runs anything nor answers.
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

    /// How the device of a method behaves.
    #[must_use]
    pub fn manner(&self, method: &str) -> Manner {
        self.manners.get(method).copied().unwrap_or_default()
    }

    /// The names of all devices.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.feeds.keys().map(String::as_str)
    }

    /// A worker commands the device of `method`.
    pub fn command(&mut self, kind: FencingKind, method: &str) {
        let manner = self.manner(method);
        let now = self.at;
        let open = kind.releases();
        if let Some(feed) = self.feeds.get_mut(method) {
            feed.command(open, manner, now);
        }
        if open {
            self.press_button(kind, Cause::Ringfence);
        }
        self.settle(Cause::Ringfence);
    }

    /// A machine that has switched itself off starts when its power is switched on, even if it was never off.
    fn press_button(&mut self, kind: FencingKind, cause: Cause) {
        if kind == FencingKind::PowerOn && self.machine == Machine::Off && self.is_powered() {
            self.start(cause);
        }
    }

    /// What a worker reads after it has acted.
    #[must_use]
    pub fn report(&self, kind: FencingKind, method: &str) -> (Outcome, Option<ObservedState>) {
        let lets_through = self.feeds.get(method).is_none_or(Feed::shows);
        // A machine that has switched itself off reads as off, as far as its own controller goes.
        let is_on = lets_through && (self.machine != Machine::Off || kind == FencingKind::PowerOff);
        // An export shows as closed once what it had accepted has landed, and not before.
        let is_closing = kind == FencingKind::StorageFence && self.landing_until.is_some();
        let shown = match kind {
            _ if is_closing => ObservedState::Unfenced,
            FencingKind::PowerOff | FencingKind::PowerOn if is_on => ObservedState::On,
            FencingKind::PowerOff | FencingKind::PowerOn => ObservedState::Off,
            _ if lets_through => ObservedState::Unfenced,
            _ => ObservedState::Fenced,
        };
        match self.manner(method) {
            Manner::OnPaper | Manner::Ghost => (Outcome::Confirmed, Some(kind.wanted_state())),
            Manner::Silent => (Outcome::Unknown, None),
            Manner::Refuses => (Outcome::Refused, None),
            Manner::Honest | Manner::Lies | Manner::Slow(_) | Manner::Stale(_)
                if shown == kind.wanted_state() =>
            {
                (Outcome::Confirmed, Some(shown))
            }
            Manner::Honest | Manner::Lies | Manner::Slow(_) | Manner::Stale(_) => {
                (Outcome::Unknown, Some(shown))
            }
        }
    }

    /// A person puts one feed back by hand.
    pub fn reconnect(&mut self, method: &str) {
        if let Some(feed) = self.feeds.get_mut(method) {
            feed.open_by_hand();
        }
        self.settle(Cause::Stranger);
    }

    /// A person switches every feed of the power on without Ringfence.
    pub fn restore_power(&mut self) {
        let paths = self.paths.iter().filter(|path| path.resource == Resource::Power);
        let names: Vec<String> = paths
            .flat_map(|path| path.levels.iter().flatten().cloned())
            .collect();
        for name in names {
            if let Some(feed) = self.feeds.get_mut(&name) {
                feed.open_by_hand();
            }
        }
        self.plug_in();
        self.meddled_at = Some(self.at);
        self.press_button(FencingKind::PowerOn, Cause::Stranger);
        self.settle(Cause::Stranger);
    }

    /// A person pulls the plugs, or puts them in.
    pub fn plug(&mut self, plugged: bool) {
        if plugged {
            self.plug_in();
            self.meddled_at = Some(self.at);
        } else {
            self.plugged = false;
            self.plugged_by_hand = false;
        }
        self.settle(Cause::Stranger);
    }

    fn plug_in(&mut self) {
        self.plugged_by_hand |= !self.plugged;
        self.plugged = true;
    }

    /// When a person last switched something on without which the host would have no power; `None` if it has its power without
    /// that.
    #[must_use]
    pub fn meddled_at(&self) -> Option<Timestamp> {
        let by_hand = |name: &String| {
            self.feeds
                .get(name)
                .is_some_and(|feed| !feed.open || feed.by_hand)
        };
        let would_be_off = self.plugged_by_hand || self.is_cut_by(Resource::Power, by_hand);
        self.meddled_at.filter(|_| would_be_off)
    }

    /// The kernel dies; the machine starts again by itself, or not.
    pub fn crash(&mut self, reboots: bool) {
        if !matches!(self.machine, Machine::On | Machine::Booting(_)) {
            return;
        }
        self.stop_workloads();
        if reboots {
            self.start(Cause::Itself);
        } else {
            self.machine = Machine::Crashed;
        }
    }

    /// The machine stands still, or goes on.
    pub fn freeze(&mut self, frozen: bool) {
        match (self.machine, frozen) {
            (Machine::On, true) => self.machine = Machine::Frozen,
            (Machine::Frozen, false) => self.machine = Machine::On,
            _ => {}
        }
    }

    /// The watchdog strikes so many milliseconds before the segment counts on it.
    pub fn shorten_watchdog(&mut self, milliseconds: i64) {
        self.watchdog_early = TimeDelta::milliseconds(milliseconds);
    }

    /// These sources, and no others, hear the host.
    pub fn watch_by<'a>(&mut self, sources: impl Iterator<Item = &'a str>) {
        self.links = sources.map(|name| (name.to_owned(), true)).collect();
    }

    /// Whether a source can hear the host.
    pub fn link(&mut self, source: &str, is_up: bool) {
        self.links.insert(source.to_owned(), is_up);
        self.look_around();
    }

    /// Whether a source hears the host now.
    #[must_use]
    pub fn is_heard_by(&self, source: &str) -> bool {
        self.machine == Machine::On && self.links.get(source).copied().unwrap_or(false)
    }

    /// What a source last heard of the host.
    #[must_use]
    pub fn heard_by(&self, source: &str) -> Option<Heard> {
        self.heard.get(source).copied()
    }

    /// A source begins anew and knows nothing of what it has heard.
    pub fn forget_heard(&mut self, source: &str) {
        self.heard.remove(source);
    }

    fn hear(&mut self) {
        let heard = Heard {
            at: self.at,
            boot: self.boot,
            booted_at: self.booted_at,
        };
        if self.machine == Machine::On {
            let linked = self.links.iter().filter(|(_, is_up)| **is_up);
            self.heard.extend(linked.map(|(name, _)| (name.clone(), heard)));
        }
    }

    /// Whether the machine has power.
    #[must_use]
    pub fn is_powered(&self) -> bool {
        self.plugged && !self.is_cut(Resource::Power)
    }

    /// Every path of the resource has a level that lets nothing through.
    #[must_use]
    pub fn is_cut(&self, resource: Resource) -> bool {
        self.is_cut_by(resource, |name| {
            self.feeds.get(name).is_some_and(|feed| !feed.open)
        })
    }

    fn is_cut_by(&self, resource: Resource, is_off: impl Fn(&String) -> bool) -> bool {
        let mut paths = self
            .paths
            .iter()
            .filter(|path| path.resource == resource)
            .peekable();
        paths.peek().is_some()
            && paths.all(|path| {
                let mut levels = path.levels.iter();
                levels.any(|level| !level.is_empty() && level.iter().all(&is_off))
            })
    }

    /// The devices by which a worker has taken storage or network from the host.
    pub fn taken(&self) -> impl Iterator<Item = &str> {
        let paths = self.paths.iter().filter(|path| path.resource != Resource::Power);
        let names = paths.flat_map(|path| path.levels.iter().flatten());
        let is_closed = |name: &&String| self.feeds.get(*name).is_some_and(|feed| !feed.open);
        names.filter(is_closed).map(String::as_str)
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
        let own = [booted, self.landing_until, self.watchdog_strikes_at()];
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

    /// A host's own watchdog counts from when it is alone, or from its boot. In a machine that stands still it stands still.
    fn watchdog_strikes_at(&self) -> Option<Timestamp> {
        let timeout = TimeDelta::seconds(i64::from(self.watchdog_s?)) - self.watchdog_early;
        let since = self.alone_since.filter(|_| self.machine == Machine::On)?;
        self.running.then_some(since + timeout)
    }

    fn look_around(&mut self) {
        let is_alone = self.links.values().all(|is_up| !is_up);
        self.alone_since = match (is_alone, self.alone_since) {
            (false, _) => None,
            (true, Some(since)) => Some(since),
            (true, None) => Some(self.at),
        };
        self.start_workloads();
    }

    /// Workloads start by themselves with every boot, unless the host fences itself: then its agent asks first.
    fn start_workloads(&mut self) {
        if self.machine == Machine::On && self.watchdog_s.is_none() {
            self.running = true;
        }
    }

    /// Whether the agent of a host that fences itself asks whether it may start its workloads.
    #[must_use]
    pub fn asks(&self) -> bool {
        let is_idle = self.machine == Machine::On && !self.running;
        self.watchdog_s.is_some() && is_idle && self.alone_since.is_none()
    }

    /// The agent was told that it may.
    pub fn may_start(&mut self) {
        self.running |= self.asks();
    }

    fn stop_workloads(&mut self) {
        if self.running && !self.is_cut(Resource::Storage) {
            self.begin_landing();
        }
        self.running = false;
    }

    fn begin_landing(&mut self) {
        if self.lands_ms > 0 {
            let until = self.at + TimeDelta::milliseconds(self.lands_ms);
            self.landing_until = self.landing_until.max(Some(until));
        }
    }

    fn start(&mut self, cause: Cause) {
        self.boot += 1;
        self.booted_at = self.at;
        // What starts again by itself goes on with what began before.
        if cause != Cause::Itself {
            self.cause = cause;
            self.begun_with = self.boot;
        }
        self.alone_since = None;
        self.machine = Machine::Booting(self.at + TimeDelta::milliseconds(self.boot_ms));
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
            ProofKind::PowerOff | ProofKind::SelfFencing | ProofKind::Operator => has_stopped,
            ProofKind::StorageFence => {
                has_stopped || (self.is_cut(Resource::Storage) && self.landing_until.is_none())
            }
            ProofKind::NetworkFence => has_stopped || self.is_cut(Resource::Network),
        }
    }

    /// Workloads that start by themselves are on their way.
    fn will_run(&self) -> bool {
        matches!(self.machine, Machine::Booting(_)) && self.watchdog_s.is_none()
    }

    /// Whether anything of the host may run or write now: nothing that would suffice is so.
    #[must_use]
    pub fn harm(&self) -> bool {
        let is_so = |set: &SufficientSet| !set.is_empty() && set.iter().all(|kind| self.holds(*kind));
        !self.sets.iter().any(is_so)
    }

    /// A host that is said to be UP is: a story that says so has pressed its button.
    pub(crate) fn wake_up(&mut self) {
        if self.machine == Machine::Off && self.is_powered() {
            self.start(Cause::Stranger);
        }
        if matches!(self.machine, Machine::Booting(_)) {
            self.machine = Machine::On;
        }
        self.look_around();
    }
}
