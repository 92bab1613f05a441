//! A small deterministic world around `decide`: time, messages under way, workers, devices, and a record of all of it.

use std::collections::BTreeSet;
use std::fmt::Write;

use chrono::TimeDelta;
use ringfence_core::*;
use uuid::Uuid;

use crate::cloud::Cloud;
use crate::plans::{self, start};
use crate::site::{Manner, Site};

/// One question to `decide` and its answer.
#[derive(Clone, Debug)]
pub struct Moment {
    pub before: HostState,
    pub input: Input,
    /// By the engine's clock.
    pub now: Timestamp,
    /// By the clock that nobody moves.
    pub real: Timestamp,
    pub said: Result<Decision, Refusal>,
}

/// A worker that was allowed to act.
#[derive(Clone, Debug)]
pub struct Job {
    pub claim: Claim,
    pub method: FrozenMethod,
    pub workload: Option<Box<Workload>>,
    /// It stops before this, by the clock that nobody moves.
    pub stops_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct World {
    pub state: HostState,
    pub plan: FrozenPlan,
    pub now: Timestamp,
    pub real: Timestamp,
    pub wake_at: Option<Timestamp>,
    /// Messages to workers; they stay, since each may arrive any number of times.
    pub sent: Vec<Dispatch>,
    pub jobs: Vec<Job>,
    /// Messages from workers; they stay too.
    pub results: Vec<TaskResult>,
    pub site: Site,
    pub cloud: Cloud,
    pub trace: Vec<Moment>,
    pub log: Vec<String>,
    /// Every service is started anew after each decision.
    pub restarts: bool,
    /// What is known of the queues.
    queues: Queues,
    /// How the other hosts of the segment stand, beside this one.
    pub others: Neighbourhood,
    ids: u128,
}

impl World {
    pub fn new(plan: FrozenPlan, policy: SegmentPolicy) -> Self {
        Self {
            site: Site::new(&plan, policy.self_fencing_timeout_s, start()),
            state: HostState {
                host: plans::host(),
                operation: None,
                policy,
                clock_set_at: None,
            },
            plan,
            now: start(),
            real: start(),
            wake_at: None,
            cloud: Cloud::default(),
            sent: Vec::new(),
            jobs: Vec::new(),
            results: Vec::new(),
            trace: Vec::new(),
            log: Vec::new(),
            restarts: true,
            queues: Queues::Moving(BTreeSet::new()),
            others: Neighbourhood {
                hosts: 9,
                ..Neighbourhood::default()
            },
            ids: 0x1000,
        }
    }

    pub fn next_id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    /// Asks, commits, and writes down everything.
    pub fn give(&mut self, input: Input) -> Result<Answer, Refusal> {
        let said = decide(&self.state, input.clone(), self.now);
        self.trace.push(Moment {
            before: self.state.clone(),
            input,
            now: self.now,
            real: self.real,
            said: said.clone(),
        });
        let decision = said?;
        for effect in &decision.effects {
            self.take_effect(effect);
        }
        self.wake_at = decision.wake_at;
        self.state = reread(decision.state, self.restarts);
        self.settle();
        Ok(decision.answer)
    }

    pub fn settle(&mut self) {
        let may_start = self.state.host.fencing_state == FencingState::Unfenced;
        self.site.settle(self.real, may_start);
    }

    fn take_effect(&mut self, effect: &Effect) {
        let at = (self.now - start()).num_milliseconds();
        let mut line = format!("{}.{}", at / 1000, at % 1000 / 100);
        match effect {
            Effect::Dispatch(dispatch) => {
                let (n, kind, method) = (dispatch.attempt.number, dispatch.kind, &dispatch.method.name);
                let _ = write!(line, " send {n} {kind} {method}");
                self.sent.push((**dispatch).clone());
            }
            Effect::Event(event) => {
                let _ = write!(line, " {}", event.kind);
                let _ = write!(line, "{}", particulars(event));
            }
            Effect::Note(note) => {
                let _ = write!(line, " note {}", note.action);
                if let Some(why) = note.detail.get("why").and_then(|why| why.as_str()) {
                    let _ = write!(line, ": {why}");
                }
            }
        }
        self.log.push(line);
    }

