//! The device that is leased to a claimed attempt.

use ringfence_core::{AttemptId, Claim, HostState, Input, Reply, Timestamp};
use ringfence_db::DeviceLease;

/// Milliseconds after the end of its budget at which a worker has stopped for certain.
const AFTER_BUDGET_MS: u64 = 2_000;

/// The claim that an input makes or renews.
pub(crate) fn claim_in(input: &Input) -> Option<&Claim> {
    match input {
        Input::Claim(claim) | Input::Renew(claim) => Some(claim),
        Input::Fence { .. }
        | Input::AutoFence { .. }
        | Input::LookAgain { .. }
        | Input::Confirm { .. }
        | Input::Rejoin { .. }
        | Input::Evacuate { .. }
        | Input::ResumeEvacuation { .. }
        | Input::BeginAnew { .. }
        | Input::ConfirmReleased { .. }
        | Input::Cancel { .. }
        | Input::Retry { .. }
        | Input::FailureState { .. }
        | Input::Conditions { .. }
        | Input::ForgetSource { .. }
        | Input::Suspend { .. }
        | Input::Resume { .. }
        | Input::BeginMoves { .. }
        | Input::KdumpMessage { .. }
        | Input::DeviceBusy(_)
        | Input::Result(_)
        | Input::Tick { .. } => None,
    }
}

/// A device that takes one command at a time.
pub(crate) struct Device {
    key: String,
    attempt: AttemptId,
}

impl Device {
    /// What the claimed attempt acts on, where that takes one command at a time.
    pub fn of(state: &HostState, claim: &Claim) -> Option<Self> {
        let (task, attempt) = state.operation.as_ref()?.find(claim.attempt)?;
        Some(Self {
            key: task.method_of(attempt)?.device.clone()?,
            attempt: claim.attempt,
        })
    }

    /// The lease if the claim is granted: as long as the worker's, so that one that died does not keep others from the
    /// device until its deadline.
    pub fn leased(self, answer: &Reply, now: Timestamp) -> Option<DeviceLease> {
        let Reply::Granted { budget_ms, lease_ms } = answer else {
            return None;
        };
        let for_ms = i64::try_from(*lease_ms.min(&(budget_ms + AFTER_BUDGET_MS))).unwrap_or(i64::MAX / 2);
        Some(DeviceLease {
            device: self.key,
            attempt: self.attempt,
            from: now,
            until: now + chrono::TimeDelta::milliseconds(for_ms),
        })
    }
}
