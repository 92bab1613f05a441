//! S9: a restart, a lost message or an edited plan never drops FENCED and never strands an operation.

use proptest::prelude::*;
use ringfence_core::*;
use serde_json::json;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, grants, has_event, readings, releases, takes};
use super::settings::setting;
use ringfence_world::World;
use ringfence_world::plans::{person, power_plan};

/// Whether the device refused the only attempt that could have taken this since it stands.
fn was_refused(world: &World, at: usize, standing: &AppliedFencing) -> bool {
    let Input::Result(result) = &world.trace[at].input else {
        return false;
    };
    let stands = |i: &usize| {
        let standing_then = &world.trace[*i].before.host.applied.fencing;
        standing_then
            .iter()
            .any(|s| s.kind == standing.kind && s.method == standing.method)
    };
    let since = (0..=at).rev().take_while(stands).last().unwrap_or(at);
    let grants = grants(world);
    let mut takers = grants.iter().filter(|g| {
        g.at + 1 >= since
            && g.at < at
            && g.claim.kind == standing.kind
            && g.method.as_ref() == Some(&standing.method)
    });
    result.outcome == Outcome::Refused && takers.all(|g| g.claim == result.claim)
}

fn an_admin_said_so(input: &Input, standing: &AppliedFencing) -> bool {
    let Input::ConfirmReleased { methods, actor, .. } = input else {
        return false;
    };
    actor.is_admin && standing.kind != FencingKind::PowerOff && methods.contains(&standing.method.name)
}