    /// Lets time pass; the engine ticks the host whenever it asked for it.
    pub fn pass(&mut self, milliseconds: i64) {
        let end = self.now + TimeDelta::milliseconds(milliseconds);
        while let Some(at) = self.wake_at.filter(|at| *at <= end) {
            let step = (at - self.now).max(TimeDelta::zero());
            self.now += step;
            self.real += step;
            self.settle();
            self.tick();
        }
        self.real += end - self.now;
        self.now = end;
        self.settle();
    }

    /// Lets time pass while no engine is there.
    pub fn pass_unseen(&mut self, milliseconds: i64) {
        let step = TimeDelta::milliseconds(milliseconds);
        self.now += step;
        self.real += step;
        self.settle();
    }

    /// Moves the engine's clock and nothing else.
    pub fn move_clock(&mut self, seconds: i64) {
        self.now += TimeDelta::seconds(seconds);
    }

    /// Whether workers take power tasks, only not those of this host yet.
    pub fn line_moves(&mut self, moves: bool) {
        let line = moves.then(|| Line {
            resource: Resource::Power,
            zone: "here".to_owned(),
        });
        self.queues = Queues::Moving(line.into_iter().collect());
    }

    /// Nobody can take anything from any queue, until somebody says what moves.
    pub fn broker_goes_away(&mut self) {
        self.queues = Queues::Away;
    }

    pub fn tick(&mut self) {
        let queues = self.queues.clone();
        self.give(Input::Tick { queues })
            .expect("a tick is never refused");
        if fence_due(&self.state).is_some_and(|due| due <= self.now) {
            let plan = Ok(self.plan.clone());
            self.auto_fence(plan);
        }
    }

    /// What an engine does with a host that is due.
    pub fn auto_fence(&mut self, plan: Result<FrozenPlan, String>) -> Answer {
        let Neighbourhood {
            hosts,
            out_of_service,
            lately,
            ..
        } = self.others;
        let input = Input::AutoFence {
            operation_id: OperationId(self.next_id()),
            plan,
            sufficient_sets: self.plan.sufficient_sets.clone(),
            around: Neighbourhood {
                hosts: hosts + 1,
                out_of_service: out_of_service + 1,
                lately: lately + 1,
                ..self.others
            },
        };
        self.give(input).expect("it is never refused")
    }

    pub fn claim_for(&mut self, dispatch: &Dispatch, worker: &str) -> Claim {
        Claim {
            host_id: dispatch.host_id,
            attempt: dispatch.attempt,
            generation: dispatch.generation,
            kind: dispatch.kind,
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
            Answer::Granted { budget_ms, .. } => {
                let budget = TimeDelta::milliseconds(i64::try_from(budget_ms).unwrap());
                self.jobs.push(Job {
                    claim,
                    method: dispatch.method,
                    workload: dispatch.workload,
                    stops_at: asked_at + budget,
                });
                Ok(self.jobs.len() - 1)
            }
            other => panic!("a claim was answered with {other:?}"),
        }
    }

    /// The worker commands its device, if it still may.
    pub fn command(&mut self, job: usize) -> bool {
        let job = &self.jobs[job];
        if self.real >= job.stops_at {
            return false;
        }
        let kind = job.claim.kind;
        if kind.resource() == Resource::Workloads {
            let host = job.method.parameters.get("host").map_or("", String::as_str);
            let is_safe = self.nothing_can_run();
            self.cloud.command(kind, host, job.workload.as_deref(), is_safe);
        } else {
            self.site.command(kind, &job.method.name);
        }
        self.settle();
        true
    }

