//! What a decision has moved, to be counted once it is committed.

use ringfence_core::{
    AttemptId, AttemptStatus, Backend, Decision, Effect, Event, EventKind, Fence, HostProblem, HostState,
    Operation, Proof, SegmentId, Timestamp,
};

use super::Metrics;

/// One thing that ended.
enum Ended {
    Attempt {
        driver: String,
        task: &'static str,
        outcome: &'static str,
        after_s: f64,
    },
    Lease,
    LeftOff,
    Proof {
        kind: &'static str,
        after_s: f64,
    },
    Fence {
        after_s: f64,
    },
    Operation {
        kind: &'static str,
        status: &'static str,
        after_s: f64,
    },
    FailureState {
        state: &'static str,
        after_s: f64,
    },
    Fenced {
        after_s: f64,
    },
    Problem {
        segment: SegmentId,
        problem: HostProblem,
        condition: Option<String>,
    },
    Alarm {
        segment: SegmentId,
        problem: HostProblem,
    },
}

/// Everything that a decision has ended.
pub(crate) struct Moved(Vec<Ended>);

impl Moved {
    /// Compares the host before a decision and after. `reported` is the attempt that the input was the result of.
    pub fn of(before: &HostState, decision: &Decision, reported: Option<AttemptId>, now: Timestamp) -> Self {
        let mut ended = Vec::new();
        for operation in decision.superseded.iter().chain(&decision.state.operation) {
            let known = before.operation.as_ref().filter(|known| known.id == operation.id);
            if known != Some(operation) {
                compare(known, operation, reported, &mut ended);
            }
        }
        compare_hosts(before, &decision.state, now, &mut ended);
        let events = decision.effects.iter().filter_map(|effect| match effect {
            Effect::Event(event) => Some(event),
            Effect::Dispatch(_) | Effect::Note(_) => None,
        });
        let segment = before.host.segment_id;
        ended.extend(events.filter_map(|event| told(event, segment)));
        Self(ended)
    }
}

/// What an event tells of what is counted.
fn told(event: &Event, segment: SegmentId) -> Option<Ended> {
    if let Some((problem, condition)) = event.problem() {
        let condition = condition.map(str::to_owned);
        return Some(Ended::Problem {
            segment,
            problem,
            condition,
        });
    }
    if event.kind == EventKind::HostLeftOff {
        return Some(Ended::LeftOff);
    }
    let problem = event.data.get("problem").and_then(|word| word.as_str());
    let problem = problem.filter(|_| event.kind == EventKind::HostAlarmBegan)?;
    HostProblem::from_word(problem).map(|problem| Ended::Alarm { segment, problem })
}

fn compare(
    known: Option<&Operation>,
    operation: &Operation,
    reported: Option<AttemptId>,
    ended: &mut Vec<Ended>,
) {
    for task in operation.tasks() {
        for attempt in &task.attempts {
            let id = AttemptId {
                operation_id: operation.id,
                number: attempt.number,
            };
            let was = known.and_then(|known| known.find(id)).map(|(_, was)| was);
            let (Some(outcome), Some(ended_at)) = (attempt.outcome(), attempt.ended_at()) else {
                continue;
            };
            if was.is_some_and(|was| !was.is_open()) {
                continue;
            }
            let was_claimed = was.is_some_and(|was| matches!(was.state, AttemptStatus::Claimed { .. }));
            if was_claimed && reported != Some(id) {
                ended.push(Ended::Lease);
            }
            ended.push(Ended::Attempt {
                driver: attempt.by.driver().to_owned(),
                task: task.kind().as_str(),
                outcome: outcome.as_str(),
                after_s: seconds(attempt.started_at, ended_at),
            });
        }
    }
    for proof in &operation.proofs {
        // One that was won anew stands in the place of one that has ended.
        let is_it = |was: &Proof| was.kind == proof.kind && (was.ended.is_none() || proof.ended.is_some());
        if !known.is_some_and(|known| known.proofs.iter().any(is_it)) {
            ended.push(Ended::Proof {
                kind: proof.kind.as_str(),
                after_s: seconds(operation.created_at, proof.observed_at),
            });
        }
    }
    if let Some(finished_at) = operation.finished_at
        && known.is_none_or(|known| known.finished_at.is_none())
    {
        ended.push(Ended::Operation {
            kind: operation.kind().as_str(),
            status: operation.status.as_str(),
            after_s: seconds(operation.created_at, finished_at),
        });
    }
}

