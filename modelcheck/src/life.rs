//! A state as it is, and what happens in it.

use std::sync::Arc;

use chrono::TimeDelta;
use ringfence_core::{
    AttemptStatus, Claim, FencingState, Generation, Input, Operation, OperationStatus, TaskKind, Timestamp,
};
use ringfence_world::search::{Ear, Letter, Word, former_takes, release, unplug_and_confirm};
use ringfence_world::{World, plans};
use uuid::Uuid;

use crate::{Action, Chance, Chances, Configuration, Wrong};

/// By how much the clocks of two engines differ, in milliseconds.
const APART_MS: i16 = 500;
/// By how much the clock is set, in seconds.
const SET_BY_S: i16 = 40;
/// How long no engine is there, if nothing changes by itself.
const AWAY: TimeDelta = TimeDelta::seconds(31);

/// The world and everything around it.
#[derive(Clone, Debug)]
pub struct Life {
    /// The world.
    pub world: World,
    /// Those who watch the host.
    pub ears: Arc<[Ear]>,
    /// Reports that are on their way.
    pub letters: Vec<Letter>,
    /// What persons have written down, and no engine has read.
    pub words: Vec<Word>,
    /// The claims whose workers have commanded their devices.
    pub acted: Vec<Uuid>,
    /// By how much the clock of the engine that decides is ahead.
    pub offset: TimeDelta,
    /// What may still happen.
    pub left: Chances,
    /// A rejoin has taken the host back.
    pub was_taken_back: bool,
    /// What must never be, and was.
    pub wrong: Option<Wrong>,
    pub(crate) configuration: Arc<Configuration>,
}

impl Life {
    /// How a configuration begins.
    #[must_use]
    pub fn new(configuration: &Arc<Configuration>) -> Self {
        let setting = &configuration.setting;
        let mut world = setting.world();
        if configuration.chances.left(Chance::TakeOver) > 0 {
            world.keep_records();
        }
        let since = world.real - TimeDelta::hours(1);
        let ear = |source: &ringfence_world::search::SimSource| Ear {
            source: source.clone(),
            since,
        };
        let mut life = Self {
            ears: setting.sources.iter().map(ear).collect(),
            letters: Vec::new(),
            words: Vec::new(),
            acted: Vec::new(),
            offset: TimeDelta::zero(),
            left: configuration.chances,
            was_taken_back: false,
            wrong: None,
            configuration: Arc::clone(configuration),
            world,
        };
        life.begin();
        life
    }

    /// Every source has told of the host once, as in the random search: one that has not is not known to be one.
    fn begin(&mut self) {
        self.advance(TimeDelta::seconds(1));
        for of in 0..self.ears.len() {
            self.tell(of);
        }
        let configuration = Arc::clone(&self.configuration);
        for action in &configuration.beginning {
            assert!(self.act(*action), "{}: {action:?}", configuration.name);
            self.forget_what_is_dead();
        }
        self.world.log.clear();
    }

    /// What happens next. `false` if it cannot, or changes nothing.
    pub fn happen(&mut self, action: Action) -> bool {
        if action.costs().is_some_and(|chance| !self.left.take(chance)) {
            return false;
        }
        let generation = self.world.state.host.generation;
        let fencing_state = self.world.state.host.fencing_state();
        let was_rejoin = self.is_rejoining();
        if !self.act(action) {
            return false;
        }
        self.world.settle();
        self.judge(generation, fencing_state, was_rejoin);
        self.forget_what_is_dead();
        true
    }

    fn is_rejoining(&self) -> bool {
        let live = self.world.state.operation.as_ref();
        live.is_some_and(|live| live.kind() == ringfence_core::OperationKind::Rejoin)
    }

    /// What is to be seen of the step itself.
    fn judge(&mut self, generation: Generation, fencing_state: FencingState, was_rejoin: bool) {
        let host = &self.world.state.host;
        let is_lost = fencing_state == FencingState::Fenced && host.fence.is_none();
        let own = if host.generation < generation {
            Some(Wrong::Forgotten("a generation was taken back"))
        } else if is_lost && !(was_rejoin || host.generation > generation) {
            Some(Wrong::Forgotten("FENCED ended without a rejoin"))
        } else {
            self.world.violation.map(Wrong::Violation)
        };
        self.was_taken_back |= is_lost;
        self.wrong = self.wrong.take().or(own);
    }

