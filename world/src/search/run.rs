//! Living through a history.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use ringfence_core::{Input, OperationKind, OperationStatus, Refusal, Timestamp, gates};

use super::action::Action;
use super::mail::{Ear, Letter};
use super::setting::Setting;
use super::word::{Word, unplug_and_confirm};
use crate::judge::Violation;
use crate::{Machine, World, plans};

/// More ticks than any operation of these settings can need.
const MAX_TICKS: usize = 4_000;

/// A setting and what happens in it.
#[derive(Clone, Debug)]
pub struct History {
    /// What holds before.
    pub setting: Setting,
    /// What happens.
    pub actions: Vec<Action>,
}

impl History {
    /// The history of this number, where chance begins with this seed.
    #[must_use]
    pub fn of(seed: u64, number: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let setting = Setting::any(&mut rng);
        let mut actions = Action::beginning(&mut rng);
        let more = rng.random_range(5..70);
        actions.extend((0..more).map(|_| setting.action(&mut rng)));
        Self { setting, actions }
    }
}

/// Something that a history has to reach so that its search means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reached {
    /// The host became FENCED.
    Fenced,
    /// The evacuate gate was open.
    OpenGate,
    /// A proof of a FENCED host has ended.
    ProofEnded,
    /// A workload was started elsewhere.
    Moved,
    /// The host became UNFENCED again.
    Unfenced,
    /// Storage was released.
    StorageBack,
    /// A fence waits for a person.
    NeedsOperator,
    /// FENCED by the host's own watchdog alone.
    SelfFenced,
    /// The host runs again while it is FENCED.
    RunsFenced,
}

/// How a history ended.
#[derive(Clone, Debug)]
pub enum Ending {
    /// Nothing is wrong.
    Well(BTreeSet<Reached>),
    /// Something must never be: what, and after how many actions.
    Violated(Violation, usize),
    /// An operation does not end by time alone.
    Endless(String),
}

/// The world and everything around it in a history.
struct Life {
    world: World,
    ears: Vec<Ear>,
    letters: Vec<Letter>,
    words: Vec<Word>,
    host_skew_ms: i64,
    offset: TimeDelta,
    reached: BTreeSet<Reached>,
}

/// Lives through a history; `records`: and writes its log down.
#[must_use]
pub fn live_through(history: &History, records: bool) -> (Ending, World) {
    let mut life = Life::new(&history.setting, records);
    for (at, action) in history.actions.iter().enumerate() {
        if records {
            let seconds = (life.world.real - plans::start()).num_milliseconds();
            life.world.log.push(format!(
                "{}.{} > {action:?}",
                seconds / 1_000,
                seconds % 1_000 / 100
            ));
        }
        life.act(*action);
        life.look();
        if let Some(violation) = life.world.violation {
            return (Ending::Violated(violation, at + 1), life.world);
        }
    }
    match life.end() {
        Some(ending) => (ending, life.world),
        None => (Ending::Well(life.reached), life.world),
    }
}

impl Life {
    fn new(setting: &Setting, records: bool) -> Self {
        let mut world = setting.world();
        world.records = records;
        let since = world.real - TimeDelta::hours(1);
        let ears = setting.sources.iter().map(|source| Ear {
            source: source.clone(),
            since,
        });
        let mut life = Self {
            ears: ears.collect(),
            letters: Vec::new(),
            words: Vec::new(),
            host_skew_ms: setting.host_skew_ms,
            offset: TimeDelta::zero(),
            reached: BTreeSet::new(),
            world,
        };
        life.begin();
        life
    }

    /// Every source on whose contact the host's agent counts has told of the host once: one that has not is not known to be one.
    fn begin(&mut self) {
        self.world.pass(1_000);
        for of in 0..self.ears.len() {
            if !self.ears[of].source.is_deaf {
                self.tell(u8::try_from(of).unwrap_or_default());
            }
        }
        self.world.log.clear();
    }

    /// Takes note of where the history has come to.
    fn look(&mut self) {
        let host = &self.world.state.host;
        if let Some(fence) = &host.fence {
            self.reached.insert(Reached::Fenced);
            if !fence.holds() {
                self.reached.insert(Reached::ProofEnded);
            }
            if self.world.site.running && self.world.site.machine == Machine::On {
                self.reached.insert(Reached::RunsFenced);
            }
            let mut kinds = fence.standing().map(|proof| proof.kind);
            if kinds.all(|kind| kind == ringfence_core::ProofKind::SelfFencing) && fence.holds() {
                self.reached.insert(Reached::SelfFenced);
            }
        } else if self.reached.contains(&Reached::Fenced) {
            self.reached.insert(Reached::Unfenced);
        }
        if gates(&self.world.state, self.world.now).evacuate.allowed {
            self.reached.insert(Reached::OpenGate);
        }
        if !self.world.cloud.started.is_empty() {
            self.reached.insert(Reached::Moved);
        }
        let waits = |o: &ringfence_core::Operation| {
            o.kind() == OperationKind::Fence && o.status == OperationStatus::NeedsOperator
        };
        if self.world.state.operation.as_ref().is_some_and(waits) {
            self.reached.insert(Reached::NeedsOperator);
        }
        if self.world.site.has_had_storage_back {
            self.reached.insert(Reached::StorageBack);
        }
    }