    /// Whether everything that one of the sufficient sets stands for is so.
    pub fn nothing_can_run(&self) -> bool {
        let holds = |set: &SufficientSet| !set.is_empty() && set.iter().all(|kind| self.site.holds(*kind));
        self.plan.sufficient_sets.iter().any(holds)
    }

    /// The worker reads back and sends its result, if it still may. Gives the index of the message.
    pub fn finish(&mut self, job: usize) -> Option<usize> {
        let job = self.jobs[job].clone();
        if self.real >= job.stops_at {
            return None;
        }
        let kind = job.claim.kind;
        let (outcome, shown, finding) = if kind.resource() == Resource::Workloads {
            self.cloud.report(kind, job.workload.as_deref())
        } else {
            let (outcome, shown) = self.site.report(kind, &job.method.name);
            (outcome, shown, None)
        };
        let observed_at = self.real;
        let proves = self.site.manner(&job.method.name) != Manner::OnPaper;
        self.results.push(TaskResult {
            claim: job.claim,
            outcome,
            observation: shown.map(|state| Observation {
                state,
                detail: state.as_str().to_owned(),
                observed_at,
                proves,
            }),
            finding,
            detail: String::new(),
        });
        Some(self.results.len() - 1)
    }

    pub fn deliver_result(&mut self, index: usize) -> Answer {
        let result = self.results[index].clone();
        self.give(Input::Result(result))
            .expect("a result is never refused")
    }

    /// Message, claim, command, observation, result: the whole way of one attempt.
    pub fn work(&mut self, index: usize) {
        let job = self.deliver(index, "worker-1").expect("the claim is granted");
        assert!(self.command(job));
        let result = self.finish(job).expect("there is time left");
        self.deliver_result(result);
    }

    /// Does everything that was sent and is still wanted, as an honest worker would.
    pub fn work_off(&mut self) {
        let mut next = 0;
        while next < self.sent.len() {
            let attempt = self.sent[next].attempt;
            let open = self
                .state
                .operation
                .as_ref()
                .and_then(|operation| operation.find(attempt));
            if open.is_some_and(|(_, a)| matches!(a.state, AttemptStatus::Dispatched { .. })) {
                self.work(next);
            }
            next += 1;
        }
    }

    pub fn fence(&mut self) -> Result<Answer, Refusal> {
        let input = Input::Fence {
            operation_id: OperationId(self.next_id()),
            plan: Some(self.plan.clone()),
            reason: "no heartbeat".to_owned(),
            actor: plans::person("anna"),
        };
        self.give(input)
    }

    pub fn rejoin(&mut self, boot_confirmed: bool) -> Result<Answer, Refusal> {
        let input = Input::Rejoin {
            operation_id: OperationId(self.next_id()),
            reason: "repaired".to_owned(),
            actor: plans::person("anna"),
            boot_confirmed,
        };
        self.give(input)
    }

    pub fn confirm(&mut self, generation: u32, actor: Actor, override_up: bool) -> Result<Answer, Refusal> {
        let input = Input::Confirm {
            operation_id: OperationId(self.next_id()),
            generation: Generation(generation),
            reason: "I pulled the plug".to_owned(),
            actor,
            override_up,
            sufficient_sets: self.plan.sufficient_sets.clone(),
        };
        self.give(input)
    }

    pub fn evacuate(&mut self) -> Result<Answer, Refusal> {
        let input = Input::Evacuate {
            operation_id: OperationId(self.next_id()),
            reason: "its servers are missed".to_owned(),
            actor: plans::person("anna"),
        };
        self.give(input)
    }

    pub fn given_back(&mut self, generation: u32, methods: &[&str], actor: Actor) -> Result<Answer, Refusal> {
        let input = Input::GivenBack {
            generation: Generation(generation),
            methods: methods.iter().map(|name| (*name).to_owned()).collect(),
            reason: "the switch was thrown away".to_owned(),
            actor,
        };
        self.give(input)
    }