    fn act(&mut self, action: Action) -> bool {
        let world = &mut self.world;
        let place = usize::from;
        match action {
            Action::Fence => world.fence().is_ok(),
            Action::Rejoin => world.rejoin(false).is_ok(),
            Action::Evacuate => world.evacuate().is_ok(),
            Action::Cancel => world.cancel().is_ok(),
            Action::Retry => world.retry().is_ok(),
            Action::Say => {
                unplug_and_confirm(world);
                true
            }
            Action::Lie => {
                let generation = world.state.host.generation.0;
                world.confirm(generation, plans::admin("otto"), true).is_ok()
            }
            Action::SayLate => self.say_late(),
            Action::Write => {
                self.words.push(Word::written(world));
                true
            }
            Action::Read(at) => {
                self.words.remove(place(at)).is_heard(world);
                true
            }
            Action::PlugIn => {
                world.site.plug(true);
                true
            }
            Action::Release(of) => {
                release(world, of);
                true
            }
            Action::Cut(of) | Action::Heal(of) => {
                let name = &self.ears[place(of)].source.name;
                world.site.link(name, matches!(action, Action::Heal(_)));
                true
            }
            Action::Tell(of) => self.tell(place(of)),
            Action::Post(of) => {
                let letter = self.ears[place(of)].look(&self.world, self.configuration.setting.host_skew_ms);
                self.letters.push(letter);
                true
            }
            Action::Hear(at) => {
                let letter = self.letters.remove(place(at));
                self.read(letter);
                true
            }
            Action::Take(at) => self.take(place(at)).is_some(),
            Action::Command(at) => self.command(place(at)),
            Action::Finish(at) => self.finish(place(at)),
            Action::Arrive(at) => {
                world.deliver_result(place(at));
                world.results.remove(place(at));
                true
            }
            Action::ArriveTwice(at) => {
                world.deliver_result(place(at));
                true
            }
            Action::Work(at) => self.work(place(at)),
            Action::Tick => {
                world.tick();
                true
            }
            Action::Step => self.step(),
            Action::Pause => {
                self.advance(TimeDelta::milliseconds(self.configuration.pause_ms));
                true
            }
            Action::Unseen => {
                let by = self.until_something().unwrap_or(AWAY);
                self.advance(by);
                true
            }
            Action::Die | Action::Reboot => {
                world.site.crash(action == Action::Reboot);
                true
            }
            Action::StartAgain => world.site.start_again(),
            Action::Send => world.send_kdump(),
            Action::HearMessage(at) => {
                world.hear_kdump(place(at));
                world.datagrams.remove(place(at));
                true
            }
            Action::TellMessage(at) => {
                let told = world.tell_kdump(place(at));
                world.kdump_heard.remove(place(at));
                told.is_ok()
            }
            Action::TellMessageTwice(at) => world.tell_kdump(place(at)).is_ok(),
            Action::Stranger => {
                world.site.restore_power();
                true
            }
            Action::Engine(ahead_ms) => {
                self.other_engine(TimeDelta::milliseconds(i64::from(ahead_ms)));
                true
            }
            Action::Clock(seconds) => {
                world.move_clock(i64::from(seconds));
                world.state.clock_set_at = Some(world.now);
                let host = &mut world.state.host;
                host.updated_at = host.updated_at.min(world.now);
                // An engine looks at all hosts then.
                world.wake_at = Some(world.now);
                true
            }
            Action::Cloud => {
                world.cloud.is_away = !world.cloud.is_away;
                true
            }
            Action::Forget => {
                world.forget();
                true
            }
            Action::TakeOver => {
                world.take_over();
                true
            }
            Action::FormerTells(of) => {
                let letter = self.ears[place(of)].look(world, self.configuration.setting.host_skew_ms);
                world.as_former(|former| former.report(letter.report).map(drop));
                true
            }
            Action::FormerTakes => {
                world.as_former(former_takes);
                true
            }
            Action::FormerTicks => {
                world.as_former(|former| former.give(Input::tick()).map(drop));
                true
            }
        }
    }

    /// A word for another generation excuses nothing: it has to be refused.
    fn say_late(&mut self) -> bool {
        let Some(before) = self.world.state.host.generation.0.checked_sub(1) else {
            return false;
        };
        let is_hearsay = self.world.is_hearsay;
        let said = self.world.confirm(before, plans::admin("otto"), false);
        self.world.is_hearsay = is_hearsay;
        said.is_ok()
    }

