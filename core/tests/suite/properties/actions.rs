//! Arbitrary histories: actions of people, monitors, workers, messages and clocks on a host, in any order.

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use ringfence_core::*;

use ringfence_world::plans::person;
use ringfence_world::{Heard, Manner, World};

/// The sources whose reports are true.
const SOURCES: [&str; 2] = ["monitor", "probe"];

/// One action.
#[derive(Clone, Debug)]
pub enum Action {
    Fence,
    Rejoin {
        boot_confirmed: bool,
    },
    Evacuate,
    /// Makes this number of the nine other hosts silent.
    OthersFail(u8),
    /// Stops or starts the backend's answers.
    CloudGoesAway(bool),
    /// Fills the other hosts up, or makes room on them.
    RoomGoes(bool),
    /// A person confirms the fence, truly or not.
    Say {
        generation_off_by: i8,
        is_admin: bool,
        override_up: bool,
    },
    /// A person unplugs the host and confirms the fence.
    PullAndSay,
    /// A person gives something back by hand, as far as possible, and an admin or another user confirms it.
    Release {
        of: Index,
        is_admin: bool,
    },
    Cancel,
    CancelAnOldOne,
    Retry,
    /// Opens or cuts a source's link to the host. The source reports what it hears, possibly late.
    SeeTruly {
        by: u8,
        link: bool,
        boot: Told,
        late_ms: u32,
    },
    /// Every source that has reported before reports every five seconds, this number of times.
    Watch(u8),
    /// A source reports any state, observed some seconds ago.
    Report {
        state: FailureState,
        age_s: i8,
        boot: Option<u8>,
    },
    /// A person removes a source.
    ForgetSource(u8),
    /// Any message reaches a worker, which claims it and does no more.
    Deliver(Index),
    Busy(Index),
    Renew(Index),
    /// A worker sends its command to the device.
    Command(Index),
    /// A worker reads the device and sends its result.
    Finish(Index),
    /// Any result arrives, for the first time or again.
    Arrive(Index),
    /// The newest message reaches a worker, which claims it and does no more.
    Take,
    /// The newest message is claimed and carried out, and its result arrives.
    Work,
    /// Honest workers carry out all messages until none is left.
    WorkOff,
    /// A forged or wrong result arrives.
    Forge {
        of: Index,
        lie: Lie,
    },
    Pass(u32),
    PassUnseen(u32),
    Tick,
    /// Workers start or stop taking tasks from the queue of power.
    LineMoves(bool),
    BrokerGoesAway,
    MoveClock(i32),
    /// A person switches the host on.
    PowerReturns,
    /// The host's kernel crashes; the host starts again by itself, or not.
    Crash(bool),
}

/// What a source reports about the boot that it hears.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    Nothing,
    Id,
    /// The id, and the date by the host's clock, which is this number of seconds ahead.
    Dated(i8),
    /// The date without an id.
    DateAlone(i8),
}

/// The error of a wrong result.
#[derive(Clone, Copy, Debug)]
pub enum Lie {
    Host,
    Operation,
    Number,
    Generation,
    Kind,
    Worker,
    ClaimId,
    /// Only the observation is wrong: success without an observation.
    NothingRead,
    /// Success with another observed state.
    WrongState,
}

impl Lie {
    pub const IN_THE_NAME: [Self; 7] = [
        Self::Host,
        Self::Operation,
        Self::Number,
        Self::Generation,
        Self::Kind,
        Self::Worker,
        Self::ClaimId,
    ];
}

/// Which actions a property needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truthfulness {
    /// All actions.
    Any,
    /// Monitors and people are truthful, and no clock is set.
    Truthful,
}

pub fn history(truthfulness: Truthfulness) -> BoxedStrategy<Vec<Action>> {
    let rest = proptest::collection::vec(action(truthfulness), 1..60);
    (select(beginnings()), rest)
        .prop_map(|(beginning, rest)| beginning.into_iter().chain(rest).collect())
        .boxed()
}

