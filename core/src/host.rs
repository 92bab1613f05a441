//! Hosts: what is known of each, and what has to be remembered between operations.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::guard::{Guard, on};
use crate::{
    Alarms, AttemptId, Conditions, Fence, FencingKind, Flapping, FrozenMethod, Generation, HostId, Kdump,
    Labels, MethodId, Operation, Parameters, ProofKind, Resource, SegmentId, SegmentPolicy,
    SharedSuspensions, Sources, StepKind, Suspension, TaskKind, Timestamp, words,
};

/// Where a host's workloads live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Backend {
    /// OpenStack Nova.
    Nova,
    /// Kubernetes.
    Kubernetes,
    /// Nowhere that Ringfence can see: workload steps are skipped.
    #[default]
    None,
}

words!(Backend);

/// What the observers last saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "UPPERCASE")]
pub enum FailureState {
    /// The host answers.
    Up,
    /// The host does not answer.
    Unreachable,
    /// It is not known whether the host answers.
    #[default]
    Unknown,
}

words!(FailureState);

/// What has been proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "UPPERCASE")]
pub enum FencingState {
    /// Nothing: the host may run and write.
    #[default]
    Unfenced,
    /// The host's workloads can neither run nor write.
    Fenced,
}

words!(FencingState);

/// Applied fencing of one method: what a fence took from the host (or may have taken) and that was not read as released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedFencing {
    /// The fencing task.
    pub kind: FencingKind,
    /// The way it was done, as it was then: an edited or deleted method does not lose what has to be undone.
    pub method: FrozenMethod,
    /// The first attempt that may have taken it. Should that one be refused, nothing was taken.
    pub attempt: AttemptId,
    /// By when it was taken for certain, if it was: the boot that ran until then is the one that was cut off.
    pub by: Timestamp,
    /// Whether its device has shown since the last claim that it was taken: what comes late takes nothing more.
    pub is_shown: bool,
}

/// Everything that fences took from a host (or may have taken) and that was not read as released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// By devices, ordered by kind and method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fencing: Vec<AppliedFencing>,
    /// The first attempt that may have told the host's platform that the host is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked_down_by: Option<AttemptId>,
}

impl Applied {
    /// Whether nothing has to be released.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fencing.is_empty() && self.marked_down_by.is_none()
    }
}

/// A claimed attempt whose worker may still be acting, whatever has become of its operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its generation.
    pub generation: Generation,
    /// What it does.
    pub kind: TaskKind,
    /// By which method; `None` for a workload step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodId>,
    /// The claim under which it acts: only a result of this claim says that it has stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<Uuid>,
    /// Nothing comes of it any more after this: the worker has stopped by itself, and its device no longer carries out what it was told.
    pub until: Timestamp,
    /// Whether it only looks at what another worker may have begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_looks: bool,
    /// How long that was from the moment at which it was known, in milliseconds. When the clock is set, this is what remains of it at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_ms: Option<u64>,
}

/// A hypervisor or node that can be fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its id.
    pub id: HostId,
    /// Its name, unique.
    pub name: String,
    /// Its segment.
    pub segment_id: SegmentId,
    /// Where its workloads live.
    pub backend: Backend,
    /// Which of the clouds or clusters in the configuration that is.
    pub cloud: Option<String>,
    /// The name by which its backend knows it, where that is not its own.
    pub known_as: Option<String>,
    /// The group of hosts that share a plan.
    pub host_type: Option<String>,
    /// The part of the site from which its devices can be reached; a worker serves one or more zones.
    pub zone: String,
    /// What an operator tells it apart by.
    pub labels: Labels,
    /// Values that this host gives to the parameters of methods, by method name.
    pub parameters: BTreeMap<String, Parameters>,
    /// What each source saw.
    pub sources: Sources,
    /// What that came to when it was last looked at.
    pub failure_state: FailureState,
    /// The source that it rests on.
    pub failure_source: Option<String>,
    /// When that source saw it.
    pub failure_observed_at: Option<Timestamp>,
    /// Since when, by the engine's clock, the failure state has been what it is.
    pub failure_since: Option<Timestamp>,
    /// What sources say is wrong with it.
    pub conditions: Conditions,
    /// Its own suspension, if a person has suspended it.
    pub suspension: Option<Suspension>,
    /// How often it was fenced lately.
    pub flapping: Flapping,
    /// Which of its problems come too often.
    pub alarms: Alarms,
    /// When the storm brake last held a fence of it.
    pub braked_at: Option<Timestamp>,
    /// The crash dump that it writes, or that it has written since its operation began.
    pub kdump: Option<Kdump>,
    /// Advanced by each fence and rejoin.
    pub generation: Generation,
    /// What FENCED rests on; `None` while the host is UNFENCED.
    pub fence: Option<Fence>,
    /// Whether something has begun since it was last seen UP, while it was UNREACHABLE: it is not fenced without being asked then.
    pub is_silence_answered: bool,
    /// Until when something may have been released to the host: its own signs of self-fencing before that count no more.
    pub released_at: Option<Timestamp>,
    /// Until when the host may last have been switched off: a sign of life from before says nothing about its power.
    pub last_off_at: Option<Timestamp>,
    /// What fences have taken from it.
    pub applied: Applied,
    /// What may be acting on it.
    pub in_flight: Vec<InFlight>,
    /// The number of its last event.
    pub event_sequence: u64,
    /// Counts its changes; the API's entity tag.
    pub revision: u64,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl HostState {
    /// A host that nothing but its segment's policy concerns, as seen by an engine whose clock was not set.
    #[must_use]
    pub fn new(host: Host, operation: Option<Operation>, policy: SegmentPolicy) -> Self {
        Self {
            host,
            operation,
            policy,
            shared: SharedSuspensions::default(),
            clock_set_at: None,
        }
    }
}

