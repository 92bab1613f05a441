//! A small deterministic world around `decide`: time, messages under way, workers, devices, and a record of all of it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use ringfence_core::*;
use uuid::Uuid;

use crate::cloud::Cloud;
use crate::feed::Manner;
use crate::judge::{self, Violation};
use crate::plans::{self, start};
use crate::site::Site;
use crate::told::line;

/// A worker shows that it lives after so long, and is stopped if it may not go on.
const RENEWED_AFTER: TimeDelta = TimeDelta::milliseconds(3_400);

/// One question to `decide` and its answer.
#[derive(Clone, Debug)]
pub struct Moment {
    pub before: HostState,
    pub input: Input,
    /// By the engine's clock.
    pub now: Timestamp,
    /// By the clock that is never set.
    pub real: Timestamp,
    pub said: Result<Decision, Refusal>,
}

/// A worker that was allowed to act.
#[derive(Clone, Debug)]
pub struct Job {
    pub claim: Claim,
    pub work: ringfence_core::Job,
    /// When it was allowed to act, by the clock that is never set.
    pub granted_at: Timestamp,
    /// What it has read before its first command.
    pub before: Option<ObservedState>,
    /// It stops before this, by that clock too.
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
    /// Whether what happens is written down.
    pub records: bool,
    /// Its workers say that it is done whatever they have read.
    pub is_sloppy: bool,
    /// What each source said last when it saw the host, by the engine's clock.
    pub last_seen: BTreeMap<String, Timestamp>,
    /// What must never be and was.
    pub violation: Option<Violation>,
    /// A person has said what was not so: what follows from that is no fault of the rules.
    pub is_hearsay: bool,
    /// When the host was last decided upon, by the engine's clock.
    pub last_decided: Timestamp,
    /// The newest sign of life that a report which arrived was about, by the clock that is never set.
    pub told_alive_at: Timestamp,
    /// When the last report of a sign of life arrived, by the clock that is never set.
    pub told_at: Timestamp,
    /// The newest boot that a report which arrived was about.
    pub told_boot: u32,
    /// What is known of the queues.
    pub queues: Queues,
    /// How the other hosts of the segment stand, beside this one.
    pub others: Neighbourhood,
    /// The number of the last id.
    pub ids: u128,
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
            records: true,
            is_sloppy: false,
            last_seen: BTreeMap::new(),
            violation: None,
            is_hearsay: false,
            last_decided: start(),
            told_alive_at: start(),
            told_at: start() - TimeDelta::hours(1),
            told_boot: 1,
            queues: Queues::unknown(),
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
    pub fn give(&mut self, input: Input) -> Result<Reply, Refusal> {
        let said = decide(&self.state, input.clone(), self.now);
        if self.records {
            self.trace.push(Moment {
                before: self.state.clone(),
                input,
                now: self.now,
                real: self.real,
                said: said.clone(),
            });
        }
        let decision = said?;
        for effect in &decision.effects {
            self.take_effect(effect);
        }
        self.wake_at = decision.wake_at;
        self.last_decided = self.now;
        judge::decision(self, &decision);
        let has_changed = decision.state.host != self.state.host;
        self.state = reread(decision.state, self.restarts);
        if has_changed {
            self.state.host.updated_at = self.now;
        }
        self.settle();
        Ok(decision.answer)
    }

    /// Nature takes its course until now.
    pub fn settle(&mut self) {
        self.site.pass(self.real);
        judge::now(self);
    }

    /// The agent of a host that fences itself says that it lives, and asks whether it may start its workloads: in this order, so that
    /// no proof of its silence can stand against what it starts.
    fn agent_asks(&mut self) {
        if !self.site.asks() {
            return;
        }
        self.told_boot = self.site.boot;
        self.told_alive_at = self.real;
        drop(self.say("agent", FailureState::Up, 0, None));
        if gates(&self.state, self.now).schedule.allowed {
            self.site.may_start();
        }
    }

