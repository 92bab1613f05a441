//! S7: UNFENCED only after every rejoin task was observed done and no newer fence has begun. S14: the boot that was cut off never gets
//! its storage or network back.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{Reading, decisions, grants, has_event, readings, reports, takes};
use super::settings::setting;
use ringfence_world::World;

/// The largest difference of a host's clock and the engine's.
const CLOCKS_APART: TimeDelta = TimeDelta::seconds(10);

proptest! {
    #[test]
    fn s7_rejoin_in_order(setting in setting(), actions in history(Truthfulness::Truthful)) {
        let world = live_through(setting.world(), &actions);
        let readings = readings(&world);
        for (at, moment, decision) in decisions(&world) {
            if !has_event(decision, EventKind::HostUnfenced) {
                continue;
            }
            let operation = decision.state.operation.as_ref().unwrap();
            prop_assert_eq!(operation.kind(), OperationKind::Rejoin);
            prop_assert_eq!(operation.generation, decision.state.host.generation, "a newer fence has begun");
            let fenced = fence_before(&world, at);
            for standing in standing_at_the_start(&world, operation.id) {
                prop_assert!(was_given_back(&world, &standing, &readings, operation.id, at), "{standing:?}");
            }
            prop_assert_eq!(decision.state.host.applied.marked_down_by, None, "the platform still has the host marked down");
            prop_assert!(was_seen_up_since(&world, fenced, at), "{:#?}", world.log);
            let watchdog = world.state.policy.self_fencing_timeout_s.unwrap_or(0);
            let waited = world.trace[fenced].now + TimeDelta::seconds(i64::from(watchdog)) <= moment.now;
            let has_once_booted = operation.is_boot_confirmed() || has_booted_since(&world, world.trace[fenced].now, at);
            prop_assert!(waited || has_once_booted, "the watchdog may still strike");
            let taking = grants(&world).into_iter().filter(|g| g.at < at && takes(g.claim.kind));
            for grant in taking {
                prop_assert!(grant.may_act_until() <= moment.real, "{grant:?} may still take something from the host");
            }
        }
        prop_assert_eq!(world.violation, None, "{:#?}", world.log);
    }

    /// A platform that reaches the host over the network has that first.
    #[test]
    fn s7_storage_and_network_come_back_in_the_order_of_the_platform(setting in setting(), actions in history(Truthfulness::Truthful)) {
        let world = live_through(setting.world(), &actions);
        let readings = readings(&world);
        let (first, second) = match world.state.host.backend {
            Backend::Kubernetes => (FencingKind::NetworkFence, FencingKind::StorageUnfence),
            Backend::Nova | Backend::None => (FencingKind::StorageFence, FencingKind::NetworkUnfence),
        };
        for (at, _, decision) in decisions(&world) {
            for effect in &decision.effects {
                let Effect::Dispatch(sent) = effect else { continue };
                if sent.job.kind() != second {
                    continue;
                }
                let id = sent.attempt.operation_id;
                for standing in standing_at_the_start(&world, id) {
                    if standing.kind == first {
                        prop_assert!(was_given_back(&world, &standing, &readings, id, at));
                    }
                }
            }
        }
    }

    /// A host gets storage or network back only if it was read off, fenced itself, showed a newer boot, or a person confirmed its boot.
    #[test]
    fn s14_storage_and_network_come_back_only_to_a_newer_boot(setting in setting(), actions in history(Truthfulness::Truthful)) {
        let world = live_through(setting.world(), &actions);
        for grant in grants(&world) {
            if grant.claim.kind != FencingKind::StorageUnfence && grant.claim.kind != FencingKind::NetworkUnfence {
                continue;
            }
            let operation = world.trace[grant.at].before.operation.as_ref().expect("the granted claim has an operation");
            let cut_at = last_cut(&world, grant.at);
            let has_stopped = was_proven_to_stop(&world, grant.at);
            let is_new = has_booted_since(&world, cut_at, grant.at);
            prop_assert!(operation.is_boot_confirmed() || has_stopped || is_new, "{:#?}", world.log);
        }
        prop_assert_eq!(world.violation, None, "{:#?}", world.log);
    }
}

/// The moment in which the host last turned FENCED.
fn fence_before(world: &World, at: usize) -> usize {
    last_fence_before(world, at).expect("only a FENCED host becomes UNFENCED")
}

/// The moment of the last fence that turned FENCED or was given up: what such a fence took from the host is given back as well.
fn last_fence_before(world: &World, at: usize) -> Option<usize> {
    let fenced = decisions(world).filter(|(i, _, d)| *i < at && has_event(d, EventKind::HostFenced));
    fenced.last().map(|(i, _, _)| i)
}

fn standing_at_the_start(world: &World, id: OperationId) -> Vec<AppliedFencing> {
    let begun = decisions(world).find(|(_, moment, decision)| {
        let is_it = |o: &Operation| o.id == id;
        decision.state.operation.as_ref().is_some_and(is_it)
            && !moment.before.operation.as_ref().is_some_and(is_it)
    });
    begun.expect("it began").1.before.host.applied.fencing.clone()
}

