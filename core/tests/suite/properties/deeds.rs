//! Arbitrary histories: what people, monitors, workers, messages and clocks may do to a host, in any order.

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use ringfence_core::*;

use ringfence_world::World;
use ringfence_world::plans::person;

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Deed {
    Fence,
    Rejoin {
        boot_confirmed: bool,
    },
    Evacuate,
    /// So many of the nine others are silent.
    OthersFail(u8),
    /// The backend stops answering, or answers again.
    CloudGoesAway(bool),
    /// The other hosts fill up, or have room again.
    RoomGoes(bool),
    /// A person says so, whether it is true or not.
    Say {
        generation_off_by: i8,
        is_admin: bool,
        override_up: bool,
    },
    /// A person pulls the plugs and says so.
    PullAndSay,
    /// A person gives something back by hand, as far as that is possible, and an admin (or somebody who is none) says so.
    GiveBack {
        of: Index,
        is_admin: bool,
    },
    Cancel,
    CancelAnOldOne,
    Retry,
    /// A monitor reports what is so, now.
    SeeTruly {
        up: bool,
        boot: Option<u8>,
    },
    /// A monitor reports anything, observed some seconds ago.
    Report {
        state: FailureState,
        age_s: i8,
        boot: Option<u8>,
    },
    /// Some message reaches some worker, which claims it and does no more.
    Deliver(Index),
    Busy(Index),
    Renew(Index),
    /// A worker commands its device.
    Command(Index),
    /// A worker reads back and sends its result.
    Finish(Index),
    /// Some result arrives, for the first time or again.
    Arrive(Index),
    /// The newest message reaches a worker, which claims it and does no more.
    Take,
    /// The newest message goes the whole way.
    Work,
    /// Whatever is wanted is done, honestly, until nothing more is.
    WorkOff,
    /// Someone makes a result up.
    Forge {
        of: Index,
        lie: Lie,
    },
    Pass(u32),
    PassUnseen(u32),
    Tick,
    /// Workers begin to take tasks from the queue of power, or stop.
    LineMoves(bool),
    BrokerGoesAway,
    MoveClock(i32),
    /// The power supply switches the host on while the operation waits for a person.
    PowerReturns,
}

/// What is wrong with a result.
#[derive(Clone, Copy, Debug)]
pub enum Lie {
    Host,
    Operation,
    Number,
    Generation,
    Kind,
    Worker,
    ClaimId,
    /// Everything is right, but for what is said: success without anything read back.
    NothingRead,
    /// Success with another state read back.
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

/// Which deeds a property is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Customs {
    /// Anything goes.
    Any,
    /// Monitors and people speak the truth, and clocks run.
    Truthful,
}

pub fn history(customs: Customs) -> BoxedStrategy<Vec<Deed>> {
    let rest = proptest::collection::vec(deed(customs), 1..60);
    (select(beginnings()), rest)
        .prop_map(|(beginning, rest)| beginning.into_iter().chain(rest).collect())
        .boxed()
}

/// Places from which it gets interesting, and which chance alone seldom reaches.
fn beginnings() -> Vec<Vec<Deed>> {
    let see = |up, boot| Deed::SeeTruly { up, boot: Some(boot) };
    let rejoin = || Deed::Rejoin {
        boot_confirmed: false,
    };
    let fenced = || vec![see(false, 0), Deed::Fence, Deed::WorkOff, Deed::Pass(30_000)];
    let and = |more: Vec<Deed>| [fenced(), more].concat();
    vec![
        Vec::new(),
        vec![see(false, 0), Deed::Fence],
        vec![see(false, 0), Deed::Fence, Deed::Take],
        vec![
            see(false, 0),
            Deed::Fence,
            Deed::Work,
            Deed::Pass(120_000),
            Deed::PowerReturns,
        ],
        fenced(),
        and(vec![Deed::Evacuate, Deed::Work, Deed::Work]),
        and(vec![
            Deed::Evacuate,
            Deed::Work,
            Deed::Work,
            Deed::Take,
            Deed::Cancel,
            rejoin(),
        ]),
        and(vec![
            Deed::Evacuate,
            Deed::Work,
            Deed::Work,
            Deed::Take,
            see(true, 1),
        ]),
        and(vec![see(true, 0), rejoin(), Deed::Work]),
        and(vec![see(true, 1), rejoin(), Deed::Take]),
        and(vec![rejoin(), Deed::Take]),
        and(vec![rejoin(), Deed::Take, Deed::Cancel]),
        and(vec![see(true, 1), see(false, 1), Deed::Fence]),
        and(vec![see(true, 1), rejoin(), Deed::Pass(300_000)]),
        and(vec![rejoin(), Deed::Work, Deed::Pass(200_000), Deed::Fence]),
    ]
}