    /// By time alone every operation ends.
    fn end(&mut self) -> Option<Ending> {
        self.world.line_moves(false);
        self.world.tick();
        for _ in 0..MAX_TICKS {
            let operation = self.world.state.operation.as_ref();
            let is_open =
                operation.is_some_and(|o| o.status == OperationStatus::Running || o.restart_at.is_some());
            if !is_open {
                return None;
            }
            let Some(wake_at) = self.world.wake_at.filter(|at| *at > self.world.now) else {
                let detail = operation.map(|o| o.detail.clone()).unwrap_or_default();
                return Some(Ending::Endless(format!("nothing wakes it: {detail}")));
            };
            let step = wake_at - self.world.now;
            self.pass_to(wake_at, step);
            self.world.tick();
            if let Some(violation) = self.world.violation {
                return Some(Ending::Violated(violation, usize::MAX));
            }
        }
        let detail = self.world.state.operation.as_ref().map(|o| o.detail.clone());
        Some(Ending::Endless(detail.unwrap_or_default()))
    }

    fn pass_to(&mut self, at: Timestamp, step: TimeDelta) {
        self.world.now = at;
        self.world.real += step;
        self.world.settle();
    }

    fn act(&mut self, action: Action) {
        let world = &mut self.world;
        match action {
            Action::Fence => drop(world.fence()),
            Action::Rejoin => drop(world.rejoin(false)),
            Action::Evacuate => drop(world.evacuate()),
            Action::PullAndSay => unplug_and_confirm(world),
            Action::PullAndWrite => {
                let word = Word::written(world);
                self.words.push(word);
            }
            Action::ReadWord(of) => {
                if let Some(word) = pick(&self.words, of) {
                    word.is_heard(world);
                }
            }
            Action::PlugIn => world.site.plug(true),
            Action::Release(of) => release(world, of),
            Action::Cancel => drop(world.cancel()),
            Action::Retry => drop(world.retry()),
            Action::Look(of) => self.post(of),
            Action::Tell(of) => self.tell(of),
            Action::Watch(times) => self.watch(times),
            Action::WatchBy(of, times) => self.watch_by(of, times),
            Action::Post(of) => self.arrives(of),
            Action::SourceRestarts(of) => self.source_restarts(of),
            Action::Link(of, is_up) => {
                if let Some(ear) = pick(&self.ears, of).filter(|ear| !ear.source.is_deaf) {
                    world.site.link(&ear.source.name, is_up);
                }
            }
            Action::Cut => {
                for ear in &self.ears {
                    world.site.link(&ear.source.name, false);
                }
            }
            Action::Deliver(of) => {
                if !world.sent.is_empty() {
                    drop(world.deliver(usize::from(of) % world.sent.len(), "worker-1"));
                }
            }
            Action::Take => drop(take(world)),
            Action::Command(of) => {
                if !world.jobs.is_empty() {
                    let at = world.jobs.len() - 1 - usize::from(of) % world.jobs.len();
                    world.command(at);
                }
            }
            Action::Finish(of) => {
                if !world.jobs.is_empty() {
                    let at = world.jobs.len() - 1 - usize::from(of) % world.jobs.len();
                    finish(world, at);
                }
            }
            Action::Arrive(of) => {
                if !world.results.is_empty() {
                    world.deliver_result(usize::from(of) % world.results.len());
                }
            }
            Action::Renew(of) => {
                if let Some(job) = pick(&world.jobs, of) {
                    let claim = job.claim.clone();
                    drop(world.give(ringfence_core::Input::Renew(claim)));
                }
            }
            Action::Work => drop(work(world)),
            // Devices that lie are tried again and again: an end has to be set.
            Action::WorkOff => drop((0..12).take_while(|_| work(world)).count()),
            Action::Crash(reboots) => world.site.crash(reboots),
            Action::Freeze(frozen) => {
                // A watchdog stands still in a machine that stands still: nothing can be proven by it then.
                if world.state.policy.self_fencing_timeout_s.is_none() {
                    world.site.freeze(frozen);
                }
            }
            Action::StrangerOn => world.site.restore_power(),
            Action::CloudAway(is_away) => world.cloud.is_away = is_away,
            Action::Pass(milliseconds) => world.pass(i64::from(milliseconds)),
            Action::PassUnseen(milliseconds) => world.pass_unseen(i64::from(milliseconds)),
            Action::Tick => world.tick(),
            Action::OtherEngine(ahead_ms) => self.other_engine(i64::from(ahead_ms)),
            Action::SetClock(seconds) => {
                world.move_clock(i64::from(seconds));
                world.state.clock_set_at = Some(world.now);
                world.state.host.updated_at = world.state.host.updated_at.min(world.now);
                // An engine looks at all hosts then.
                world.tick();
            }
            Action::LineMoves(moves) => world.line_moves(moves),
            Action::LineEmpty => world.line_is_empty(),
            Action::BusAnew => world.bus_begins_anew(),
            Action::BrokerAway => world.broker_goes_away(),
            Action::Forget => world.forget(),
            Action::TakeOver => world.take_over(),
            Action::FormerTells(of) => {
                if let Some(letter) = pick(&self.ears, of).map(|ear| ear.look(world, self.host_skew_ms)) {
                    // What it is told is told to nothing that answers.
                    world.as_former(|former| former.report(letter.report).map(drop));
                }
            }
            Action::FormerTakes => world.as_former(former_takes),
            Action::FormerArrives(of) => {
                if let Some(result) = pick(&world.results, of).cloned() {
                    world.as_former(|former| former.give(Input::Result(result)).map(drop));
                }
            }
            Action::FormerTicks => world.as_former(|former| former.give(Input::tick()).map(drop)),
        }
        self.world.settle();
    }