fn compare_hosts(before: &HostState, after: &HostState, now: Timestamp, ended: &mut Vec<Ended>) {
    let (was, is) = (&before.host, &after.host);
    if was.failure_state != is.failure_state
        && let Some(since) = was.failure_since
    {
        ended.push(Ended::FailureState {
            state: was.failure_state.as_str(),
            after_s: seconds(since, now),
        });
    }
    if let (Some(fence), None) = (&was.fence, &is.fence) {
        ended.push(Ended::Fenced {
            after_s: seconds(fence.at, now),
        });
    }
    let generation = |fence: &Fence| fence.generation;
    let (was_proven, is_proven) = (
        was.fence.as_ref().map(generation),
        is.fence.as_ref().map(generation),
    );
    let proven_by = after
        .operation
        .as_ref()
        .filter(|operation| is_proven == Some(operation.generation) && was_proven != is_proven);
    if let Some(operation) = proven_by {
        ended.push(Ended::Fence {
            after_s: seconds(operation.created_at, now),
        });
    }
}

/// A clock that was moved back makes no negative time.
pub(super) fn seconds(since: Timestamp, until: Timestamp) -> f64 {
    (until - since).to_std().unwrap_or_default().as_secs_f64()
}

impl Metrics {
    /// The word by which attempts of a driver or a platform are counted. A service of another build may know more drivers.
    fn label_of(&self, driver: &str) -> &'static str {
        let declared = self.drivers.get(driver).map(|declared| declared.name);
        let platform = || Backend::from_word(driver).map(Backend::as_str);
        declared.or_else(platform).unwrap_or("unknown")
    }

    /// Counts what was committed.
    pub fn count_moved(&self, moved: &Moved) {
        for ended in &moved.0 {
            self.count_ended(ended);
        }
    }

    fn count_ended(&self, ended: &Ended) {
        match *ended {
            Ended::Attempt {
                ref driver,
                task,
                outcome,
                after_s,
            } => {
                let driver = self.label_of(driver);
                let labels = [("driver", driver), ("task", task), ("outcome", outcome)];
                self.attempts.get_or_create(&labels).inc();
                self.attempt_seconds
                    .get_or_create(&[("driver", driver), ("task", task)])
                    .observe(after_s);
            }
            Ended::Lease => {
                self.lease_expiries.inc();
            }
            Ended::LeftOff => {
                self.left_off.inc();
            }
            Ended::Proof { kind, after_s } => {
                self.proof_seconds
                    .get_or_create(&[("kind", kind)])
                    .observe(after_s);
            }
            Ended::Fence { after_s } => self.fence_seconds.observe(after_s),
            Ended::Operation {
                kind,
                status,
                after_s,
            } => {
                let labels = [("kind", kind), ("status", status)];
                self.operation_seconds.get_or_create(&labels).observe(after_s);
            }
            Ended::FailureState { state, after_s } => {
                self.failure_state_seconds
                    .get_or_create(&[("state", state)])
                    .observe(after_s);
            }
            Ended::Problem {
                segment,
                problem,
                ref condition,
            } => self.segments.count(segment, problem, condition.as_deref()),
            Ended::Alarm { segment, problem } => self.segments.count_alarm(segment, problem),
            Ended::Fenced { after_s } => {
                self.fencing_state_seconds
                    .get_or_create(&[("state", "FENCED")])
                    .observe(after_s);
            }
        }
    }
}
