//! The workers of a simulation: each task is claimed at once, and ends after the time that is assumed, on simulated time.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use ringfence_bus::{ClaimReply, ClaimRequest, TaskMessage};
use ringfence_core::{
    Claim, Finding, HostId, Job, Observation, ObservedState, Outcome, StepKind, TaskKind, TaskResult,
    Timestamp,
};
use ringfence_engine::Engine;
use uuid::Uuid;

use crate::{Assumptions, SimulationError};

/// The worker's name.
const NAME: &str = "simulation";

/// What a worker does next.
#[derive(Clone, Debug)]
enum Step {
    Claim,
    /// It shows that it lives.
    Renew(Acting),
    Finish(Acting),
}

/// A task that was granted.
#[derive(Clone, Debug)]
struct Acting {
    began_at: Timestamp,
    /// When it ends, by its own time or by its budget.
    ends_at: Timestamp,
    is_late: bool,
    renew_every: TimeDelta,
}

#[derive(Clone, Debug)]
struct Work {
    task: TaskMessage,
    claim: Claim,
    step: Step,
}

/// All workers.
pub(crate) struct Workers {
    assumptions: Arc<Assumptions>,
    /// By the time at which each goes on, and in the order in which they were taken up.
    work: BTreeMap<(Timestamp, u64), Work>,
    taken: u64,
}

impl Workers {
    pub fn new(assumptions: Arc<Assumptions>) -> Self {
        Self {
            assumptions,
            work: BTreeMap::new(),
            taken: 0,
        }
    }

    /// When one goes on next.
    pub fn next(&self) -> Option<Timestamp> {
        self.work.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes a task up.
    pub fn take(&mut self, task: TaskMessage, now: Timestamp) {
        let claim = Claim {
            host_id: task.host_id,
            attempt: task.attempt,
            generation: task.generation,
            kind: task.job.kind(),
            worker: NAME.to_owned(),
            claim_id: Uuid::new_v4(),
        };
        self.put(
            now,
            Work {
                task,
                claim,
                step: Step::Claim,
            },
        );
    }

    fn put(&mut self, at: Timestamp, work: Work) {
        self.taken += 1;
        self.work.insert((at, self.taken), work);
    }

    /// Goes on with the first that is due; the host that it was about, or none where nothing is due.
    pub async fn go_on(
        &mut self,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<Option<HostId>, SimulationError> {
        let is_due = self.next().is_some_and(|at| at <= now);
        let Some((_, work)) = is_due.then(|| self.work.pop_first()).flatten() else {
            return Ok(None);
        };
        let host_id = work.claim.host_id;
        let host = work.task.host.clone();
        match work.step.clone() {
            Step::Claim => {
                let request = ClaimRequest::Claim(work.claim.clone());
                let reply = engine.answer_claim(request).await;
                let reply = reply.map_err(SimulationError::step(format!(
                    "a task of host {host:?} was claimed"
                )))?;
                self.claimed(work, reply, now);
            }
            Step::Renew(acting) => {
                let request = ClaimRequest::Renew(work.claim.clone());
                let reply = engine.answer_claim(request).await;
                let reply =
                    reply.map_err(SimulationError::step(format!("a task of host {host:?} went on")))?;
                if matches!(reply, ClaimReply::Granted { .. }) {
                    self.act(work, acting, now);
                }
            }
            Step::Finish(acting) => {
                let result = self.result(&work, &acting, now);
                let taken = engine.take_result(result).await;
                taken.map_err(SimulationError::step(format!("a task of host {host:?} ended")))?;
            }
        }
        Ok(Some(host_id))
    }

    fn claimed(&mut self, work: Work, reply: ClaimReply, now: Timestamp) {
        match reply {
            ClaimReply::Granted { budget_ms, lease_ms } => {
                let budget = milliseconds(budget_ms);
                let is_late = self.assumptions.takes >= budget;
                let acting = Acting {
                    began_at: now,
                    ends_at: now + self.assumptions.takes.min(budget - TimeDelta::milliseconds(1)),
                    is_late,
                    renew_every: milliseconds(lease_ms / 2).max(TimeDelta::milliseconds(100)),
                };
                self.act(work, acting, now);
            }
            ClaimReply::Busy { retry_after_ms } => {
                self.put(now + milliseconds(retry_after_ms.max(1)), work);
            }
            ClaimReply::Refused { .. } => {}
        }
    }

    fn act(&mut self, work: Work, acting: Acting, now: Timestamp) {
        let renewed_at = now + acting.renew_every;
        let (at, step) = if renewed_at < acting.ends_at {
            (renewed_at, Step::Renew(acting))
        } else {
            (acting.ends_at, Step::Finish(acting))
        };
        self.put(at, Work { step, ..work });
    }

    fn result(&self, work: &Work, acting: &Acting, now: Timestamp) -> TaskResult {
        let job = &work.task.job;
        let is_failing = self.assumptions.failing.contains(&job.by());
        let claim = work.claim.clone();
        if acting.is_late || is_failing {
            let detail = if acting.is_late {
                "it takes longer than its method is given"
            } else {
                "it is assumed to fail in this simulation"
            };
            return TaskResult {
                claim,
                outcome: Outcome::Unknown,
                observation: None,
                finding: None,
                detail: detail.to_owned(),
            };
        }
        let after_ms = (now - acting.began_at).num_milliseconds();
        TaskResult {
            claim,
            outcome: Outcome::Confirmed,
            observation: Some(Observation {
                state: wanted(job),
                detail: "simulated".to_owned(),
                observed_at: now,
                after_ms: u64::try_from(after_ms).unwrap_or_default(),
                before: None,
                proves: true,
            }),
            finding: finding(job.kind()),
            detail: String::new(),
        }
    }
}

fn milliseconds(count: u64) -> TimeDelta {
    TimeDelta::milliseconds(i64::try_from(count).unwrap_or(i64::MAX / 4))
}

fn wanted(job: &Job) -> ObservedState {
    match job {
        Job::Fencing { kind, .. } => kind.wanted_state(),
        Job::Step { .. } => ObservedState::Done,
    }
}

/// No host has workloads.
fn finding(kind: TaskKind) -> Option<Finding> {
    match kind {
        TaskKind::Step(StepKind::List | StepKind::Empty) => Some(Finding::Workloads(Vec::new())),
        TaskKind::Step(_) | TaskKind::Fencing(_) => None,
    }
}