impl Host {
    /// What has been proven.
    #[must_use]
    pub fn fencing_state(&self) -> FencingState {
        match self.fence {
            Some(_) => FencingState::Fenced,
            None => FencingState::Unfenced,
        }
    }

    /// The fence of the present generation: FENCED, and no rejoin or newer fence has begun since.
    #[must_use]
    pub fn current_fence(&self) -> Option<&Fence> {
        self.fence
            .as_ref()
            .filter(|fence| fence.generation == self.generation)
    }

    /// The fence of the present generation, if its proofs still hold.
    #[must_use]
    pub fn good_fence(&self) -> Option<&Fence> {
        self.current_fence().filter(|fence| fence.holds())
    }

    /// Whether something may still be taken from the host.
    #[must_use]
    pub fn fencing_in_flight(&self, now: Timestamp) -> Option<&InFlight> {
        self.in_flight.iter().find(|f| f.until > now && f.kind.takes())
    }

    /// Whether the host was seen UP since it was FENCED and since it was last switched off.
    ///
    /// A clock that was set forward may date a sign of life from before that after everything else.
    #[must_use]
    pub fn is_seen_back(&self, clock_set_at: Option<Timestamp>) -> bool {
        let fenced_at = self.fence.as_ref().map(|fence| fence.at);
        let Some(alive_at) = self.sources.alive_at() else {
            return false;
        };
        let set_at = clock_set_at.filter(|_| on(Guard::SeenSinceClockSet));
        let is_since = |at: Option<Timestamp>, by: TimeDelta| {
            at.is_none_or(|at| alive_at >= set_at.max(Some(at)).unwrap_or(at) + by)
        };
        let is_since_the_fence = is_since(fenced_at, TimeDelta::zero()) || !on(Guard::BackSinceFence);
        let is_since_the_off = is_since(self.last_off_at, SEEN_AFTER_OFF) || !on(Guard::BackSinceOff);
        self.failure_state == FailureState::Up && is_since_the_fence && is_since_the_off
    }

    /// Why the boot that the host runs, or will run, may not have back what was taken from it; `None` if it may.
    ///
    /// The boot that was cut off never may: it has to have begun after everything was taken. A host that was seen to have stopped
    /// after that shows it by itself; where it did not, a source has to show a newer boot. A boot from before a stop that is seen
    /// after it shows that something about that stop is not true.
    #[must_use]
    pub fn old_boot(&self, clock_set_at: Option<Timestamp>) -> Option<OldBoot> {
        let stopped_at = self.fence.as_ref().and_then(Fence::stopped_at);
        let survivor = stopped_at.and_then(|at| self.sources.older_boot_seen(at, clock_set_at));
        if survivor.is_some() && on(Guard::StopLeavesNoBoot) {
            return Some(OldBoot::OutlivedItsStop);
        }
        let cut_by = self.cut_off().map(|standing| standing.by).max()?;
        let has_booted = self.sources.has_booted_since(cut_by, clock_set_at);
        let has_stopped = self
            .fence
            .as_ref()
            .is_some_and(|fence| fence.has_stopped_since(cut_by));
        let is_newer = has_stopped || has_booted;
        (!is_newer && on(Guard::CutBootStaysCut)).then_some(OldBoot::CutOff)
    }