    fn take_effect(&mut self, effect: &Effect) {
        if self.records {
            self.log.push(line(effect, self.now));
        }
        if let Effect::Dispatch(dispatch) = effect {
            self.sent.push((**dispatch).clone());
        }
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
        let line = moves.then(|| TaskQueue {
            resource: Resource::Power,
            zone: "here".to_owned(),
        });
        self.queues = Queues::There {
            moving: line.into_iter().collect(),
            empty: BTreeSet::new(),
            began_at: None,
        };
    }

    /// Workers serve the queue of power tasks, and none waits in it.
    pub fn line_is_empty(&mut self) {
        let line = TaskQueue {
            resource: Resource::Power,
            zone: "here".to_owned(),
        };
        self.queues = Queues::There {
            moving: BTreeSet::new(),
            empty: [line].into(),
            began_at: None,
        };
    }

    /// The bus begins anew, without what was sent before.
    pub fn bus_begins_anew(&mut self) {
        self.queues = Queues::There {
            moving: BTreeSet::new(),
            empty: BTreeSet::new(),
            began_at: Some(self.now),
        };
    }

    /// No worker can take a task from any queue, until the story says which queues move.
    pub fn broker_goes_away(&mut self) {
        self.queues = Queues::Away;
    }

    pub fn tick(&mut self) {
        self.agent_asks();
        let queues = self.queues.clone();
        self.give(Input::Tick { queues })
            .expect("a tick is never refused");
        if fence_due(&self.state).is_some_and(|due| due <= self.now) {
            let plan = Ok(self.plan.clone());
            self.auto_fence(plan);
        }
    }

