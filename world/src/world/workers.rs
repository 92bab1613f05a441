//! Workers: messages to them, what they do, and what they say of it.

use chrono::TimeDelta;
use ringfence_core::*;

use super::{Job, World};
use crate::feed::Manner;
use crate::judge;

/// A worker shows that it lives after so long, and is stopped if it may not go on.
const RENEWED_AFTER: TimeDelta = TimeDelta::milliseconds(3_400);

impl World {
    pub fn claim_for(&mut self, dispatch: &Dispatch, worker: &str) -> Claim {
        Claim {
            host_id: dispatch.host_id,
            attempt: dispatch.attempt,
            generation: dispatch.generation,
            kind: dispatch.job.kind(),
            worker: worker.to_owned(),
            claim_id: self.next_id(),
        }
    }

    /// A worker gets the message and claims it. Gives the job's index if it may act.
    pub fn deliver(&mut self, index: usize, worker: &str) -> Result<usize, Refusal> {
        let dispatch = self.sent[index].clone();
        let claim = self.claim_for(&dispatch, worker);
        let asked_at = self.real;
        match self.give(Input::Claim(claim.clone()))? {
            Reply::Granted { budget_ms, .. } => {
                let budget = TimeDelta::milliseconds(i64::try_from(budget_ms).unwrap());
                self.jobs.push(Job {
                    claim,
                    work: dispatch.job,
                    granted_at: self.real,
                    before: None,
                    stops_at: asked_at + budget,
                });
                Ok(self.jobs.len() - 1)
            }
            other => panic!("a claim was answered with {other:?}"),
        }
    }

    /// A worker that has been at it for a while has asked whether it may go on, and was stopped if it may not.
    fn still_acts(&mut self, job: usize) -> bool {
        let (granted_at, claim) = (self.jobs[job].granted_at, self.jobs[job].claim.clone());
        let lets_go = matches!(claim.kind, TaskKind::Step(step) if step.lets_go());
        if lets_go && self.real - granted_at > RENEWED_AFTER && self.give(Input::Renew(claim)).is_err() {
            self.jobs[job].stops_at = self.real;
        }
        self.real < self.jobs[job].stops_at
    }

    /// The worker commands its device, if it still may.
    pub fn command(&mut self, job_at: usize) -> bool {
        if !self.still_acts(job_at) {
            return false;
        }
        match self.jobs[job_at].work.clone() {
            ringfence_core::Job::Step { step, movable, .. } => {
                // The answer that it acts upon may be as old as its last sign of life.
                let is_fresh = self.real - self.told_at <= RENEWED_AFTER;
                let is_excused = is_fresh || judge::is_excused(self, &self.state);
                let site = &self.site;
                self.cloud
                    .command(&step, movable, |uses| is_excused || !site.may_spoil(uses));
            }
            ringfence_core::Job::Fencing { kind, method } => self.act(job_at, kind, &method.name),
        }
        self.settle();
        true
    }

    /// A task that takes is always commanded. A task that releases is read first, and sends no command where the device shows the wanted
    /// state.
    fn act(&mut self, job: usize, kind: FencingKind, method: &str) {
        if kind.releases() {
            let (_, shown) = self.site.report(kind, method);
            self.jobs[job].before = self.jobs[job].before.or(shown);
            if shown == Some(kind.wanted_state()) {
                return;
            }
        }
        self.site.command(kind, method);
    }

    /// The worker reads back and sends its result, if it still may. Gives the index of the message.
    pub fn finish(&mut self, job: usize) -> Option<usize> {
        let job = self.jobs[job].clone();
        if self.real >= job.stops_at {
            return None;
        }
        let (outcome, shown, finding) = match &job.work {
            ringfence_core::Job::Step { step, movable, .. } => self.cloud.report(step, *movable),
            ringfence_core::Job::Fencing { kind, method } => {
                let (outcome, shown) = self.site.report(*kind, &method.name);
                (outcome, shown, None)
            }
        };
        let observed_at = self.real;
        let outcome = match outcome {
            Outcome::Unknown if self.is_sloppy && shown.is_some() => Outcome::Confirmed,
            other => other,
        };
        let proves = self.site.manner(&job.work.by()) != Manner::OnPaper;
        self.results.push(TaskResult {
            claim: job.claim,
            outcome,
            observation: shown.map(|state| Observation {
                state,
                detail: state.as_str().to_owned(),
                observed_at,
                after_ms: u64::try_from((observed_at - job.granted_at).num_milliseconds()).unwrap_or(0),
                before: job.before,
                proves,
            }),
            finding,
            detail: String::new(),
        });
        Some(self.results.len() - 1)
    }

    /// The worker reads back, and what it reports arrives.
    pub fn complete(&mut self, job: usize) -> Reply {
        let result = self.finish(job).expect("there is time left");
        self.deliver_result(result)
    }

    pub fn deliver_result(&mut self, index: usize) -> Reply {
        let result = self.results[index].clone();
        self.give(Input::Result(result))
            .expect("a result is never refused")
    }

    /// Message, claim, command, observation, result: the whole way of one attempt.
    pub fn work(&mut self, index: usize) {
        let job = self.deliver(index, "worker-1").expect("the claim is granted");
        self.carry_out(job);
    }

    fn carry_out(&mut self, job: usize) {
        assert!(self.command(job));
        self.complete(job);
    }

    /// Does everything that was sent and is still wanted, as an honest worker would. What was sent while more was proven is not granted.
    pub fn work_off(&mut self) {
        let mut next = 0;
        while next < self.sent.len() {
            let attempt = self.sent[next].attempt;
            let open = self
                .state
                .operation
                .as_ref()
                .and_then(|operation| operation.find(attempt));
            let is_open = open.is_some_and(|(_, a)| matches!(a.state, AttemptStatus::Dispatched { .. }));
            if is_open && let Ok(job) = self.deliver(next, "worker-1") {
                self.carry_out(job);
            }
            next += 1;
        }
    }
}
