//! How long each part of a fence took the last time.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use crate::{
    Attempt, HostId, MethodId, Operation, OperationId, OperationKind, Outcome, ProofKind, TaskKind, Timestamp,
};

/// What past operations tell of durations. The first one that is told of counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastTimes {
    by: BTreeMap<(TaskKind, Option<MethodId>), LastTime>,
    /// The last fence of the host that was proven.
    pub fence: Option<LastFence>,
}

/// How long one way to do a task took the last time that a worker tried it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastTime {
    /// How that ended.
    pub outcome: Outcome,
    /// Milliseconds from its dispatch to the claim of a worker.
    pub waited_ms: u64,
    /// Milliseconds from the claim to the result.
    pub took_ms: u64,
    /// When that was.
    pub ended_at: Timestamp,
    /// The operation.
    pub operation_id: OperationId,
    /// The host that it was about.
    pub host_id: HostId,
}

/// How long a fence took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFence {
    /// The operation.
    pub operation_id: OperationId,
    /// When it began.
    pub began_at: Timestamp,
    /// Milliseconds until the proofs of a sufficient set had settled.
    pub proven_after_ms: u64,
    /// Milliseconds until the operation was over; `None` if it is not.
    pub took_ms: Option<u64>,
}

impl PastTimes {
    /// From the operations of the host, the newest first, and for what these do not tell from those of other hosts.
    #[must_use]
    pub fn new(own: &[Operation], others: &[Operation]) -> Self {
        let mut times = Self {
            fence: own.iter().find_map(LastFence::of),
            ..Self::default()
        };
        own.iter()
            .chain(others)
            .for_each(|operation| times.take(operation));
        times
    }

    /// How long this way to do a task took the last time; without a method, the platform.
    #[must_use]
    pub fn of(&self, kind: TaskKind, method: Option<MethodId>) -> Option<&LastTime> {
        self.by.get(&(kind, method))
    }

    /// Whether anything is known of a method.
    #[must_use]
    pub fn knows(&self, method: MethodId) -> bool {
        self.by.keys().any(|(_, known)| *known == Some(method))
    }

    fn take(&mut self, operation: &Operation) {
        let mut newest: BTreeMap<_, LastTime> = BTreeMap::new();
        for task in operation.tasks() {
            for attempt in &task.attempts {
                if let Some(time) = LastTime::of(operation, attempt) {
                    newest.insert((task.kind(), attempt.by.method_id()), time);
                }
            }
        }
        for (key, time) in newest {
            self.by.entry(key).or_insert(time);
        }
    }
}

impl LastTime {
    fn of(operation: &Operation, attempt: &Attempt) -> Option<Self> {
        let claimed_at = attempt.claimed_at?;
        let ended_at = attempt.ended_at()?;
        Some(Self {
            outcome: attempt.outcome()?,
            waited_ms: milliseconds(claimed_at - attempt.started_at),
            took_ms: milliseconds(ended_at - claimed_at),
            ended_at,
            operation_id: operation.id,
            host_id: operation.host_id,
        })
    }
}

impl LastFence {
    fn of(operation: &Operation) -> Option<Self> {
        if operation.kind() != OperationKind::Fence {
            return None;
        }
        let sets = &operation.fence()?.sufficient_sets;
        let settled = |kind: &ProofKind| {
            let proof = operation.proofs.iter().find(|proof| proof.kind == *kind)?;
            Some(proof.settled_at(None))
        };
        let proven = sets.iter().filter_map(|set| {
            let settled: Option<Vec<_>> = set.iter().map(settled).collect();
            settled?.into_iter().max()
        });
        let proven_at = proven.min()?;
        Some(Self {
            operation_id: operation.id,
            began_at: operation.created_at,
            proven_after_ms: milliseconds(proven_at - operation.created_at),
            took_ms: operation
                .finished_at
                .map(|at| milliseconds(at - operation.created_at)),
        })
    }
}

fn milliseconds(span: TimeDelta) -> u64 {
    u64::try_from(span.num_milliseconds()).unwrap_or(0)
}