    fn tell(&mut self, of: usize) -> bool {
        let letter = self.ears[of].look(&self.world, self.configuration.setting.host_skew_ms);
        self.read(letter)
    }

    /// A report arrives, and the judge takes note of which sign of life has arrived with it.
    fn read(&mut self, letter: Letter) -> bool {
        let world = &mut self.world;
        if letter.report.alive_at().is_some() {
            world.told_boot = world.told_boot.max(letter.boot.unwrap_or_default());
            let heard_at = letter.heard_at.unwrap_or(world.told_alive_at);
            world.told_alive_at = world.told_alive_at.max(heard_at);
        }
        world.report(letter.report).is_ok()
    }

    /// A worker gets a message and claims it.
    fn take(&mut self, at: usize) -> Option<usize> {
        let job = self.world.deliver(at, "worker-1").ok()?;
        self.world.sent.remove(at);
        let real = self.world.real;
        let own = &self.world.jobs[job];
        let mut others = self.world.jobs.iter().filter(|other| other.stops_at > real);
        if others.any(|other| are_opposites(&other.claim, &own.claim)) {
            self.wrong = Some(Wrong::Opposites);
        }
        Some(job)
    }

    fn command(&mut self, at: usize) -> bool {
        let claim_id = self.world.jobs[at].claim.claim_id;
        self.acted.push(claim_id);
        // One that may not go on any more has stopped by that.
        self.world.command(at);
        true
    }

    fn finish(&mut self, at: usize) -> bool {
        let is_sent = self.world.finish(at).is_some();
        self.world.jobs.remove(at);
        is_sent
    }

    fn work(&mut self, at: usize) -> bool {
        let Some(job) = self.take(at) else { return false };
        if self.command(job) && self.finish(job) {
            let last = self.world.results.len() - 1;
            self.world.deliver_result(last);
            self.world.results.remove(last);
        }
        true
    }

    fn step(&mut self) -> bool {
        let Some(by) = self.until_something() else {
            return false;
        };
        self.advance(by);
        if self.is_due() {
            self.world.tick();
        }
        true
    }

    /// Engines follow one clock, and differ a little. None decides before what another one has decided.
    fn other_engine(&mut self, offset: TimeDelta) {
        let world = &mut self.world;
        let now = world.now - self.offset + offset;
        self.offset = offset;
        world.now = now.max(world.last_decided);
        self.offset += world.now - now;
    }

    /// Drops what cannot have any effect any more: messages of attempts that cannot be claimed, workers that have stopped, results of
    /// attempts that are over.
    fn forget_what_is_dead(&mut self) {
        let world = &mut self.world;
        let live = world.state.operation.as_ref();
        world.sent.retain(|sent| {
            let found = live.and_then(|live| live.find(sent.attempt));
            found.is_some_and(|(_, attempt)| matches!(attempt.state, AttemptStatus::Dispatched { .. }))
        });
        let real = world.real;
        world.jobs.retain(|job| job.stops_at > real);
        let in_flight = &world.state.host.in_flight;
        world.results.retain(|result| {
            let claim = &result.claim;
            in_flight.iter().any(|f| f.attempt == claim.attempt) || is_awaited(live, claim)
        });
        // A word for another generation is refused.
        let generation = world.state.host.generation.0;
        self.words.retain(|word| word.generation == generation);
        let jobs = &world.jobs;
        self.acted
            .retain(|id| jobs.iter().any(|job| job.claim.claim_id == *id));
    }

    /// Everything that may happen next.
    pub fn actions(&self, actions: &mut Vec<Action>) {
        self.persons(actions);
        self.sources(actions);
        self.workers(actions);
        self.nature(actions);
        actions.retain(|action| action.costs().is_none_or(|chance| self.left.left(chance) > 0));
    }

    fn persons(&self, actions: &mut Vec<Action>) {
        let host = &self.world.state.host;
        let live = self.world.state.operation.as_ref();
        actions.extend([Action::Fence, Action::Rejoin, Action::Evacuate]);
        if live.is_some() {
            actions.push(Action::Cancel);
        }
        if live.is_some_and(|live| live.status == OperationStatus::NeedsOperator) {
            actions.push(Action::Retry);
        }
        actions.extend([Action::Say, Action::Lie, Action::SayLate, Action::Write]);
        actions.extend((0..).zip(&self.words).map(|(at, _)| Action::Read(at)));
        if !self.world.site.plugged {
            actions.push(Action::PlugIn);
        }
        actions.extend(
            (0..host.applied.fencing.len()).filter_map(|at| u8::try_from(at).ok().map(Action::Release)),
        );
    }