/// Whether the release was read back; a power supply may fail while the host itself shows that it has power.
fn was_given_back(
    world: &World,
    standing: &AppliedFencing,
    readings: &[Reading],
    id: OperationId,
    at: usize,
) -> bool {
    let by = standing.kind.undone_by().unwrap();
    let was_read = readings.iter().any(|r| {
        r.at <= at && r.operation_id == id && r.kind == by && r.method.as_ref() == Some(&standing.method)
    });
    let is_back = || was_seen_up_since(world, last_fence_before(world, at).unwrap_or_default(), at);
    was_read || was_said(world, standing, at) || (by == FencingKind::PowerOn && is_back())
}

/// Whether an admin confirmed the release with the host's generation; it counts until the next fence takes it again.
fn was_said(world: &World, standing: &AppliedFencing, at: usize) -> bool {
    let fenced = last_fence_before(world, at).unwrap_or_default();
    let now = world.trace[at].before.host.generation;
    decisions(world)
        .filter(|(i, moment, _)| (fenced..=at).contains(i) && moment.before.host.generation == now)
        .any(|(_, moment, _)| match &moment.input {
            Input::ConfirmReleased {
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

/// Whether the host was seen UP since the fence, and no source reports silence that begins after the last sign of life.
fn was_seen_up_since(world: &World, fenced: usize, at: usize) -> bool {
    let fenced_at = world.trace[fenced].now;
    let until_now = || reports(world).filter(|(i, _, _)| *i <= at);
    let Some(heard_at) = until_now().filter_map(|(_, _, report)| report.alive_at()).max() else {
        return false;
    };
    let mut silent = until_now().filter(|(_, _, report)| report.state == FailureState::Unreachable);
    let is_gone = silent.any(|(i, _, _)| silent_since(world, i) > heard_at && is_last_word(world, i, at));
    heard_at >= fenced_at && !is_gone
}

/// The beginning of the unbroken series of equal states that ends in this report, of this report's source. A source whose silence begins
/// before another source's sign of life has missed that sign.
fn silent_since(world: &World, said: usize) -> Timestamp {
    let Input::FailureState { report: last, .. } = &world.trace[said].input else {
        unreachable!("the moment is a report");
    };
    let own: Vec<_> = reports(world)
        .filter(|(i, _, report)| *i <= said && report.source == last.source)
        .map(|(_, _, report)| report)
        .collect();
    let row = own.iter().rev().take_while(|report| report.state == last.state);
    row.last().map_or(last.observed_at, |first| first.observed_at)
}

/// Whether the source has reported nothing but silence since.
fn is_last_word(world: &World, said: usize, at: usize) -> bool {
    let source = |i: usize| match &world.trace[i].input {
        Input::FailureState { report, .. } => Some(report.source.clone()),
        _ => None,
    };
    let mut later = reports(world).filter(|(i, _, _)| *i > said && *i <= at);
    later.all(|(_, _, report)| {
        Some(&report.source) != source(said).as_ref() || report.state == FailureState::Unreachable
    })
}

/// Whether a report names a boot with a date after this time, or a boot that has replaced another since.
fn has_booted_since(world: &World, moment: Timestamp, at: usize) -> bool {
    let since = reports(world).filter(|(i, _, report)| *i <= at && report.observed_at > moment);
    let seen: Vec<(&str, &Boot)> = since
        .filter_map(|(_, _, report)| Some((report.source.as_str(), report.boot.as_ref()?)))
        .collect();
    let is_dated = |boot: &Boot| {
        let dated = boot.booted_at.is_some_and(|at| at > moment + CLOCKS_APART);
        boot.id.is_some() && dated
    };
    let has_replaced = |source: &str, boot: &Boot| {
        let mut others = seen.iter().filter(|(other, _)| *other == source);
        boot.id.is_some() && others.any(|(_, other)| other.id.is_some() && other.id != boot.id)
    };
    seen.iter()
        .any(|(source, boot)| is_dated(boot) || has_replaced(source, boot))
}

/// The last time that a cut of storage or network was allowed, except a cut that a person has released by hand.
fn last_cut(world: &World, at: usize) -> Timestamp {
    let standing = &world.trace[at].before.host.applied.fencing;
    let cuts = standing
        .iter()
        .filter(|cut| cut.kind.resource() != Resource::Power);
    let cuts: Vec<_> = cuts
        .map(|cut| (TaskKind::from(cut.kind), Some(&cut.method)))
        .collect();
    let grants = grants(world).into_iter().filter(|g| g.at < at);
    let of_cuts = grants.filter(|g| cuts.contains(&(g.claim.kind, g.method.as_ref())));
    of_cuts.map(|g| g.now).max().unwrap_or(world.trace[0].now)
}

/// Whether the fence had a proof that the host had stopped.
fn was_proven_to_stop(world: &World, at: usize) -> bool {
    let stops = ["power.off", "self-fencing", "operator"];
    let mut proofs = decisions(world)
        .filter(|(i, _, _)| *i <= at)
        .flat_map(|(_, _, decision)| super::facts::events(decision))
        .filter(|event| event.kind == EventKind::OperationProof);
    proofs.any(|event| {
        event.data["proof"]["kind"]
            .as_str()
            .is_some_and(|kind| stops.contains(&kind))
    })
}
