//! S8: the first sufficient set turns the host FENCED; the other tasks of the operation go on and add their proofs, and
//! change no state.

use std::collections::BTreeSet;

use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, events, fenced_generation, has_event, readings};
use super::record::Record;
use super::settings::{plain_setting, setting};

proptest! {
    #[test]
    fn s8_first_success_decides(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let record = Record::of(&world);
        let mut generations = BTreeSet::new();
        for (at, moment, decision) in decisions(&world) {
            let (before, after) = (&moment.before.host, &decision.state.host);
            for event in events(decision).filter(|event| event.kind == EventKind::HostFenced) {
                prop_assert!(generations.insert(event.data["generation"].as_u64()), "FENCED twice in one generation");
            }
            let is_settled = !has_event(decision, EventKind::HostFenced) && !has_event(decision, EventKind::HostUnfenced);
            if let Some(known) = before.fence.as_ref().filter(|_| is_settled) {
                let fence = after.fence.as_ref().expect("a later proof has ended the fence");
                // Setting the clock back also sets back times that are in the future.
                prop_assert_eq!(fence.at, known.at.min(moment.now));
                prop_assert_eq!(fence.generation, known.generation);
                prop_assert_eq!(fence.operation_id, known.operation_id);
                prop_assert_eq!(&fence.sets, &known.sets);
                let kinds = |fence: &Fence| fence.proofs.iter().map(|proof| proof.kind).collect::<BTreeSet<_>>();
                prop_assert!(kinds(fence).is_superset(&kinds(known)), "a later proof has removed an earlier one");
            }
            for ended in [decision.superseded.as_ref(), decision.state.operation.as_ref()].into_iter().flatten() {
                // A proven fence ends before its time only for a rejoin, or for a new proof of an ended one.
                let has_ended = || fenced_generation(before).is_some_and(|g| !record.suffices(&record.standing(at, g)));
                let is_proven_anew = matches!(moment.input, Input::Fence { .. } | Input::Confirm { .. }) && has_ended();
                let is_taken_back = matches!(moment.input, Input::Rejoin { .. }) || is_proven_anew;
                let is_proven = ended.kind() == OperationKind::Fence && ended.status == OperationStatus::Succeeded;
                if is_proven && !is_taken_back {
                    for task in ended.tasks().filter(|task| task.status == TaskStatus::Cancelled) {
                        prop_assert!(goes_on(task.kind(), ended, &decision.state), "{} did not go on", task.kind());
                    }
                }
            }
        }
    }

    /// The host turns FENCED as soon as the completing reading is known and has settled.
    #[test]
    fn s8_fenced_comes_with_the_reading_that_completes_a_set(setting in plain_setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let record = Record::of(&world);
        for reading in readings(&world) {
            let moment = &world.trace[reading.at];
            let decision = moment.said.as_ref().unwrap();
            let levels = world.plan.stages.iter().flat_map(|stage| &stage.tasks).flat_map(|task| &task.levels);
            let is_alone = levels.clone().any(|level| level.len() == 1 && reading.method.as_ref().is_some_and(|method| level[0].id == method.id));
            let counts = decision.answer == Reply::Done && reading.kind == FencingKind::PowerOff && is_alone;
            let live = decision.state.operation.as_ref();
            if !counts || !record.stands(&reading, reading.at) || live.is_none_or(|o| o.round != 0) {
                continue;
            }
            let settle_s = world.state.policy.settle_s.max(reading.method.as_ref().map_or(0, |method| method.times.settle_s));
            let settled_at = moment.now + chrono::TimeDelta::seconds(i64::from(settle_s));
            if fenced_generation(&decision.state.host) == Some(reading.generation) {
                continue;
            }
            prop_assert!(settle_s > 0, "no settling time is left, and the host is not FENCED");
            prop_assert!(decision.wake_at.is_some_and(|at| at <= settled_at), "the wake time is later than the end of the settling time");
        }
    }
}

/// An evacuation takes over the tasks that the fence had left. Power that is still being taken away does not come back within it.
fn goes_on(kind: TaskKind, fence: &Operation, now: &HostState) -> bool {
    let Some(evacuation) = now
        .operation
        .as_ref()
        .filter(|o| o.kind() == OperationKind::Evacuation)
    else {
        return false;
    };
    let is_off = |task: &Task| task.kind() == FencingKind::PowerOff && task.status == TaskStatus::Confirmed;
    match kind {
        TaskKind::Fencing(FencingKind::PowerOn) if !fence.tasks().any(is_off) => true,
        // To mark the host down is more.
        TaskKind::Step(StepKind::Isolate) => evacuation.tasks().any(|task| task.kind() == StepKind::MarkDown),
        kind => evacuation.tasks().any(|task| task.kind() == kind),
    }
}