    fn sources(&self, actions: &mut Vec<Action>) {
        for (at, ear) in (0..).zip(self.ears.iter()) {
            let links = &self.world.site.links;
            let hears = links.get(&ear.source.name).copied().unwrap_or_default();
            actions.push(if hears { Action::Cut(at) } else { Action::Heal(at) });
            actions.extend([Action::Tell(at), Action::Post(at)]);
        }
        actions.extend((0..).zip(&self.letters).map(|(at, _)| Action::Hear(at)));
    }

    fn workers(&self, actions: &mut Vec<Action>) {
        let world = &self.world;
        for (at, sent) in (0..).zip(&world.sent) {
            let whole = self.configuration.at_a_stroke.contains(&sent.job.kind());
            actions.push(if whole { Action::Work(at) } else { Action::Take(at) });
        }
        for (at, job) in (0..).zip(&world.jobs) {
            let has_acted = self.acted.contains(&job.claim.claim_id);
            actions.push(if has_acted {
                Action::Finish(at)
            } else {
                Action::Command(at)
            });
        }
        for (at, _) in (0..).zip(&world.results) {
            actions.extend([Action::Arrive(at), Action::ArriveTwice(at)]);
        }
    }

    fn nature(&self, actions: &mut Vec<Action>) {
        let something = self.until_something();
        // The agent of a host that starts after a dump asks before its workloads start.
        let asks = self.configuration.chances.left(Chance::Send) > 0 && self.world.site.asks();
        if self.is_due() || asks {
            actions.push(Action::Tick);
        } else if something.is_some() {
            actions.push(Action::Step);
        }
        let pause = TimeDelta::milliseconds(self.configuration.pause_ms);
        if something.is_none_or(|after| after > pause) && !self.is_due() {
            actions.push(Action::Pause);
        }
        actions.extend([
            Action::Unseen,
            Action::Die,
            Action::Reboot,
            Action::StartAgain,
            Action::Send,
            Action::Stranger,
            Action::Cloud,
            Action::Forget,
            Action::TakeOver,
        ]);
        let world = &self.world;
        actions.extend((0..).zip(&world.datagrams).map(|(at, _)| Action::HearMessage(at)));
        for (at, _) in (0..).zip(&world.kdump_heard) {
            actions.extend([Action::TellMessage(at), Action::TellMessageTwice(at)]);
        }
        self.former(actions);
        let other = if self.offset > TimeDelta::zero() {
            -APART_MS
        } else {
            APART_MS
        };
        actions.extend([
            Action::Engine(other),
            Action::Clock(SET_BY_S),
            Action::Clock(-SET_BY_S),
        ]);
    }

    /// What the process before may do.
    fn former(&self, actions: &mut Vec<Action>) {
        let leading = self.world.records_kept.as_ref();
        if leading.is_some_and(|leading| leading.former.is_some()) {
            actions.extend((0..).zip(self.ears.iter()).map(|(at, _)| Action::FormerTells(at)));
            actions.extend([Action::FormerTakes, Action::FormerTicks]);
        }
    }

    /// The clock by which engines decide.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.world.now
    }

    /// Whether a kind of thing may still happen.
    #[must_use]
    pub fn may(&self, chance: Chance) -> bool {
        self.left.left(chance) > 0
    }
}

fn are_opposites(one: &Claim, other: &Claim) -> bool {
    let takes_or_gives = |kind: TaskKind| kind.takes() || kind.releases();
    one.kind.resource() == other.kind.resource()
        && takes_or_gives(one.kind)
        && takes_or_gives(other.kind)
        && one.kind.releases() != other.kind.releases()
}

/// Whether the claim is of an attempt that waits for its result.
fn is_awaited(live: Option<&Operation>, claim: &Claim) -> bool {
    let found = live.and_then(|live| live.find(claim.attempt));
    found.is_some_and(|(_, attempt)| matches!(attempt.state, AttemptStatus::Claimed { .. }))
}
