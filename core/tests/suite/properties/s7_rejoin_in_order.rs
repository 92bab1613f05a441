//! S7: UNFENCED only after every rejoin task was observed done and no newer fence has begun. After a fence by storage or
//! network alone, the host must show a boot newer than the fence before it is taken back.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::deeds::{Customs, history, live_through};
use super::facts::{Reading, decisions, has_event, proven, readings};
use super::settings::setting;
use ringfence_world::World;

proptest! {
    #[test]
    fn s7_rejoin_in_order(setting in setting(), deeds in history(Customs::Truthful)) {
        let world = live_through(setting.world(), &deeds);
        let readings = readings(&world);
        for (at, moment, decision) in decisions(&world) {
            if !has_event(decision, EventKind::HostUnfenced) {
                continue;
            }
            let host = &moment.before.host;
            let operation = decision.state.operation.as_ref().unwrap();
            prop_assert_eq!(operation.kind(), OperationKind::Rejoin);
            prop_assert_eq!(operation.generation, decision.state.host.generation, "no newer fence has begun");
            let fenced = fence_before(&world, at);
            for standing in standing_at_the_start(&world, operation.id) {
                prop_assert!(was_given_back(&world, &standing, &readings, operation.id, at), "{standing:?}");
            }
            prop_assert!(was_seen_up_since(&world, fenced, at), "{:#?}", world.log);
            let fence_id = world.trace[fenced].said.as_ref().unwrap().state.operation.as_ref().unwrap().id;
            let mut proven_by = proven(&world, fenced, fence_id);
            proven_by.extend(proven(&world, at, fence_id));
            let is_dead = [ProofKind::PowerOff, ProofKind::SelfFencing, ProofKind::Operator]
                .iter()
                .any(|kind| proven_by.contains(kind));
            let has_booted = operation.boot_confirmed || was_booted_since(&world, fenced, at);
            prop_assert!(is_dead || has_booted, "{:#?}", world.log);
            let watchdog = world.state.policy.self_fencing_timeout_s.unwrap_or(0);
            let waited = world.trace[fenced].now + TimeDelta::seconds(i64::from(watchdog)) <= moment.now;
            let has_once_booted = operation.boot_confirmed || had_booted_since(&world, fenced, at);
            prop_assert!(waited || has_once_booted, "the watchdog may still strike");
            prop_assert!(host.in_flight.iter().all(|f| f.until <= moment.now || f.kind.is_undoing() || only_looks(f.kind)));
        }
    }

    #[test]
    fn s7_storage_comes_back_before_the_network(setting in setting(), deeds in history(Customs::Truthful)) {
        let world = live_through(setting.world(), &deeds);
        let readings = readings(&world);
        for (at, _, decision) in decisions(&world) {
            for effect in &decision.effects {
                let Effect::Dispatch(sent) = effect else { continue };
                if sent.kind != TaskKind::NetworkUnfence {
                    continue;
                }
                let id = sent.attempt.operation_id;
                for standing in standing_at_the_start(&world, id) {
                    if standing.kind == TaskKind::StorageFence {
                        prop_assert!(was_given_back(&world, &standing, &readings, id, at));
                    }
                }
            }
        }
    }
}

/// The moment at which the host last became FENCED.
fn fence_before(world: &World, at: usize) -> usize {
    last_fence_before(world, at).expect("only a FENCED host becomes UNFENCED")
}

/// The same, where a fence may have been given up: what was taken from the host until then is given back all the same.
fn last_fence_before(world: &World, at: usize) -> Option<usize> {
    let fenced = decisions(world).filter(|(i, _, d)| *i < at && has_event(d, EventKind::HostFenced));
    fenced.last().map(|(i, _, _)| i)
}

fn standing_at_the_start(world: &World, id: OperationId) -> Vec<Standing> {
    let begun = decisions(world).find(|(_, moment, decision)| {
        let is_it = |o: &Operation| o.id == id;
        decision.state.operation.as_ref().is_some_and(is_it)
            && !moment.before.operation.as_ref().is_some_and(is_it)
    });
    begun.expect("it began").1.before.host.standing.clone()
}

/// Read back as given back; a power supply may fail as long as the host itself shows that it has power.
fn was_given_back(
    world: &World,
    standing: &Standing,
    readings: &[Reading],
    id: OperationId,
    at: usize,
) -> bool {
    let by = standing.kind.undone_by().unwrap();
    let was_read = readings
        .iter()
        .any(|r| r.at <= at && r.operation_id == id && r.kind == by && r.method == standing.method);
    was_read
        || was_said(world, standing, at)
        || (by == TaskKind::PowerOn
            && last_fence_before(world, at).is_some_and(|fenced| was_seen_up_since(world, fenced, at)))
}

/// An admin named it, with the generation that the host has, and was heard; counts until the next fence takes it again.
fn was_said(world: &World, standing: &Standing, at: usize) -> bool {
    let fenced = last_fence_before(world, at).unwrap_or_default();
    let now = world.trace[at].before.host.generation;
    decisions(world)
        .filter(|(i, moment, _)| (fenced..=at).contains(i) && moment.before.host.generation == now)
        .any(|(_, moment, _)| match &moment.input {
            Input::GivenBack {
                generation,
                methods,
                actor,
                ..
            } => {
                actor.is_admin
                    && *generation == moment.before.host.generation
                    && methods.contains(&standing.method.name)
                    && standing.kind.resource() != Resource::Power
            }
            _ => false,
        })
}

/// Seen at the time of the fence or later, reported after it.
fn was_seen_up_since(world: &World, fenced: usize, at: usize) -> bool {
    let fenced_at = world.trace[fenced].now;
    let mut is_up = false;
    for (_, moment, _) in decisions(world).filter(|(i, _, _)| *i <= at) {
        if let Input::FailureState {
            state, observed_at, ..
        } = &moment.input
        {
            is_up = *state == FailureState::Up && *observed_at >= fenced_at;
        }
    }
    is_up
}

/// By the last report.
fn was_booted_since(world: &World, fenced: usize, at: usize) -> bool {
    let (before, since) = boots(world, fenced, at);
    before.is_some() && since.last().is_some_and(|last| *last != before)
}

/// By any report: a boot ends the wait for the watchdog of the one before, and no later report takes that back.
fn had_booted_since(world: &World, fenced: usize, at: usize) -> bool {
    let (before, since) = boots(world, fenced, at);
    before.is_some() && since.iter().any(|boot| *boot != before)
}

/// The boot that was reported last before the fence, and all since. The monitors of these histories name boots by an id alone.
fn boots(world: &World, fenced: usize, at: usize) -> (Option<String>, Vec<Option<String>>) {
    let (mut before, mut since) = (None, Vec::new());
    for (i, moment, _) in decisions(world).filter(|(i, _, _)| *i <= at) {
        if let Input::FailureState { boot: Some(boot), .. } = &moment.input {
            if i < fenced {
                before.clone_from(&boot.id);
            } else {
                since.push(boot.id.clone());
            }
        }
    }
    (before, since)
}

/// It changes nothing of the host.
fn only_looks(kind: TaskKind) -> bool {
    matches!(
        kind,
        TaskKind::WorkloadsList | TaskKind::WorkloadsCleanUp | TaskKind::WorkloadsAddSpare
    )
}