    fn post(&mut self, of: u8) {
        let letter = pick(&self.ears, of).map(|ear| ear.look(&self.world, self.host_skew_ms));
        self.letters.extend(letter);
        if self.letters.len() > 32 {
            self.letters.remove(0);
        }
    }

    fn tell(&mut self, of: u8) {
        if let Some(letter) = pick(&self.ears, of).map(|ear| ear.look(&self.world, self.host_skew_ms)) {
            self.read(letter);
        }
    }

    fn watch(&mut self, times: u8) {
        for _ in 0..times {
            for of in 0..self.ears.len() {
                self.tell(u8::try_from(of).unwrap_or_default());
            }
            self.world.pass(5_000);
        }
    }

    fn watch_by(&mut self, of: u8, times: u8) {
        for _ in 0..times {
            self.tell(of);
            self.world.pass(5_000);
        }
    }

    fn arrives(&mut self, of: u8) {
        if let Some(letter) = pick(&self.letters, of).cloned() {
            self.read(letter);
        }
    }

    fn read(&mut self, letter: Letter) {
        if letter.report.alive_at().is_some() {
            let world = &mut self.world;
            world.told_boot = world.told_boot.max(letter.boot.unwrap_or_default());
            world.told_alive_at = letter
                .heard_at
                .map_or(world.told_alive_at, |at| at.max(world.told_alive_at));
        }
        drop(self.world.report(letter.report));
    }

    fn source_restarts(&mut self, of: u8) {
        let real = self.world.real;
        let count = self.ears.len();
        if let Some(ear) = self.ears.get_mut(usize::from(of) % count.max(1)) {
            ear.since = real;
            self.world.site.forget_heard(&ear.source.name);
        }
    }

    /// Engines follow one clock, and differ a little. None decides before what another one has decided.
    fn other_engine(&mut self, ahead_ms: i64) {
        let offset = TimeDelta::milliseconds(ahead_ms);
        let now = self.world.now - self.offset + offset;
        self.offset = offset;
        self.world.now = now.max(self.world.last_decided);
        self.offset += self.world.now - now;
    }
}

fn pick<T>(of: &[T], number: u8) -> Option<&T> {
    of.get(usize::from(number) % of.len().max(1))
}

/// A worker of the process before claims its newest message.
pub fn former_takes(former: &mut World) -> Result<(), Refusal> {
    let Some(newest) = former.sent.len().checked_sub(1) else {
        return Ok(());
    };
    former.deliver(newest, "worker-2").map(drop)
}

/// The newest message that can be claimed is claimed.
fn take(world: &mut World) -> Option<usize> {
    let newest = (0..world.sent.len()).rev().take(8);
    let mut newest = newest.collect::<Vec<_>>().into_iter();
    newest.find_map(|index| world.deliver(index, "worker-1").ok())
}

/// A worker reports once, after it has stopped; from then on it does nothing more.
fn finish(world: &mut World, job: usize) -> Option<usize> {
    let message = world.finish(job);
    world.jobs[job].stops_at = world.real;
    message
}

/// The newest message that can be claimed goes the whole way.
fn work(world: &mut World) -> bool {
    let Some(job) = take(world) else { return false };
    world.command(job);
    world.pass(200);
    if let Some(result) = finish(world, job) {
        world.deliver_result(result);
    }
    true
}

/// Done by hand, and said, if the word will be heard.
pub fn release(world: &mut World, of: u8) {
    let Some(name) = pick(&world.state.host.applied.fencing, of).map(|standing| standing.method.name.clone())
    else {
        return;
    };
    let generation = world.state.host.generation.0;
    let is_heard = world
        .clone()
        .released(generation, &[&name], plans::admin("otto"))
        .is_ok();
    if is_heard {
        world.site.reconnect(&name);
        drop(world.released(generation, &[&name], plans::admin("otto")));
    }
}