    /// What an engine does with a host that is due.
    pub fn auto_fence(&mut self, plan: Result<FrozenPlan, String>) -> Reply {
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
        let is_move = claim.kind == StepKind::Move;
        if is_move && self.real - granted_at > RENEWED_AFTER && self.give(Input::Renew(claim)).is_err() {
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
            ringfence_core::Job::Step { step, .. } => {
                // The answer that it acts upon may be as old as its last sign of life.
                let is_fresh = self.real - self.told_at <= RENEWED_AFTER;
                let is_safe = !self.site.harm() || is_fresh || judge::is_excused(self, &self.state);
                self.cloud.command(&step, is_safe);
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
            ringfence_core::Job::Step { step, .. } => self.cloud.report(step),
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
        assert!(self.command(job));
        self.complete(job);
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

    pub fn fence(&mut self) -> Result<Reply, Refusal> {
        let input = Input::Fence {
            operation_id: OperationId(self.next_id()),
            plan: Some(self.plan.clone()),
            reason: "no heartbeat".to_owned(),
            actor: plans::person("anna"),
        };
        self.give(input)
    }

    pub fn rejoin(&mut self, boot_confirmed: bool) -> Result<Reply, Refusal> {
        self.is_hearsay |= boot_confirmed;
        let input = Input::Rejoin {
            operation_id: OperationId(self.next_id()),
            reason: "repaired".to_owned(),
            actor: plans::person("anna"),
            boot_confirmed,
        };
        self.give(input)
    }

    pub fn confirm(&mut self, generation: u32, actor: Actor, override_up: bool) -> Result<Reply, Refusal> {
        self.is_hearsay |= self.site.harm();
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

    pub fn evacuate(&mut self) -> Result<Reply, Refusal> {
        let input = Input::Evacuate {
            operation_id: OperationId(self.next_id()),
            reason: "its servers are missed".to_owned(),
            actor: plans::person("anna"),
        };
        self.give(input)
    }

    pub fn released(&mut self, generation: u32, methods: &[&str], actor: Actor) -> Result<Reply, Refusal> {
        let input = Input::ConfirmReleased {
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

    pub fn cancel(&mut self) -> Result<Reply, Refusal> {
        let operation_id = self.live_id();
        self.give(Input::Cancel {
            operation_id,
            reason: "a mistake".to_owned(),
            actor: plans::person("anna"),
        })
    }

    pub fn retry(&mut self) -> Result<Reply, Refusal> {
        let operation_id = self.live_id();
        self.give(Input::Retry {
            operation_id,
            reason: "mended".to_owned(),
            actor: plans::person("anna"),
        })
    }

    pub fn see(&mut self, state: FailureState) -> Result<Reply, Refusal> {
        self.see_boot(state, None)
    }

    pub fn see_boot(&mut self, state: FailureState, boot: Option<&str>) -> Result<Reply, Refusal> {
        match state {
            FailureState::Up => {
                self.site.link("monitor", true);
                self.site.wake_up();
                self.told_boot = self.site.boot;
                self.told_alive_at = self.real;
            }
            FailureState::Unreachable => self.site.link("monitor", false),
            FailureState::Unknown => {}
        }
        let boot = boot.map(|id| Boot {
            id: Some(id.to_owned()),
            booted_at: None,
        });
        self.say("monitor", state, 0, boot)
    }

    /// A source says what it saw so many milliseconds ago, whether it is so or not.
    pub fn say(
        &mut self,
        source: &str,
        state: FailureState,
        age_ms: i64,
        boot: Option<Boot>,
    ) -> Result<Reply, Refusal> {
        let observed_at = self.now - TimeDelta::milliseconds(age_ms);
        let known = self.last_seen.get(source).copied();
        let is_up = state == FailureState::Up;
        if is_up {
            self.last_seen.insert(
                source.to_owned(),
                known.map_or(observed_at, |at| at.max(observed_at)),
            );
        }
        self.report(Report {
            state,
            source: source.to_owned(),
            observed_at,
            last_seen_at: known.filter(|_| !is_up),
            silent_since: None,
            boot,
        })
    }

    /// A report arrives.
    pub fn report(&mut self, report: Report) -> Result<Reply, Refusal> {
        if report.alive_at().is_some() {
            self.told_at = self.real;
        }
        let operation_id = OperationId(self.next_id());
        self.give(Input::FailureState { operation_id, report })
    }

    /// The monitor says UNREACHABLE every five seconds, for so long.
    pub fn stays_silent(&mut self, seconds: i64) {
        for _ in 0..seconds / 5 {
            self.pass(5_000);
            drop(self.see(FailureState::Unreachable));
        }
        self.pass(seconds % 5 * 1_000);
    }

    pub fn gates(&self) -> Gates {
        gates(&self.state, self.now)
    }

    pub fn is_fenced(&self) -> bool {
        self.state.host.fence.is_some()
    }

    /// Compares what was logged since the last time, and asks whether anything was that must never be.
    #[track_caller]
    pub fn expect(&mut self, lines: &[&str]) {
        assert_eq!(self.violation, None);
        let log = self.take_log();
        assert_eq!(log, lines, "\ngot:\n{}\n", log.join("\n"));
    }

    /// Compares the last line that was logged.
    #[track_caller]
    pub fn expect_last(&mut self, line: &str) {
        assert_eq!(self.take_log().last().map(String::as_str), Some(line));
    }

    /// The log since it was last taken.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

/// What the database returns: no operation that has ended and, where a restarted service reads it, nothing that does not survive as JSON.
fn reread(mut state: HostState, restarts: bool) -> HostState {
    state.operation = state.operation.filter(|operation| operation.status.is_live());
    if restarts {
        let host = &mut state.host;
        host.sources = through_json(&host.sources);
        host.fence = through_json(&host.fence);
        host.applied.fencing = through_json(&host.applied.fencing);
        host.in_flight = through_json(&host.in_flight);
        state.operation = through_json(&state.operation);
    }
    state
}

fn through_json<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let json = serde_json::to_string(value).expect("what is kept is JSON");
    serde_json::from_str(&json).expect("and can be read again")
}
