//! A small deterministic world around `decide`: time, messages under way, workers, devices, and a record of all of it.

mod asked;
mod dumping;
mod forgetting;
mod leading;
mod time;
mod workers;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::*;
use uuid::Uuid;

use crate::cloud::Cloud;
use crate::judge::{self, Violation};
use crate::plans::{self, start};
use crate::site::Site;
use crate::told::line;
pub use dumping::KdumpHeard;
pub use leading::{Leading, Process};

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
    /// kdump messages on their way to a worker: when each was sent, by the clock that is never set.
    pub datagrams: Vec<Timestamp>,
    /// What workers say of kdump messages that they have heard; each may arrive any number of times.
    pub kdump_heard: Vec<KdumpHeard>,
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
    /// The records of a cluster, where they are all that lasts.
    pub records_kept: Option<Leading>,
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
    /// What an engine was told when it asked others last.
    pub opinions: Opinions,
    /// The number of the last id.
    pub ids: u128,
}

impl World {
    pub fn new(plan: FrozenPlan, policy: SegmentPolicy) -> Self {
        Self {
            site: Site::new(&plan, policy.self_fencing_timeout_s, start()),
            state: HostState::new(plans::host(), None, policy),
            plan,
            now: start(),
            real: start(),
            wake_at: None,
            cloud: Cloud::default(),
            sent: Vec::new(),
            jobs: Vec::new(),
            results: Vec::new(),
            datagrams: Vec::new(),
            kdump_heard: Vec::new(),
            trace: Vec::new(),
            log: Vec::new(),
            restarts: true,
            records: true,
            is_sloppy: false,
            last_seen: BTreeMap::new(),
            violation: None,
            records_kept: None,
            is_hearsay: false,
            last_decided: start(),
            told_alive_at: start(),
            told_at: start() - TimeDelta::hours(1),
            told_boot: 1,
            queues: Queues::unknown(),
            opinions: Opinions::default(),
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
                input: input.clone(),
                now: self.now,
                real: self.real,
                said: said.clone(),
            });
        }
        let is_claimed = matches!(input, Input::Claim(_) | Input::Renew(_));
        let decision = said?;
        self.keep(&decision.state, is_claimed)?;
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

    /// The agent of a host that asks first says that it lives, and asks whether it may start its workloads: in this order, so that
    /// no proof that it had stopped can stand against what it starts.
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
