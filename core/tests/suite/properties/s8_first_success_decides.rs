//! S8: the first sufficient set turns the host FENCED; the other tasks of the operation go on and add their proofs, and
//! change no state.

use std::collections::BTreeSet;

use proptest::prelude::*;
use ringfence_core::*;

use super::deeds::{Customs, history, live_through};
use super::facts::{decisions, events, has_event, readings};
use super::settings::{plain_setting, setting};

proptest! {
    #[test]
    fn s8_first_success_decides(setting in setting(), deeds in history(Customs::Any)) {
        let world = live_through(setting.world(), &deeds);
        let mut generations = BTreeSet::new();
        for (_, moment, decision) in decisions(&world) {
            let (before, after) = (&moment.before.host, &decision.state.host);
            for event in events(decision).filter(|event| event.kind == EventKind::HostFenced) {
                prop_assert!(generations.insert(event.data["generation"].as_u64()), "FENCED twice in one generation");
            }
            let is_settled = before.fencing_state() == FencingState::Fenced
                && !has_event(decision, EventKind::HostFenced)
                && !has_event(decision, EventKind::HostUnfenced);
            if is_settled {
                prop_assert_eq!(after.fencing_state(), before.fencing_state());
                // A clock that was moved back takes a moment of the future with it.
                prop_assert_eq!(after.fenced_at, before.fenced_at.map(|at| at.min(moment.now)));
                prop_assert_eq!(fenced_generation(&after), fenced_generation(&before));
                prop_assert_eq!(&after.boot_at_fence, &before.boot_at_fence);
                prop_assert!(before.needs_boot || !after.needs_boot, "a later proof only makes the way back easier");
            }
            for ended in [decision.superseded.as_ref(), decision.state.operation.as_ref()].into_iter().flatten() {
                // Only who takes the host back, or proves anew what is spent, ends a proven fence before its time.
                let is_taken_back = matches!(moment.input, Input::Rejoin { .. })
                    || (before.proof_spent && matches!(moment.input, Input::Fence { .. } | Input::Confirm { .. }));
                let is_proven = ended.kind == OperationKind::Fence && ended.status == OperationStatus::Succeeded;
                if is_proven && !is_taken_back {
                    for task in ended.tasks().filter(|task| task.status == TaskStatus::Cancelled) {
                        prop_assert!(goes_on(task.kind, ended, &decision.state), "{} did not go on", task.kind);
                    }
                }
            }
        }
    }

    /// Not one moment later than it is known.
    #[test]
    fn s8_fenced_comes_with_the_reading_that_completes_a_set(setting in plain_setting(), deeds in history(Customs::Any)) {
        let world = live_through(setting.world(), &deeds);
        for reading in readings(&world) {
            let decision = world.trace[reading.at].said.as_ref().unwrap();
            let levels = world.plan.stages.iter().flat_map(|stage| &stage.tasks).flat_map(|task| &task.levels);
            let is_alone = levels.clone().any(|level| level.len() == 1 && level[0].id == reading.method.id);
            let counts = decision.answer == Answer::Done && reading.kind == TaskKind::PowerOff && is_alone;
            if counts && decision.state.operation.as_ref().is_some_and(|o| o.round == 0) {
                prop_assert_eq!(decision.state.host.fencing_state(), FencingState::Fenced);
                prop_assert_eq!(fenced_generation(&decision.state.host), Some(reading.generation));
            }
        }
    }
}

/// An evacuation has taken over what the fence had left to do. Power that is still being taken away does not come back within it.
fn goes_on(kind: TaskKind, fence: &Operation, now: &HostState) -> bool {
    let Some(evacuation) = now
        .operation
        .as_ref()
        .filter(|o| o.kind() == OperationKind::Evacuation)
    else {
        return false;
    };
    let is_off = |task: &Task| task.kind == TaskKind::PowerOff && task.status == TaskStatus::Confirmed;
    match kind {
        TaskKind::PowerOn if !fence.tasks().any(is_off) => true,
        kind => evacuation.tasks().any(|task| task.kind == kind),
    }
}