fn deed(customs: Customs) -> BoxedStrategy<Deed> {
    let index = any::<Index>;
    let boot = || proptest::option::of(0..3_u8);
    let common = prop_oneof![
        6 => Just(Deed::Fence),
        4 => any::<bool>().prop_map(|boot_confirmed| Deed::Rejoin { boot_confirmed }),
        4 => Just(Deed::Evacuate),
        1 => any::<bool>().prop_map(Deed::CloudGoesAway),
        1 => (0..8_u8).prop_map(Deed::OthersFail),
        1 => any::<bool>().prop_map(Deed::RoomGoes),
        1 => Just(Deed::PullAndSay),
        2 => (index(), any::<bool>()).prop_map(|(of, is_admin)| Deed::GiveBack { of, is_admin }),
        2 => Just(Deed::Cancel),
        1 => Just(Deed::CancelAnOldOne),
        2 => Just(Deed::Retry),
        4 => (any::<bool>(), boot()).prop_map(|(up, boot)| Deed::SeeTruly { up, boot }),
        6 => index().prop_map(Deed::Deliver),
        1 => index().prop_map(Deed::Busy),
        1 => index().prop_map(Deed::Renew),
        5 => index().prop_map(Deed::Command),
        4 => index().prop_map(Deed::Finish),
        4 => index().prop_map(Deed::Arrive),
        4 => Just(Deed::Take),
        10 => Just(Deed::Work),
        2 => Just(Deed::WorkOff),
        5 => (0..3_000_u32).prop_map(Deed::Pass),
        4 => (3_000..60_000_u32).prop_map(Deed::Pass),
        1 => (60_000..700_000_u32).prop_map(Deed::Pass),
        1 => (0..60_000_u32).prop_map(Deed::PassUnseen),
        1 => Just(Deed::Tick),
        1 => any::<bool>().prop_map(Deed::LineMoves),
        1 => Just(Deed::BrokerGoesAway),
        1 => Just(Deed::PowerReturns),
    ];
    if customs == Customs::Truthful {
        return common.boxed();
    }
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
        1 => (-1..2_i8, any::<bool>(), any::<bool>()).prop_map(|(generation_off_by, is_admin, override_up)| Deed::Say {
            generation_off_by,
            is_admin,
            override_up
        }),
        2 => (state(), -5..20_i8, boot()).prop_map(|(state, age_s, boot)| Deed::Report { state, age_s, boot }),
        2 => (index(), lies()).prop_map(|(of, lie)| Deed::Forge { of, lie }),
        1 => prop_oneof![Just(86_400), Just(-86_400), -100..100_i32].prop_map(Deed::MoveClock),
    ]
    .boxed()
}