/// Starts in interesting states, which random actions rarely reach.
fn beginnings() -> Vec<Vec<Action>> {
    let see = |link, boot| Action::SeeTruly {
        by: 0,
        link,
        boot,
        late_ms: 0,
    };
    let rejoin = || Action::Rejoin {
        boot_confirmed: false,
    };
    let silent = || vec![see(true, Told::Dated(0)), see(false, Told::Id)];
    let lost = |more: Vec<Action>| [silent(), more].concat();
    let and =
        |more: Vec<Action>| lost([vec![Action::Fence, Action::WorkOff, Action::Pass(30_000)], more].concat());
    let back = |boot| {
        vec![
            Action::PowerReturns,
            Action::Crash(true),
            Action::Pass(5_000),
            see(true, boot),
        ]
    };
    let moving = || vec![Action::Evacuate, Action::Work, Action::Work];
    vec![
        Vec::new(),
        lost(vec![Action::Fence]),
        lost(vec![Action::Fence, Action::Take]),
        lost(vec![Action::Fence, Action::Watch(20)]),
        lost(vec![
            Action::Fence,
            Action::Work,
            Action::Pass(120_000),
            Action::PowerReturns,
        ]),
        and(Vec::new()),
        and(moving()),
        and([moving(), vec![Action::Take, Action::Cancel, rejoin()]].concat()),
        and([moving(), vec![Action::Take], back(Told::Id)].concat()),
        and(vec![see(true, Told::Id), rejoin(), Action::Work]),
        and([back(Told::Dated(0)), vec![rejoin(), Action::Take]].concat()),
        and(vec![rejoin(), Action::Take]),
        and(vec![rejoin(), Action::Take, Action::Cancel]),
        and([back(Told::Id), silent(), vec![Action::Fence]].concat()),
        and([back(Told::Dated(0)), vec![rejoin(), Action::Pass(300_000)]].concat()),
        and(vec![rejoin(), Action::Work, Action::Pass(200_000), Action::Fence]),
        and(vec![
            rejoin(),
            Action::Work,
            Action::Pass(5_000),
            see(true, Told::Dated(0)),
            Action::WorkOff,
        ]),
    ]
}

fn told() -> impl Strategy<Value = Told> + Clone {
    // The largest error of a host's clock that the rules allow for.
    let skew_s = || -9..10_i8;
    prop_oneof![
        2 => Just(Told::Nothing),
        3 => Just(Told::Id),
        3 => skew_s().prop_map(Told::Dated),
        1 => skew_s().prop_map(Told::DateAlone),
    ]
}

fn see() -> impl Strategy<Value = Action> {
    let late_ms = prop_oneof![3 => Just(0), 1 => 1..20_000_u32];
    let by = prop_oneof![3 => Just(0_u8), 1 => Just(1_u8)];
    (by, any::<bool>(), told(), late_ms).prop_map(|(by, link, boot, late_ms)| Action::SeeTruly {
        by,
        link,
        boot,
        late_ms,
    })
}

fn action(truthfulness: Truthfulness) -> BoxedStrategy<Action> {
    let index = any::<Index>;
    let common = prop_oneof![
        6 => Just(Action::Fence),
        4 => any::<bool>().prop_map(|boot_confirmed| Action::Rejoin { boot_confirmed }),
        4 => Just(Action::Evacuate),
        1 => any::<bool>().prop_map(Action::CloudGoesAway),
        1 => (0..8_u8).prop_map(Action::OthersFail),
        1 => any::<bool>().prop_map(Action::RoomGoes),
        1 => Just(Action::PullAndSay),
        2 => (index(), any::<bool>()).prop_map(|(of, is_admin)| Action::Release { of, is_admin }),
        2 => Just(Action::Cancel),
        1 => Just(Action::CancelAnOldOne),
        2 => Just(Action::Retry),
        5 => see(),
        1 => (1..15_u8).prop_map(Action::Watch),
        6 => index().prop_map(Action::Deliver),
        1 => index().prop_map(Action::Busy),
        1 => index().prop_map(Action::Renew),
        5 => index().prop_map(Action::Command),
        4 => index().prop_map(Action::Finish),
        4 => index().prop_map(Action::Arrive),
        4 => Just(Action::Take),
        10 => Just(Action::Work),
        2 => Just(Action::WorkOff),
        5 => (0..3_000_u32).prop_map(Action::Pass),
        4 => (3_000..60_000_u32).prop_map(Action::Pass),
        1 => (60_000..700_000_u32).prop_map(Action::Pass),
        1 => (0..60_000_u32).prop_map(Action::PassUnseen),
        1 => Just(Action::Tick),
        1 => any::<bool>().prop_map(Action::LineMoves),
        1 => Just(Action::BrokerGoesAway),
        1 => Just(Action::PowerReturns),
        1 => any::<bool>().prop_map(Action::Crash),
    ];
    if truthfulness == Truthfulness::Truthful {
        return common.boxed();
    }
    let boot = || proptest::option::of(0..3_u8);
    let state = || select(FailureState::ALL.to_vec());
    let lies = || {
        let all: Vec<Lie> = Lie::IN_THE_NAME
            .into_iter()
            .chain([Lie::NothingRead, Lie::WrongState])
            .collect();
        select(all)
    };
    prop_oneof![
        14 => common,
        1 => (-1..2_i8, any::<bool>(), any::<bool>()).prop_map(|(generation_off_by, is_admin, override_up)| Action::Say {
            generation_off_by,
            is_admin,
            override_up
        }),
        2 => (state(), -5..20_i8, boot()).prop_map(|(state, age_s, boot)| Action::Report { state, age_s, boot }),
        1 => (0..3_u8).prop_map(Action::ForgetSource),
        2 => (index(), lies()).prop_map(|(of, lie)| Action::Forge { of, lie }),
        1 => prop_oneof![Just(86_400), Just(-86_400), -100..100_i32].prop_map(Action::MoveClock),
    ]
    .boxed()
}