/// Whether the platform showed the host up again, or had refused the first mark-down, or an admin confirmed it.
fn may_be_marked_up(input: &Input, marked_down_by: AttemptId) -> bool {
    match input {
        Input::Result(result) => {
            let is_up = result.claim.kind == StepKind::MarkUp && result.outcome == Outcome::Confirmed;
            is_up || (result.claim.attempt == marked_down_by && result.outcome == Outcome::Refused)
        }
        Input::ConfirmReleased { methods, actor, .. } => {
            actor.is_admin && methods.iter().any(|name| name.contains(':'))
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn s9_nothing_forgets(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let readings = readings(&world);
        for (at, moment, decision) in decisions(&world) {
            let (before, after) = (&moment.before.host, &decision.state.host);
            if before.fencing_state() == FencingState::Fenced && after.fencing_state() == FencingState::Unfenced {
                prop_assert!(has_event(decision, EventKind::HostUnfenced));
                let operation = decision.state.operation.as_ref().unwrap();
                prop_assert_eq!(operation.kind(), OperationKind::Rejoin);
            }
            if let (Some(before), Some(after)) = (&before.fence, &after.fence) {
                let is_newer = after.generation > before.generation;
                let is_kept = |proof: &Proof| after.proofs.iter().any(|known| known.kind == proof.kind);
                prop_assert!(is_newer || before.proofs.iter().all(is_kept), "a proof was lost");
                prop_assert!(is_newer || after.is_evacuation_begun || !before.is_evacuation_begun);
            }
            if let Some(marked) = before.applied.marked_down_by.filter(|by| after.applied.marked_down_by != Some(*by)) {
                prop_assert!(may_be_marked_up(&moment.input, marked), "the mark-down was lost");
            }
            let still = |s: &&AppliedFencing| after.applied.fencing.iter().any(|a| a.kind == s.kind && a.method == s.method);
            for standing in before.applied.fencing.iter().filter(|s| !still(s)) {
                let was_read = readings.iter().any(|r| {
                    r.at == at && standing.kind.undone_by().is_some_and(|by| r.kind == by) && r.method.as_ref() == Some(&standing.method)
                });
                // A host that is seen UP has the power that it needs.
                let is_back = standing.kind == FencingKind::PowerOff && after.failure_state == FailureState::Up;
                let was_never_taken = was_refused(&world, at, standing);
                let was_said = an_admin_said_so(&moment.input, standing);
                prop_assert!(was_read || is_back || was_never_taken || was_said, "{standing:?} was forgotten");
            }
        }
    }

    #[test]
    fn s9_a_worker_that_may_be_acting_is_remembered(setting in setting(), actions in history(Truthfulness::Truthful)) {
        let world = live_through(setting.world(), &actions);
        for (_, moment, decision) in decisions(&world) {
            for f in &moment.before.host.in_flight {
                let own = match &moment.input {
                    Input::Result(result) if result.claim.attempt == f.attempt => Some(result),
                    _ => None,
                };
                let known = decision.state.host.in_flight.iter().find(|known| known.attempt == f.attempt);
                let lasts = known.map(|known| known.until);
                let is_over = f.until <= moment.now;
                match own {
                    None => prop_assert!(is_over || known == Some(f)),
                    Some(result) if result.outcome == Outcome::Unknown && (takes(f.kind) || releases(f.kind)) => {
                        let sent = world.sent.iter().find(|sent| sent.attempt == f.attempt).expect("the attempt was sent");
                        let lingers_s = sent.job.method().and_then(|method| method.times.lingers_s).unwrap_or(10);
                        let lingers_until = moment.now + chrono::TimeDelta::seconds(i64::from(lingers_s));
                        let until = f.until.min(lingers_until);
                        let is_waited_for = lasts.is_some_and(|lasts| lasts >= until);
                        prop_assert!(is_over || lingers_s == 0 || is_waited_for, "an attempt that may still take effect is not waited for");
                    }
                    Some(_) => {}
                }
            }
        }
        prop_assert_eq!(world.violation, None, "{:#?}", world.log);
    }

    /// The world reads every state back from its stored form, as a restarted service would.
    #[test]
    fn s9_a_restart_at_any_moment_changes_nothing(setting in setting(), actions in history(Truthfulness::Any)) {
        let mut world = setting.world();
        world.restarts = true;
        let world = live_through(world, &actions);
        let states: Vec<&HostState> = world.trace.iter().map(|moment| &moment.before).chain([&world.state]).collect();
        let said = world.trace.iter().map(|moment| moment.said.as_ref().ok());
        for (decision, next) in said.zip(&states[1..]) {
            let Some(decision) = decision else { continue };
            let live = decision.state.operation.as_ref().filter(|o| o.status.is_live());
            prop_assert_eq!(live, next.operation.as_ref());
            // The time of the last write is not part of the stored form.
            let written = Host { updated_at: next.host.updated_at, ..decision.state.host.clone() };
            prop_assert_eq!(&written, &next.host);
        }
    }

    #[test]
    fn s9_an_edited_plan_changes_no_running_operation(setting in setting(), actions in history(Truthfulness::Any)) {
        let mut world = live_through(setting.world(), &actions);
        let tick = decide(&world.state, Input::tick(), world.now).unwrap();
        let edited = Input::Fence {
            operation_id: OperationId(world.next_id()),
            plan: Some(power_plan()),
            reason: "again".to_owned(),
            actor: person("anna"),
            heeds_safeguards: false,
        };
        // The request releases an operation that is held.
        let is_held = |o: &Operation| o.status == OperationStatus::Held || o.is_held_by_brake();
        let is_it = |o: &Operation| o.kind() == OperationKind::Fence && o.status.is_live() && !is_held(o);
        // Time alone may end it: a clock that was set back shows the host UP again.
        let is_fencing = [&world.state, &tick.state].iter().all(|state| state.operation.as_ref().is_some_and(is_it));
        // A fence that was proven and whose proofs have ended is replaced by a new one.
        if is_fencing && world.state.host.current_fence().is_none_or(|f| f.holds()) {
            let joined = decide(&world.state, edited, world.now).unwrap();
            // A joining request is recorded in the audit trail once, has the fence go on like one that was asked for, and answers a silence that came meanwhile.
            let mut expected = tick.state.clone();
            if let Some(Work::Fence(fence)) = expected.operation.as_mut().map(|live| &mut live.work)
                && matches!(joined.answer, Reply::Joined(_))
            {
                fence.is_wanted |= fence.cause != Cause::Request;
                expected.host.is_silence_answered |= expected.host.failure_state == FailureState::Unreachable;
            }
            prop_assert_eq!(&joined.state, &expected);
            let is_record = |effect: &Effect| matches!(effect, Effect::Note(note) if note.action == "fence.joined");
            let (record, others): (Vec<_>, Vec<_>) = joined.effects.into_iter().partition(is_record);
            let expected = match joined.answer {
                Reply::Joined(operation_id) => {
                    prop_assert_eq!(Some(operation_id), tick.state.operation.as_ref().map(|o| o.id));
                    let detail = json!({ "operation_id": operation_id, "reason": "again", "by": "anna", "overrides": [] });
                    vec![Effect::Note(Note { action: "fence.joined", detail })]
                }
                _ => {
                    prop_assert_eq!(joined.answer, Reply::AlreadySo);
                    Vec::new()
                }
            };
            prop_assert_eq!(record, expected);
            prop_assert_eq!(others, tick.effects);
        }
    }
}
