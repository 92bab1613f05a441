//! S11: on a suspended host nothing begins by itself, and what was asked for before stands still.

use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::Moment;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, fenced_generation, suspensions};
use super::settings::setting;

/// The operation that a person asks for by this input, if it is a live one.
fn asked_for(moment: &Moment, decision: &Decision) -> Option<OperationId> {
    let live = decision.state.operation.as_ref().map(|live| live.id);
    match (&moment.input, &decision.answer) {
        (Input::Retry { operation_id, .. }, _) => Some(*operation_id),
        (Input::AutoFence { .. } | Input::BeginAnew { .. }, _) => None,
        (Input::Fence { heeds_safeguards, .. } | Input::Evacuate { heeds_safeguards, .. }, _)
            if *heeds_safeguards =>
        {
            None
        }
        (_, Reply::Started(id) | Reply::Joined(id)) => Some(*id),
        (Input::Confirm { .. }, Reply::Done) => live,
        _ => None,
    }
}

/// The suspensions that held just before this decision and that it does not end.
fn lasting<'a>(moment: &'a Moment, decision: &'a Decision) -> impl Iterator<Item = &'a Suspension> {
    let (before, after) = (&moment.before.host.suspension, &decision.state.host.suspension);
    suspensions(moment).filter(move |one| before.as_ref() != Some(*one) || after == before)
}

proptest! {
    #[test]
    fn s11_what_was_asked_for_before_a_suspension_stands_still(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        // The last operation, and the suspensions during which it was asked for or began.
        let mut known: Option<(OperationId, Vec<Timestamp>)> = None;
        for (_, moment, decision) in decisions(&world) {
            let Some(live) = &decision.state.operation else { continue };
            let goes_on = matches!(moment.input, Input::BeginAnew { .. });
            let is_new = known.as_ref().is_none_or(|(id, _)| *id != live.id);
            if let (true, Some((id, _))) = (goes_on, &mut known) {
                *id = live.id;
            } else if is_new {
                known = Some((live.id, suspensions(moment).map(|one| one.since).collect()));
            } else if let (Some(asked), Some((id, despite))) = (asked_for(moment, decision), &mut known)
                && asked == *id
            {
                // A suspension whose end the clock has shown is in force once more when the clock is set back.
                despite.extend(suspensions(moment).map(|one| one.since));
            }
            let despite = known.as_ref().map_or(&[][..], |(_, despite)| despite);
            let stands_still = lasting(moment, decision).any(|one| !despite.contains(&one.since));
            if !stands_still {
                continue;
            }
            let sends = |effect: &Effect| matches!(effect, Effect::Dispatch(sent) if sent.attempt.operation_id == live.id);
            prop_assert!(!decision.effects.iter().any(sends), "sent although it is suspended");
            let is_new = |claim: &Claim| {
                let known = moment.before.operation.as_ref().and_then(|live| live.find(claim.attempt));
                known.is_some_and(|(_, attempt)| attempt.claimed_at.is_none())
            };
            let is_granted = matches!((&moment.input, &decision.answer), (Input::Claim(claim), Reply::Granted { .. }) if is_new(claim));
            prop_assert!(!is_granted, "claimed although it is suspended");
            let becomes_fenced = fenced_generation(&decision.state.host) != fenced_generation(&moment.before.host)
                && decision.state.host.fence.is_some();
            prop_assert!(!becomes_fenced, "FENCED although it is suspended");
        }
    }

    #[test]
    fn s11_nothing_begins_by_itself_on_a_suspended_host(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        for (_, moment, decision) in decisions(&world) {
            let before = moment.before.operation.as_ref().map(|live| live.id);
            let begun = decision.state.operation.as_ref().filter(|live| Some(live.id) != before);
            let is_by_program = matches!(&moment.input, Input::Fence { heeds_safeguards, .. } | Input::Rejoin { heeds_safeguards, .. } | Input::Evacuate { heeds_safeguards, .. } if *heeds_safeguards);
            let by_itself = begun.filter(|live| (live.requested_by == "ringfence" || is_by_program) && lasting(moment, decision).next().is_some());
            if let Some(live) = by_itself {
                prop_assert_eq!(live.kind(), OperationKind::Fence);
                prop_assert_eq!(live.status, OperationStatus::Held);
                prop_assert!(live.attempts().next().is_none());
            }
        }
    }
}
