//! The one place where the state of a host is decided.
//!
//! Each input has a file of its own; [`advance`] then does what time and the input have made due.

mod advance;
mod alarms;
mod auto_fence;
mod cancel;
mod claim;
mod clock;
mod conditions;
mod confirm;
mod confirm_released;
mod draft;
mod evacuation;
mod failure_state;
mod fence;
mod held;
mod kdump;
mod kdump_proof;
mod pause;
mod power_last;
mod progress;
mod proof;
mod rejoin;
mod result;
mod retry;
mod unclaimed;

use crate::{Decision, HostState, Input, Refusal, Reply, Timestamp};
pub(crate) use conditions::due as condition_due;
pub use conditions::unanswered as unanswered_condition;
use draft::Draft;
pub(crate) use draft::after_s;
pub(crate) use evacuation::{left_to_do, list_workloads};
pub(crate) use fence::rest_of_fence;
pub use held::look_due;
pub(crate) use proof::self_fencing_due;

/// Seconds within which a worker has to claim an attempt after it was sent out.
pub(crate) const CLAIM_WINDOW_S: u32 = 15;
/// Seconds after which an attempt that waits in a line that moves is sent again.
pub(crate) const WAITS_IN_QUEUE_S: u32 = 300;
/// Seconds that an attempt may wait for a device that serves others, all in all.
pub(crate) const DEVICE_WAIT_S: u32 = 600;
/// Milliseconds within which a worker that acts has to show that it lives.
pub(crate) const LEASE_MS: u64 = 10_000;
/// The longest that one attempt may take, in milliseconds, whatever its method says.
pub(crate) const MAX_BUDGET_MS: u64 = 300_000;
/// The longest that a device may still carry out what it was told, in seconds, whatever its method says.
pub(crate) const MAX_LINGER_S: u32 = 3_600;
/// Milliseconds that a proven fence has to end by itself before an evacuation that the segment wants takes over what is left.
pub(crate) const TAKE_OVER_MS: u64 = 3_000;
/// Seconds that an evacuation waits while no source can tell whether its host is still silent.
pub(crate) const EVACUATION_HELD_S: u32 = 3_600;
/// Milliseconds after which an engine that did not come with a plan for a host that has to be fenced is asked again.
pub(crate) const AUTO_FENCE_AGAIN_MS: u64 = 5_000;
/// How often a backend may come up with new workloads of a host that is being evacuated.
pub(crate) const MAX_LISTINGS: u32 = 16;
/// Seconds that a backend is given to carry out a request which it has not answered, before it is asked anew.
pub(crate) const UNANSWERED_S: u32 = 120;
/// Milliseconds between the moment at which a worker has stopped for certain and the moment from which others rely on it.
pub(crate) const DEADLINE_GRACE_MS: u64 = 2_000;

/// Decides what an input changes.
///
/// Total: every input in every state gives a decision or a refusal. A refusal changes nothing; a decision is committed as a
/// whole or not at all. Equal arguments give equal decisions.
pub fn decide(state: &HostState, input: Input, now: Timestamp) -> Result<Decision, Refusal> {
    let mut draft = Draft::new(state, now);
    clock::adjust(&mut draft);
    failure_state::look(&mut draft);
    kdump::look(&mut draft);
    pause::look(&mut draft);
    let answer = answer(&mut draft, input)?;
    advance::advance(&mut draft);
    kdump::look(&mut draft);
    alarms::look(&mut draft);
    Ok(draft.into_decision(answer))
}

fn answer(draft: &mut Draft, input: Input) -> Result<Reply, Refusal> {
    Ok(match input {
        Input::Fence {
            operation_id,
            plan,
            reason,
            actor,
            heeds_safeguards,
        } => {
            let request = fence::Request {
                plan,
                reason,
                heeds_safeguards,
            };
            fence::fence(draft, operation_id, request, &actor)?
        }
        Input::AutoFence {
            operation_id,
            plan,
            sufficient_sets,
            around,
            opinions,
        } => {
            let resolved = auto_fence::Resolved {
                plan,
                sufficient_sets,
            };
            auto_fence::auto_fence(draft, operation_id, resolved, &around, &opinions)
        }
        Input::LookAgain { around, opinions } => held::look_again(draft, &around, &opinions),
        Input::Confirm {
            operation_id,
            generation,
            said_at,
            reason,
            actor,
            override_up,
            sufficient_sets,
        } => {
            let word = confirm::Word {
                generation,
                said_at,
                reason,
                actor,
                override_up,
            };
            confirm::confirm(draft, operation_id, word, sufficient_sets)?
        }
        Input::Rejoin {
            operation_id,
            reason,
            actor,
            boot_confirmed,
            heeds_safeguards,
        } => {
            if heeds_safeguards {
                rejoin::refuse_by_itself(draft)?;
            }
            rejoin::rejoin(draft, operation_id, reason, &actor, boot_confirmed)?
        }
        Input::Evacuate {
            operation_id,
            reason,
            actor,
            heeds_safeguards,
        } => {
            if heeds_safeguards {
                pause::refuse_by_itself(draft)?;
            }
            evacuation::evacuate(draft, operation_id, reason, &actor)?
        }
        Input::ResumeEvacuation {
            operation_id,
            reason,
            actor,
            left,
        } => evacuation::resume(draft, operation_id, reason, &actor, left)?,
        Input::ConfirmReleased {
            generation,
            methods,
            reason,
            actor,
        } => confirm_released::confirm_released(draft, generation, &methods, &reason, &actor)?,
        Input::Cancel {
            operation_id,
            reason,
            actor,
        } => cancel::cancel(draft, operation_id, &reason, &actor)?,
        Input::Retry {
            operation_id,
            reason,
            actor,
        } => retry::retry(draft, operation_id, &reason, &actor)?,
        Input::FailureState { operation_id, report } => failure_state::report(draft, operation_id, report)?,
        Input::Conditions {
            source,
            conditions,
            over,
        } => conditions::report(draft, source, conditions, over)?,
        Input::ForgetSource {
            source,
            reason,
            actor,
        } => failure_state::forget(draft, &source, &reason, &actor.name)?,
        Input::Suspend { until, reason, actor } => pause::suspend(draft, until, reason, &actor),
        Input::Resume { reason, actor } => pause::resume(draft, &reason, &actor),
        Input::BeginAnew { request, despite } => {
            let reply = answer(draft, *request)?;
            pause::began_anew(draft, despite);
            reply
        }
        Input::BeginMoves { at_most } => {
            draft.turns = at_most;
            Reply::Done
        }
        Input::KdumpMessage { heard_after } => kdump::message(draft, heard_after),
        Input::Claim(claim) => claim::claim(draft, &claim)?,
        Input::DeviceBusy(claim) => claim::device_busy(draft, &claim)?,
        Input::Renew(claim) => claim::renew(draft, &claim)?,
        Input::Result(result) => result::result(draft, result),
        Input::Tick { queues } => {
            unclaimed::wait(draft, &queues);
            Reply::Done
        }
    })
}