/// Does it. What cannot be done is left.
pub fn act(world: &mut World, deed: &Deed) {
    match deed {
        Deed::Fence => drop(world.fence()),
        Deed::Evacuate => drop(world.evacuate()),
        Deed::OthersFail(number) => {
            world.others.out_of_service = u64::from(*number);
            world.others.lately = u64::from(*number);
        }
        Deed::CloudGoesAway(is_away) => world.cloud.is_away = *is_away,
        Deed::RoomGoes(goes) => {
            world.cloud.open.clear();
            if !goes {
                world.cloud.open.insert("compute2".to_owned());
            }
        }
        Deed::Rejoin { boot_confirmed } => {
            if matches!(world.rejoin(*boot_confirmed), Ok(Answer::Started(_))) {
                world.site.plugged = true;
                world.settle();
            }
        }
        Deed::Say {
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
        Deed::PullAndSay => {
            world.site.plugged = false;
            world.settle();
            // What somebody else is doing to the power this moment makes it untrue: then `decide` has to refuse.
            drop(world.confirm(world.state.host.generation.0, person("anna"), false));
        }
        Deed::GiveBack { of, is_admin } => give_back(world, of, *is_admin),
        Deed::Cancel => drop(world.cancel()),
        Deed::CancelAnOldOne => cancel_an_old_one(world),
        Deed::Retry => drop(world.retry()),
        Deed::SeeTruly { up, boot } => {
            if !*up || world.site.is_powered() {
                let state = if *up {
                    FailureState::Up
                } else {
                    FailureState::Unreachable
                };
                drop(world.see_boot(state, boot.map(name_of_boot).as_deref()));
            }
        }
        Deed::Report { state, age_s, boot } => report(world, *state, *age_s, *boot),
        Deed::Deliver(index) => {
            if !world.sent.is_empty() {
                drop(world.deliver(index.index(world.sent.len()), "worker-1"));
            }
        }
        Deed::Busy(index) => {
            if !world.sent.is_empty() {
                let dispatch = index.get(&world.sent).clone();
                let claim = world.claim_for(&dispatch, "worker-2");
                drop(world.give(Input::DeviceBusy(claim)));
            }
        }
        Deed::Renew(index) => {
            if !world.jobs.is_empty() {
                let claim = index.get(&world.jobs).claim.clone();
                drop(world.give(Input::Renew(claim)));
            }
        }
        Deed::Command(index) => {
            if !world.jobs.is_empty() {
                world.command(index.index(world.jobs.len()));
            }
        }
        Deed::Finish(index) => {
            if !world.jobs.is_empty() {
                let job = index.index(world.jobs.len());
                finish(world, job);
            }
        }
        Deed::Arrive(index) => {
            if !world.results.is_empty() {
                world.deliver_result(index.index(world.results.len()));
            }
        }
        Deed::Take => drop(take(world)),
        Deed::Work => drop(work(world)),
        // Devices that lie are tried again and again: an end has to be set.
        Deed::WorkOff => drop((0..20).take_while(|_| work(world)).count()),
        Deed::Forge { of, lie } => forge(world, of, *lie),
        Deed::Pass(milliseconds) => world.pass(i64::from(*milliseconds)),
        Deed::PassUnseen(milliseconds) => world.pass_unseen(i64::from(*milliseconds)),
        Deed::Tick => world.tick(),
        Deed::LineMoves(moves) => world.line_moves(*moves),
        Deed::BrokerGoesAway => world.broker_goes_away(),
        Deed::MoveClock(seconds) => world.move_clock(i64::from(*seconds)),
        Deed::PowerReturns => power_returns(world),
    }
}

fn name_of_boot(boot: u8) -> String {
    format!("boot-{boot}")
}

/// What may be refused is said first, so that only what was accepted is done.
fn give_back(world: &mut World, of: &Index, is_admin: bool) {
    let standing = &world.state.host.standing;
    if standing.is_empty() {
        return;
    }
    let name = of.get(standing).method.name.clone();
    let actor = Actor {
        is_admin,
        ..person("otto")
    };
    if world
        .given_back(world.state.host.generation.0, &[&name], actor)
        .is_ok()
    {
        world.site.reconnect(&name);
        world.settle();
    }
}

/// A worker reports once, after it has stopped; from then on it does nothing more.
fn finish(world: &mut World, job: usize) -> Option<usize> {
    let message = world.finish(job);
    world.jobs[job].stops_at = world.real;
    message
}

/// The newest message that can be claimed is claimed.
fn take(world: &mut World) -> Option<usize> {
    let mut newest_first = (0..world.sent.len()).rev();
    newest_first.find_map(|index| world.deliver(index, "worker-1").ok())
}

/// The newest message that can be claimed goes the whole way.
fn work(world: &mut World) -> bool {
    let Some(job) = take(world) else { return false };
    world.command(job);
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
    let input = Input::FailureState {
        operation_id: OperationId(world.next_id()),
        state,
        source: "gossip".to_owned(),
        observed_at,
        boot: boot.map(|boot| Boot {
            id: (boot > 0).then(|| name_of_boot(boot)),
            booted_at: Some(observed_at - TimeDelta::seconds(i64::from(boot) * 10)),
            observed_at,
        }),
    };
    drop(world.give(input));
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
            let kinds = TaskKind::ALL
                .into_iter()
                .filter(|kind| *kind != result.claim.kind);
            result.claim.kind = kinds.clone().nth(of.index(kinds.count())).unwrap();
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

/// What has to be read back, by the book and not by the code.
pub fn wanted(kind: TaskKind) -> ObservedState {
    match kind {
        TaskKind::PowerOff => ObservedState::Off,
        TaskKind::PowerOn => ObservedState::On,
        TaskKind::StorageFence | TaskKind::NetworkFence => ObservedState::Fenced,
        TaskKind::StorageUnfence | TaskKind::NetworkUnfence => ObservedState::Unfenced,
        TaskKind::WorkloadsForceDown => ObservedState::ForcedDown,
        TaskKind::WorkloadsForceUp => ObservedState::ForcedUp,
        TaskKind::WorkloadsList => ObservedState::Listed,
        TaskKind::WorkloadsMove => ObservedState::Moved,
        TaskKind::WorkloadsAddSpare => ObservedState::Enabled,
        TaskKind::WorkloadsCleanUp => ObservedState::Clean,
        TaskKind::WorkloadsStart => ObservedState::Started,
    }
}

fn power_returns(world: &mut World) {
    // A watchdog's host that is switched on behind everyone's back is out of what can be known.
    if world.state.policy.self_fencing_timeout_s.is_some() {
        return;
    }
    let waits = world
        .state
        .operation
        .as_ref()
        .is_some_and(|o| o.status == OperationStatus::NeedsOperator);
    if waits && !world.is_fenced() {
        world.site.restore_power();
        world.settle();
    }
}

/// The world after all of it.
pub fn live_through(mut world: World, deeds: &[Deed]) -> World {
    for deed in deeds {
        act(&mut world, deed);
    }
    world
}
