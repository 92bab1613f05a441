//! The proofs in a record, and which of them still hold.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use ringfence_core::*;

use super::facts::{
    Grant, Reading, as_seen, decisions, fenced_generation, grants, has_event, readings, releases,
};
use super::hearing::{Known, heard};
use ringfence_world::World;

/// The largest difference of two engines' clocks: a sign of life this shortly before a reading may have come after it.
const CLOCKS_APART: TimeDelta = TimeDelta::seconds(1);

/// A sign of life that was reported.
#[derive(Clone, Copy, Debug)]
struct Sign {
    at: usize,
    /// The latest possible time of the sign.
    by: Timestamp,
}

/// A person's confirmation that was accepted.
#[derive(Clone, Copy, Debug)]
struct Word {
    at: usize,
    generation: Generation,
    said_at: Timestamp,
    /// An admin knew of the signs of life until then.
    overrides: bool,
}

/// The proofs of a record.
pub struct Record<'a> {
    world: &'a World,
    grants: Vec<Grant>,
    readings: Vec<Reading>,
    signs: Vec<Sign>,
    heard: Vec<Known>,
    words: Vec<Word>,
}

impl<'a> Record<'a> {
    pub fn of(world: &'a World) -> Self {
        let heard = heard(world);
        Self {
            grants: grants(world),
            readings: readings(world),
            signs: signs(&heard),
            heard,
            words: words(world),
            world,
        }
    }

    /// The kinds of proof that a generation has at the moment `at`: won by then, and not ended.
    pub fn standing(&self, at: usize, generation: Generation) -> BTreeSet<ProofKind> {
        self.proven(at, generation, false)
    }

    /// The proofs of `standing` after which all accepted writes have landed.
    pub fn settled(&self, at: usize, generation: Generation) -> BTreeSet<ProofKind> {
        self.proven(at, generation, true)
    }

    /// Whether these proofs complete one of the plan's sets.
    pub fn suffices(&self, proven: &BTreeSet<ProofKind>) -> bool {
        let mut sets = self.world.plan.sufficient_sets.iter();
        sets.any(|set| !set.is_empty() && set.is_subset(proven))
    }

    /// The failure state of all sources together after the moment `at`.
    pub fn failure_state(&self, at: usize) -> FailureState {
        self.heard[at].state
    }

    fn proven(&self, at: usize, generation: Generation, settled: bool) -> BTreeSet<ProofKind> {
        let by_tasks = [
            (ProofKind::PowerOff, FencingKind::PowerOff),
            (ProofKind::StorageFence, FencingKind::StorageFence),
            (ProofKind::NetworkFence, FencingKind::NetworkFence),
        ];
        let is_done = |task: FencingKind| self.tasks_done(task, at, generation, settled);
        let done = by_tasks.into_iter().filter(|(_, task)| is_done(*task));
        let mut proven: BTreeSet<ProofKind> = done.map(|(kind, _)| kind).collect();
        if self.was_silent(at, generation, settled) {
            proven.insert(ProofKind::SelfFencing);
        }
        if self.was_said(at, generation, settled) {
            proven.insert(ProofKind::Operator);
        }
        proven
    }

    /// Whether every task of the kind has a level of which every device was read in the wanted state, by readings that still hold.
    fn tasks_done(&self, kind: FencingKind, at: usize, generation: Generation, settled: bool) -> bool {
        let is_it = |r: &&Reading| r.at <= at && r.generation == generation && r.kind == kind;
        let stands = |r: &&Reading| {
            let own = r.method.as_ref().map_or(0, |method| method.times.settle_s);
            let settle_s = self.settle_s(kind == FencingKind::PowerOff).max(own);
            self.stands(r, at) && (!settled || self.has_passed(settle_s, r.at, at))
        };
        let standing: BTreeSet<MethodId> = self
            .readings
            .iter()
            .filter(is_it)
            .filter(stands)
            .filter_map(|r| r.method.as_ref().map(|method| method.id))
            .collect();
        let tasks = self.world.plan.stages.iter().flat_map(|stage| &stage.tasks);
        let mut tasks = tasks.filter(|task| task.kind == kind).peekable();
        let was_read = |method: &FrozenMethod| standing.contains(&method.id);
        let is_done = |level: &Vec<FrozenMethod>| !level.is_empty() && level.iter().all(was_read);
        tasks.peek().is_some() && tasks.all(|task| task.levels.iter().any(is_done))
    }

    /// Whether no claim of the opposite was granted since the reading's own, and no sign of life came after a reading of a stopped host.
    pub fn stands(&self, reading: &Reading, at: usize) -> bool {
        let resource = reading.kind.resource();
        let undoes = |kind: TaskKind| releases(kind) && kind.resource() == resource;
        let is_stop = reading.kind == FencingKind::PowerOff;
        let is_contradicted = is_stop && self.was_heard(reading.read_at, reading.at, 0, at);
        !is_contradicted && !self.was_undone(undoes, reading.granted, at)
    }

