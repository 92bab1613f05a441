//! How a world takes each action.

use chrono::TimeDelta;
use proptest::sample::Index;
use ringfence_core::*;
use ringfence_world::plans::person;
use ringfence_world::{Heard, Manner, World};

use super::{Action, Lie, SICKNESS, SOURCES, Told};

/// Carries out an action. An impossible action does nothing.
pub fn act(world: &mut World, action: &Action) {
    match action {
        Action::Fence => drop(world.fence()),
        Action::AskByProgram => drop(world.fence_for_program()),
        Action::Evacuate => drop(world.evacuate()),
        Action::OthersFail(number) => {
            world.others.out_of_service = u64::from(*number);
            world.others.lately = u64::from(*number);
            world.others.under_way = u64::from(*number);
        }
        Action::Suspend(scope, seconds) => {
            let until = seconds.map(|s| world.now + TimeDelta::seconds(i64::from(s)));
            world.suspend(*scope, until);
        }
        Action::Resume(scope) => world.resume(*scope),
        Action::Ail(is_sick) => {
            let condition = ReportedCondition {
                name: SICKNESS.to_owned(),
                status: if *is_sick {
                    ConditionStatus::True
                } else {
                    ConditionStatus::False
                },
                reason: String::new(),
            };
            let input = Input::Conditions {
                source: "detector".to_owned(),
                conditions: vec![condition],
                over: None,
            };
            drop(world.give(input));
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
            ago_ms,
            is_admin,
            override_up,
        } => {
            let generation = i64::from(world.state.host.generation.0) + i64::from(*generation_off_by);
            let actor = Actor {
                is_admin: *is_admin,
                ..person("otto")
            };
            let generation = u32::try_from(generation).unwrap_or(99);
            let said_at = world.now - TimeDelta::milliseconds(i64::from(*ago_ms));
            // Whether it was so then is not known here.
            let is_hearsay = world.is_hearsay;
            world.is_hearsay |= *ago_ms > 0 || world.site.harm();
            if world
                .confirm_as_of(said_at, generation, actor, *override_up)
                .is_err()
            {
                world.is_hearsay = is_hearsay;
            }
        }
        Action::PullAndSay => unplug_and_confirm(world),
        Action::Release { of, is_admin } => release(world, of, *is_admin),
        Action::Cancel => drop(world.cancel()),
        Action::RejoinByProgram => drop(world.rejoin_for_program()),
        Action::EvacuateByProgram => drop(world.evacuate_for_program()),
        Action::CancelByProgram => drop(world.cancel_by_program()),
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