/// Carries out an action. An impossible action does nothing.
pub fn act(world: &mut World, action: &Action) {
    match action {
        Action::Fence => drop(world.fence()),
        Action::Evacuate => drop(world.evacuate()),
        Action::OthersFail(number) => {
            world.others.out_of_service = u64::from(*number);
            world.others.lately = u64::from(*number);
        }
        Action::CloudGoesAway(is_away) => world.cloud.is_away = *is_away,
        Action::RoomGoes(goes) => {
            world.cloud.open.clear();
            if !goes {
                world.cloud.open.insert("compute2".to_owned());
            }
        }
        Action::Rejoin { boot_confirmed } => {
            if matches!(world.rejoin(*boot_confirmed), Ok(Reply::Started(_))) {
                world.site.plug(true);
                world.settle();
            }
        }
        Action::Say {
            generation_off_by,
            is_admin,
            override_up,
        } => {
            let generation = i64::from(world.state.host.generation.0) + i64::from(*generation_off_by);
            let actor = Actor {
                is_admin: *is_admin,
                ..person("otto")
            };
            drop(world.confirm(u32::try_from(generation).unwrap_or(99), actor, *override_up));
        }
        Action::PullAndSay => unplug_and_confirm(world),
        Action::Release { of, is_admin } => release(world, of, *is_admin),
        Action::Cancel => drop(world.cancel()),
        Action::CancelAnOldOne => cancel_an_old_one(world),
        Action::Retry => drop(world.retry()),
        Action::SeeTruly {
            by,
            link,
            boot,
            late_ms,
        } => see_truly(world, (SOURCES[usize::from(*by)], *link), *boot, *late_ms),
        Action::Watch(times) => watch(world, *times),
        Action::Report { state, age_s, boot } => report(world, *state, *age_s, *boot),
        Action::ForgetSource(of) => forget_source(world, *of),
        Action::Deliver(index) => {
            if !world.sent.is_empty() {
                drop(world.deliver(index.index(world.sent.len()), "worker-1"));
            }
        }
        Action::Busy(index) => {
            if !world.sent.is_empty() {
                let dispatch = index.get(&world.sent).clone();
                let claim = world.claim_for(&dispatch, "worker-2");
                drop(world.give(Input::DeviceBusy(claim)));
            }
        }
        Action::Renew(index) => {
            if !world.jobs.is_empty() {
                let claim = index.get(&world.jobs).claim.clone();
                drop(world.give(Input::Renew(claim)));
            }
        }
        Action::Command(index) => {
            if !world.jobs.is_empty() {
                world.command(index.index(world.jobs.len()));
            }
        }
        Action::Finish(index) => {
            if !world.jobs.is_empty() {
                let job = index.index(world.jobs.len());
                finish(world, job);
            }
        }
        Action::Arrive(index) => {
            if !world.results.is_empty() {
                world.deliver_result(index.index(world.results.len()));
            }
        }
        Action::Take => drop(take(world)),
        Action::Work => drop(work(world)),
        // Tasks of lying devices would be repeated without end.
        Action::WorkOff => drop((0..20).take_while(|_| work(world)).count()),
        Action::Forge { of, lie } => forge(world, of, *lie),
        Action::Pass(milliseconds) => world.pass(i64::from(*milliseconds)),
        Action::PassUnseen(milliseconds) => world.pass_unseen(i64::from(*milliseconds)),
        Action::Tick => world.tick(),
        Action::LineMoves(moves) => world.line_moves(*moves),
        Action::BrokerGoesAway => world.broker_goes_away(),
        Action::MoveClock(seconds) => world.move_clock(i64::from(*seconds)),
        Action::PowerReturns => {
            world.site.restore_power();
            world.settle();
        }
        Action::Crash(reboots) => {
            world.site.crash(*reboots);
            world.settle();
        }
    }
}