    pub fn live_id(&self) -> OperationId {
        let live = self.state.operation.as_ref();
        live.map_or(OperationId(Uuid::nil()), |operation| operation.id)
    }

    pub fn cancel(&mut self) -> Result<Answer, Refusal> {
        let operation_id = self.live_id();
        self.give(Input::Cancel {
            operation_id,
            reason: "a mistake".to_owned(),
            actor: plans::person("anna"),
        })
    }

    pub fn retry(&mut self) -> Result<Answer, Refusal> {
        let operation_id = self.live_id();
        self.give(Input::Retry {
            operation_id,
            reason: "mended".to_owned(),
            actor: plans::person("anna"),
        })
    }

    pub fn see(&mut self, state: FailureState) -> Result<Answer, Refusal> {
        self.see_boot(state, None)
    }

    pub fn see_boot(&mut self, state: FailureState, boot: Option<&str>) -> Result<Answer, Refusal> {
        let observed_at = self.now;
        match state {
            FailureState::Up => self.site.set_contact(true, self.real),
            FailureState::Unreachable => self.site.set_contact(false, self.real),
            FailureState::Unknown => {}
        }
        let boot = boot.map(|id| Boot {
            id: Some(id.to_owned()),
            booted_at: None,
            observed_at,
        });
        let input = Input::FailureState {
            operation_id: OperationId(self.next_id()),
            state,
            source: "monitor".to_owned(),
            observed_at,
            boot,
        };
        self.give(input)
    }

    pub fn gates(&self) -> Gates {
        gates(&self.state, self.now)
    }

    pub fn is_fenced(&self) -> bool {
        self.state.host.fencing_state == FencingState::Fenced
    }

    /// The log since it was last taken.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

/// What the database gives back: no operation that has ended, and, where it is read by a service that was started anew,
/// nothing that does not survive as JSON.
fn reread(mut state: HostState, restarts: bool) -> HostState {
    state.operation = state.operation.filter(|operation| operation.status.is_live());
    if restarts {
        state.operation = state.operation.map(|operation| {
            let json = serde_json::to_string(&operation).expect("an operation is JSON");
            serde_json::from_str(&json).expect("and can be read again")
        });
    }
    state
}

fn particulars(event: &Event) -> String {
    let text = |name: &str| event.data.get(name).and_then(|v| v.as_str()).map(str::to_owned);
    let generation = event.data.get("generation").and_then(serde_json::Value::as_u64);
    let proof = event
        .data
        .get("proof")
        .and_then(|p| p.get("kind"))
        .and_then(|k| k.as_str());
    match event.kind {
        EventKind::OperationProof => format!(" {}", proof.unwrap_or_default()),
        EventKind::OperationStarted => {
            format!(
                " {} {}",
                text("kind").unwrap_or_default(),
                generation.unwrap_or_default()
            )
        }
        EventKind::HostFenced | EventKind::HostUnfenced => format!(" {}", generation.unwrap_or_default()),
        EventKind::HostFailureState => format!(" {}", text("to").unwrap_or_default()),
        EventKind::OperationNeedsOperator
        | EventKind::OperationRestarted
        | EventKind::OperationSucceeded
        | EventKind::OperationCancelled => format!(": {}", text("detail").unwrap_or_default()),
        EventKind::WorkloadMoving | EventKind::WorkloadMoved | EventKind::WorkloadNotMoved => {
            let workload = event.data.get("workload").and_then(|w| w.get("name"));
            let name = workload
                .and_then(|name| name.as_str())
                .unwrap_or_default()
                .to_owned();
            text("to").map_or_else(|| format!(" {name}"), |to| format!(" {name} to {to}"))
        }
        EventKind::HostCreated
        | EventKind::HostUpdated
        | EventKind::HostDeleted
        | EventKind::SubscriptionDisabled => String::new(),
    }
}