    /// Nothing comes any more of what an attempt has done; the last moment at which it could was `at`.
    pub(crate) fn is_over(&mut self, f: &InFlight, at: Timestamp) {
        if f.kind.releases() && on(Guard::StoppedUndoingIsNoted) {
            self.released(at);
        }
        if f.kind == FencingKind::PowerOff && on(Guard::StoppedOffIsNoted) {
            self.last_off_at = self.last_off_at.max(Some(at));
        }
        if f.kind.takes() && on(Guard::TakenLateIsNoted) {
            let may_be_taken = |standing: &&mut AppliedFencing| f.kind == standing.kind && !standing.is_shown;
            let taken_late = self.applied.fencing.iter_mut().filter(may_be_taken);
            taken_late.for_each(|standing| standing.by = standing.by.max(at));
        }
    }

    /// Notes that something may have been released to the host until `at`: its own signs of self-fencing before that count no more.
    pub(crate) fn released(&mut self, at: Timestamp) {
        self.released_at = self.released_at.max(Some(at));
    }

    /// Whether workloads of the host may still be started elsewhere by an attempt: the one that may last longest.
    #[must_use]
    pub fn letting_go_in_flight(&self, now: Timestamp) -> Option<&InFlight> {
        let lets_go = |f: &&InFlight| matches!(f.kind, TaskKind::Step(step) if step.lets_go());
        let acting = self.in_flight.iter().filter(|f| f.until > now);
        acting.filter(lets_go).max_by_key(|f| f.until)
    }

    /// The first attempt that may still be acting and that `kind` must not overlap with: one that acts on the resource of `kind` in the
    /// opposite direction, or one that lets workloads go while `kind` releases something to the host.
    #[must_use]
    pub fn opposite_in_flight(&self, kind: TaskKind, now: Timestamp) -> Option<&InFlight> {
        let is_opposite = |other: TaskKind| match (other, kind) {
            (TaskKind::Step(step), _)
                if step.lets_go() && (step == StepKind::Move || on(Guard::ReleaseWaitsForSteps)) =>
            {
                kind.releases() || kind == StepKind::CleanUp
            }
            (TaskKind::Fencing(other), TaskKind::Fencing(kind)) => {
                other.resource() == kind.resource() && other.releases() != kind.releases()
            }
            (TaskKind::Step(other), TaskKind::Step(kind)) => {
                let is_look = other.only_looks() || kind.only_looks();
                !is_look && other.releases() != kind.releases()
            }
            (TaskKind::Fencing(_), TaskKind::Step(_)) | (TaskKind::Step(_), TaskKind::Fencing(_)) => false,
        };
        self.in_flight
            .iter()
            .find(|f| f.until > now && !f.only_looks && is_opposite(f.kind))
    }

    /// Whether what was proven of the host has ended, so that nothing more of it may be let go.
    #[must_use]
    pub fn is_back(&self) -> bool {
        self.failure_state == FailureState::Up || self.good_fence().is_none()
    }

    /// Whether nothing that was started on it can still be there: it was proven to have stopped, and was not seen since.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        let is_stopped = |fence: &Fence| fence.holding_sets().flatten().any(|kind| kind.says_stopped());
        self.failure_state == FailureState::Unreachable && self.good_fence().is_some_and(is_stopped)
    }

    /// Whether storage or network fencing still stands.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.cut_off().next().is_some()
    }

    fn cut_off(&self) -> impl Iterator<Item = &AppliedFencing> {
        let is_cut = |standing: &&AppliedFencing| {
            matches!(standing.kind.resource(), Resource::Storage | Resource::Network)
        };
        self.applied.fencing.iter().filter(is_cut)
    }

    /// The attempt that may still undo a proof of this kind, the one that lasts longest.
    #[must_use]
    pub fn undoing_in_flight(&self, proof: ProofKind, now: Timestamp) -> Option<&InFlight> {
        let undoes = |f: &&InFlight| f.until > now && proof.is_undone_by(f.kind);
        self.in_flight.iter().filter(undoes).max_by_key(|f| f.until)
    }
}

/// A sign of life has to be so much newer than an off to be one of the time after it: the clocks of sources and engines differ, and no host
/// boots in less.
const SEEN_AFTER_OFF: TimeDelta = TimeDelta::seconds(5);

/// Why a host may not have back what was taken from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldBoot {
    /// It was cut off, and has shown no boot that began after that.
    CutOff,
    /// It was proven to have stopped, and runs a boot from before.
    OutlivedItsStop,
}

/// All that one decision needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// The host.
    pub host: Host,
    /// Its live operation: running, or waiting for an operator.
    pub operation: Option<Operation>,
    /// What its segment says.
    pub policy: SegmentPolicy,
    /// The suspensions that it shares with other hosts.
    pub shared: SharedSuspensions,
    /// When the clock of the engine that decides was set to another time, if it was: durations are known from then on only.
    pub clock_set_at: Option<Timestamp>,
}