fn name_of_boot(boot: u32) -> String {
    format!("boot-{boot}")
}

/// The confirmation is true, except for accepted writes, for which the segment waits, and except while something is being given back to
/// the host: then the rules must refuse it.
fn unplug_and_confirm(world: &mut World) {
    world.site.plug(false);
    world.settle();
    let before = world.is_hearsay;
    let said = world.confirm(world.state.host.generation.0, person("anna"), false);
    world.is_hearsay = before || (said.is_ok() && world.site.running);
}

/// The present report of a truthful source, and the sign of life in it. A source without boots does not report when it last heard the
/// host either.
fn look(world: &World, source: &str, boot: Told) -> (Report, Option<Heard>) {
    let offset = world.now - world.real;
    let is_up = world.site.is_heard_by(source);
    let heard = world.site.heard_by(source);
    let last_seen = heard.filter(|_| !is_up && !matches!(boot, Told::Nothing));
    let now = heard.filter(|_| is_up);
    let report = Report {
        state: now.map_or(FailureState::Unreachable, |_| FailureState::Up),
        source: source.to_owned(),
        observed_at: world.now,
        last_seen_at: last_seen.map(|heard| heard.at + offset),
        silent_since: None,
        boot: now.and_then(|heard| as_told(heard, boot, offset)),
    };
    (report, now.or(last_seen))
}

fn as_told(heard: Heard, boot: Told, offset: TimeDelta) -> Option<Boot> {
    let date = |skew_s: i8| Some(heard.booted_at + offset + TimeDelta::seconds(i64::from(skew_s)));
    let name = Some(name_of_boot(heard.boot));
    let (id, booted_at) = match boot {
        Told::Nothing => return None,
        Told::Id => (name, None),
        Told::Dated(skew_s) => (name, date(skew_s)),
        Told::DateAlone(skew_s) => (None, date(skew_s)),
    };
    Some(Boot { id, booted_at })
}

fn tell(world: &mut World, (report, heard): (Report, Option<Heard>)) {
    if let Some(heard) = heard {
        world.told_boot = world.told_boot.max(heard.boot);
        world.told_alive_at = world.told_alive_at.max(heard.at);
    }
    drop(world.report(report));
}

/// Two observations never have equal times. A source's first report is never late: it has no earlier report that would count meanwhile.
fn see_truly(world: &mut World, (source, link): (&str, bool), boot: Told, late_ms: u32) {
    world.pass(1);
    world.site.link(source, link);
    world.settle();
    let is_first = world.state.host.sources.get(source).is_none();
    let letter = look(world, source, boot);
    if !is_first {
        world.pass(i64::from(late_ms));
    }
    tell(world, letter);
}

fn watch(world: &mut World, times: u8) {
    for _ in 0..times {
        world.pass(5_000);
        for source in SOURCES {
            if world.state.host.sources.get(source).is_some() {
                let letter = look(world, source, Told::Id);
                tell(world, letter);
            }
        }
    }
}

fn forget_source(world: &mut World, of: u8) {
    let names = ["monitor", "probe", "gossip"];
    let input = Input::ForgetSource {
        source: names[usize::from(of)].to_owned(),
        reason: "the source is gone".to_owned(),
        actor: person("otto"),
    };
    drop(world.give(input));
}

/// Gives back by hand first, if the rules will accept the confirmation.
fn release(world: &mut World, of: &Index, is_admin: bool) {
    let standing = &world.state.host.applied.fencing;
    if standing.is_empty() {
        return;
    }
    let name = of.get(standing).method.name.clone();
    let generation = world.state.host.generation.0;
    let actor = Actor {
        is_admin,
        ..person("otto")
    };
    let is_heard = world
        .clone()
        .released(generation, &[&name], actor.clone())
        .is_ok();
    if is_heard {
        world.site.reconnect(&name);
    }
    drop(world.released(generation, &[&name], actor));
}

