//! What a request to fence would be answered, and what would follow at once.

use crate::decide::self_fencing_due;
use crate::{
    Decision, Effect, Fence, Gates, HostState, Input, Job, Operation, Proof, ProofKind, Refusal, Reply,
    SufficientSet, TaskKind, Timestamp, decide, gates,
};

/// What a request to fence would do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencePreview {
    /// The answer, or the refusal.
    pub answer: Result<Reply, Refusal>,
    /// The operation that would make way.
    pub superseded: Option<Operation>,
    /// What workers would be told at once: the task, and the method or the platform.
    pub begins_with: Vec<(TaskKind, String)>,
    /// The gates after the request.
    pub gates_after: Gates,
    /// The gates once the host is FENCED by it; `None` if no fence is begun or joined.
    pub gates_once_fenced: Option<Gates>,
    /// What is proven already and holds.
    pub proven: SufficientSet,
    /// When a report of silence would prove the fence by the host's own watchdog; `None` if none would, as things are.
    pub self_fencing_due: Option<Timestamp>,
}

impl FencePreview {
    pub(super) fn new(state: &HostState, request: Input, now: Timestamp) -> Self {
        match decide(state, request, now) {
            Ok(decision) => Self::of(decision, now),
            Err(refusal) => Self {
                answer: Err(refusal),
                superseded: None,
                begins_with: Vec::new(),
                gates_after: gates(state, now),
                gates_once_fenced: None,
                proven: proven(state),
                self_fencing_due: None,
            },
        }
    }

    fn of(decision: Decision, now: Timestamp) -> Self {
        let Decision {
            state,
            superseded,
            effects,
            answer,
            wake_at: _,
        } = decision;
        let is_fence = matches!(answer, Reply::Started(_) | Reply::Joined(_));
        let begins_with = effects.iter().filter_map(|effect| match effect {
            Effect::Dispatch(dispatch) => Some(told(&dispatch.job)),
            Effect::Event(_) | Effect::Note(_) => None,
        });
        Self {
            answer: Ok(answer),
            superseded,
            begins_with: begins_with.collect(),
            gates_after: gates(&state, now),
            proven: proven(&state),
            self_fencing_due: self_fencing_due(&state, now),
            gates_once_fenced: is_fence.then(|| gates(&fenced(state, now), now)),
        }
    }
}

fn told(job: &Job) -> (TaskKind, String) {
    (job.kind(), job.by())
}

/// By the fence that holds, and by the operation that is under way.
fn proven(state: &HostState) -> SufficientSet {
    let fence = state.host.good_fence().into_iter();
    let live = state.operation.iter().filter(|known| known.status.is_live());
    let live = live.flat_map(|live| &live.proofs);
    let standing = live.filter(|proof| proof.ended.is_none());
    let proofs = fence.flat_map(Fence::standing).chain(standing);
    proofs.map(|proof| proof.kind).collect()
}

/// The host as it would be once its operation has proven it FENCED, by whichever set.
fn fenced(mut state: HostState, now: Timestamp) -> HostState {
    let Some(operation) = &state.operation else {
        return state;
    };
    let proof = Proof {
        kind: ProofKind::Operator,
        source: String::new(),
        observed_at: now,
        read_at: now,
        claimed_at: None,
        settle_s: 0,
        operation_id: operation.id,
        generation: operation.generation,
        detail: String::new(),
        ended: None,
    };
    state.host.fence = Some(Fence {
        generation: operation.generation,
        operation_id: operation.id,
        at: now,
        sets: vec![SufficientSet::from([proof.kind])],
        proofs: vec![proof],
        off_until: None,
        is_evacuation_begun: false,
        is_emptied: false,
    });
    state
}
