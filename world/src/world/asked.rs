//! What people ask for, and what sources say.

use chrono::TimeDelta;
use ringfence_core::*;
use uuid::Uuid;

use super::World;
use crate::plans;

/// The program that asks for fences.
const PROGRAM: &str = "kubernetes";

impl World {
    pub fn fence(&mut self) -> Result<Reply, Refusal> {
        self.ask_for_fence(false)
    }

    /// A program asks: safeguards hold the fence.
    pub fn fence_for_program(&mut self) -> Result<Reply, Refusal> {
        self.ask_for_fence(true)
    }

    /// The program that asks for fences takes back what it has asked for.
    pub fn cancel_by_program(&mut self) -> Result<Reply, Refusal> {
        self.cancel_by(plans::person(PROGRAM))
    }

    fn ask_for_fence(&mut self, heeds_safeguards: bool) -> Result<Reply, Refusal> {
        let input = Input::Fence {
            operation_id: OperationId(self.next_id()),
            plan: Some(self.plan.clone()),
            reason: "no heartbeat".to_owned(),
            actor: asker(heeds_safeguards),
            heeds_safeguards,
        };
        self.give(input)
    }

    pub fn rejoin(&mut self, boot_confirmed: bool) -> Result<Reply, Refusal> {
        self.is_hearsay |= boot_confirmed;
        self.ask_for_rejoin(boot_confirmed, false)
    }

    /// A program asks: a host in quarantine or one that is suspended is not taken back.
    pub fn rejoin_for_program(&mut self) -> Result<Reply, Refusal> {
        self.ask_for_rejoin(false, true)
    }

    fn ask_for_rejoin(&mut self, boot_confirmed: bool, heeds_safeguards: bool) -> Result<Reply, Refusal> {
        let input = Input::Rejoin {
            operation_id: OperationId(self.next_id()),
            reason: "repaired".to_owned(),
            actor: asker(heeds_safeguards),
            boot_confirmed,
            heeds_safeguards,
        };
        self.give(input)
    }

    pub fn confirm(&mut self, generation: u32, actor: Actor, override_up: bool) -> Result<Reply, Refusal> {
        self.is_hearsay |= self.site.harm();
        self.confirm_as_of(self.now, generation, actor, override_up)
    }

    /// A word that was said before it is heard. Whether it was so then is for the caller to know.
    pub fn confirm_as_of(
        &mut self,
        said_at: Timestamp,
        generation: u32,
        actor: Actor,
        override_up: bool,
    ) -> Result<Reply, Refusal> {
        let input = Input::Confirm {
            operation_id: OperationId(self.next_id()),
            generation: Generation(generation),
            said_at,
            reason: "I pulled the plug".to_owned(),
            actor,
            override_up,
            sufficient_sets: self.plan.sufficient_sets.clone(),
        };
        self.give(input)
    }

    pub fn evacuate(&mut self) -> Result<Reply, Refusal> {
        self.ask_for_evacuation(false)
    }

    /// A program asks: a host that is suspended is not evacuated.
    pub fn evacuate_for_program(&mut self) -> Result<Reply, Refusal> {
        self.ask_for_evacuation(true)
    }

    fn ask_for_evacuation(&mut self, heeds_safeguards: bool) -> Result<Reply, Refusal> {
        let input = Input::Evacuate {
            operation_id: OperationId(self.next_id()),
            reason: "its servers are missed".to_owned(),
            actor: asker(heeds_safeguards),
            heeds_safeguards,
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
        self.cancel_by(plans::person("anna"))
    }

    fn cancel_by(&mut self, actor: Actor) -> Result<Reply, Refusal> {
        let operation_id = self.live_id();
        self.give(Input::Cancel {
            operation_id,
            reason: "a mistake".to_owned(),
            actor,
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

    /// A person suspends the host, its segment, or all hosts.
    pub fn suspend(&mut self, scope: SuspensionScope, until: Option<Timestamp>) {
        let (reason, actor) = ("the switch is replaced".to_owned(), plans::person("anna"));
        let by_others = |now| Suspension {
            since: now,
            until,
            by: "anna".to_owned(),
            reason: "the switch is replaced".to_owned(),
        };
        match scope {
            SuspensionScope::Host => drop(self.give(Input::Suspend { until, reason, actor })),
            SuspensionScope::Segment => self.state.shared.segment = Some(by_others(self.now)),
            SuspensionScope::Everything => self.state.shared.everything = Some(by_others(self.now)),
        }
        self.tick();
    }

    /// A person ends that.
    pub fn resume(&mut self, scope: SuspensionScope) {
        let (reason, actor) = ("the switch is there".to_owned(), plans::person("anna"));
        match scope {
            SuspensionScope::Host => drop(self.give(Input::Resume { reason, actor })),
            SuspensionScope::Segment => self.state.shared.segment = None,
            SuspensionScope::Everything => self.state.shared.everything = None,
        }
        self.tick();
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
}

fn asker(heeds_safeguards: bool) -> Actor {
    plans::person(if heeds_safeguards { PROGRAM } else { "anna" })
}