/// A worker reports once, when it has stopped. It reads only after its command: a device that shows an old state would mislead it
/// otherwise.
fn finish(world: &mut World, job: usize) -> Option<usize> {
    if let Manner::Stale(_) = world.site.manner(&world.jobs[job].work.by()) {
        world.command(job);
    }
    let message = world.finish(job);
    world.jobs[job].stops_at = world.real;
    message
}

/// Claims the newest message that can be claimed.
fn take(world: &mut World) -> Option<usize> {
    let mut newest_first = (0..world.sent.len()).rev();
    newest_first.find_map(|index| world.deliver(index, "worker-1").ok())
}

/// Claims and carries out the newest message that can be claimed, and delivers the result.
fn work(world: &mut World) -> bool {
    let Some(job) = take(world) else { return false };
    world.command(job);
    world.pass(100);
    if let Some(result) = finish(world, job) {
        world.deliver_result(result);
    }
    true
}

fn cancel_an_old_one(world: &mut World) {
    let Some(dispatch) = world.sent.first() else {
        return;
    };
    let cancel = Input::Cancel {
        operation_id: dispatch.attempt.operation_id,
        reason: "late".to_owned(),
        actor: person("anna"),
    };
    drop(world.give(cancel));
}

fn report(world: &mut World, state: FailureState, age_s: i8, boot: Option<u8>) {
    let observed_at = world.now - TimeDelta::seconds(i64::from(age_s));
    let boot = boot.map(|boot| Boot {
        id: (boot > 0).then(|| name_of_boot(boot.into())),
        booted_at: Some(observed_at - TimeDelta::seconds(i64::from(boot) * 10)),
    });
    drop(world.say("gossip", state, i64::from(age_s) * 1_000, boot));
}

fn forge(world: &mut World, of: &Index, lie: Lie) {
    if world.jobs.is_empty() {
        return;
    }
    let claim = of.get(&world.jobs).claim.clone();
    let wanted = wanted(claim.kind);
    let mut result = TaskResult {
        claim,
        outcome: Outcome::Confirmed,
        observation: Some(Observation {
            state: wanted,
            detail: "believe me".to_owned(),
            observed_at: world.now,
            after_ms: 0,
            before: None,
            proves: true,
        }),
        finding: None,
        detail: String::new(),
    };
    let another = world.next_id();
    match lie {
        Lie::Host => result.claim.host_id = HostId(another),
        Lie::Operation => result.claim.attempt.operation_id = OperationId(another),
        Lie::Number => result.claim.attempt.number += 7,
        Lie::Generation => result.claim.generation = result.claim.generation.next(),
        Lie::Kind => {
            let kinds: Vec<_> = TaskKind::all()
                .filter(|kind| *kind != result.claim.kind)
                .collect();
            result.claim.kind = kinds[of.index(kinds.len())];
        }
        Lie::Worker => "worker-3".clone_into(&mut result.claim.worker),
        Lie::ClaimId => result.claim.claim_id = another,
        Lie::NothingRead => result.observation = None,
        Lie::WrongState => {
            let state = if wanted == ObservedState::Off {
                ObservedState::On
            } else {
                ObservedState::Unknown
            };
            result.observation = result.observation.map(|o| Observation { state, ..o });
        }
    }
    drop(world.give(Input::Result(result)));
}

/// The state that must be read back, independent of the code under test.
pub fn wanted(kind: TaskKind) -> ObservedState {
    match kind {
        TaskKind::Fencing(FencingKind::PowerOff) => ObservedState::Off,
        TaskKind::Fencing(FencingKind::PowerOn) => ObservedState::On,
        TaskKind::Fencing(FencingKind::StorageFence | FencingKind::NetworkFence) => ObservedState::Fenced,
        TaskKind::Fencing(FencingKind::StorageUnfence | FencingKind::NetworkUnfence) => {
            ObservedState::Unfenced
        }
        TaskKind::Step(_) => ObservedState::Done,
    }
}

/// The world after these actions.
pub fn live_through(mut world: World, actions: &[Action]) -> World {
    for action in actions {
        act(&mut world, action);
    }
    world
}