    /// Whether a report until the moment `at` has a sign of life that may be newer than a time that was said in it.
    pub fn was_heard_since(&self, moment: Timestamp, at: usize) -> bool {
        self.was_heard(moment, at, 0, at)
    }

    /// Whether a report between `since` and `at` has a sign of life that may be newer than a time that was noted at `noted`.
    fn was_heard(&self, moment: Timestamp, noted: usize, since: usize, at: usize) -> bool {
        let mut signs = self.signs.iter().filter(|sign| (since..=at).contains(&sign.at));
        signs.any(|sign| {
            let both = sign.at.max(noted);
            let by = as_seen(self.world, sign.by, sign.at, both);
            by > as_seen(self.world, moment, noted, both) - CLOCKS_APART
        })
    }

    fn was_undone(&self, undoes: impl Fn(TaskKind) -> bool, since: usize, at: usize) -> bool {
        let mut grants = self.grants.iter().filter(|g| since < g.at && g.at <= at);
        grants.any(|g| undoes(g.claim.kind))
    }

    /// Whether the host was silent long enough during this generation's fence, and neither heard nor given anything since.
    fn was_silent(&self, at: usize, generation: Generation, settled: bool) -> bool {
        let Some(timeout_s) = self.world.state.policy.self_fencing_timeout_s else {
            return false;
        };
        let long = TimeDelta::seconds(i64::from(timeout_s));
        let until = self.fenced_at(generation).unwrap_or(at).min(at);
        let is_live = |i: usize| self.live_fence(i) == Some(generation);
        (0..=until).filter(|i| is_live(*i)).any(|i| {
            let Some(silent) = self.heard[i]
                .silence
                .filter(|silent| silent.to - silent.from >= long)
            else {
                return false;
            };
            !self.was_heard(silent.from, i, i + 1, at)
                && !self.was_undone(releases, i, at)
                && (!settled || self.has_passed(self.settle_s(true), i, at))
        })
    }

    /// The moment in which the host turned FENCED at this generation: later silence is no proof of it.
    fn fenced_at(&self, generation: Generation) -> Option<usize> {
        let is_it = |decision: &Decision| {
            has_event(decision, EventKind::HostFenced)
                && fenced_generation(&decision.state.host) == Some(generation)
        };
        decisions(self.world)
            .find(|(_, _, decision)| is_it(decision))
            .map(|(at, _, _)| at)
    }

    /// The generation of the fence that was live at a moment, or began or ended in it.
    fn live_fence(&self, at: usize) -> Option<Generation> {
        let moment = &self.world.trace[at];
        let after = moment.said.as_ref().ok().and_then(|d| d.state.operation.as_ref());
        let live = after.or(moment.before.operation.as_ref());
        live.filter(|live| live.kind() == OperationKind::Fence)
            .map(|live| live.generation)
    }

    fn was_said(&self, at: usize, generation: Generation, settled: bool) -> bool {
        let mut words = self
            .words
            .iter()
            .filter(|word| word.at <= at && word.generation == generation);
        words.any(|word| {
            let contradicted_from = if word.overrides { word.at + 1 } else { 0 };
            !self.was_heard(word.said_at, word.at, contradicted_from, at)
                && !self.was_undone(releases, word.at, at)
                && (!settled || self.has_passed(self.settle_s(true), word.at, at))
        })
    }

    fn settle_s(&self, says_stopped: bool) -> u32 {
        if says_stopped {
            self.world.state.policy.settle_s
        } else {
            0
        }
    }

    fn has_passed(&self, seconds: u32, from: usize, at: usize) -> bool {
        let learnt_at = as_seen(self.world, self.world.trace[from].now, from, at);
        learnt_at + TimeDelta::seconds(i64::from(seconds)) <= self.world.trace[at].now
    }
}

fn signs(heard: &[Known]) -> Vec<Sign> {
    let told = heard.iter().enumerate();
    told.filter_map(|(at, known)| Some(Sign { at, by: known.sign? }))
        .collect()
}

fn words(world: &World) -> Vec<Word> {
    let words = decisions(world).filter_map(|(at, moment, decision)| {
        let Input::Confirm {
            generation,
            said_at,
            override_up,
            ..
        } = &moment.input
        else {
            return None;
        };
        let is_taken = *generation == moment.before.host.generation && decision.answer == Reply::Done;
        is_taken.then_some(Word {
            at,
            generation: decision.state.host.generation,
            said_at: (*said_at).min(moment.now),
            overrides: *override_up,
        })
    });
    words.collect()
}
