//! Proofs, and the moment at which they suffice (S1, S8, S12).

use chrono::TimeDelta;
use serde_json::json;

use crate::guard::{Guard, on};
use crate::movable::all_movable_at;
use crate::undoing::{clearly_after, dated_from, may_be_after};
use crate::{
    Attempt, CONTESTED_S, Ended, EventKind, FailureState, Fence, FencingKind, Host, HostState, Movable,
    Operation, OperationKind, OperationStatus, Outcome, Proof, ProofKind, Resource, Stage, SufficientSet,
    Task, TaskKind, TaskStatus, Timestamp, Undoing, Watched, Work, proven_movable,
};

use super::draft::after_s;
use super::{Draft, fence, kdump_proof, power_last};

/// How often a task is begun again because the host was seen UP after the reading that had confirmed it.
const MAX_CONTRADICTED: u32 = 3;

/// Adds a proof to what the live operation has won, and draws the consequences.
pub(super) fn add(draft: &mut Draft, proof: Proof) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    operation.updated_at = now;
    operation.proofs.retain(|known| known.kind != proof.kind);
    operation.proofs.push(proof.clone());
    // As they are listed everywhere: by kind, whichever device answered first.
    operation.proofs.sort_by_key(|proof| proof.kind);
    let (id, generation) = (operation.id, operation.generation);
    let is_of_fence = |fence: &Fence| fence.generation == generation;
    if draft.state.host.fence.as_ref().is_some_and(is_of_fence) {
        add_to_fence(
            draft,
            Proof {
                operation_id: id,
                ..proof
            },
        );
    } else {
        tell(draft, &proof);
    }
    settle(draft);
}

/// A later proof changes no state: the fence holds by it as well, and more may be let go.
pub(super) fn add_to_fence(draft: &mut Draft, proof: Proof) {
    tell(draft, &proof);
    let before = proven_movable(&draft.state, draft.now);
    if let Some(fence) = &mut draft.state.host.fence {
        fence.add(proof);
    }
    if before.is_some_and(|before| before != Movable::All) {
        tell_of_more(draft);
    }
}

/// The platform was told of less by the fence, and may be told of all once that is so. An evacuation tells it by itself.
fn tell_of_more(draft: &mut Draft) {
    let Some(at) = all_movable_at(&draft.state, draft.now) else {
        return;
    };
    let is_told = draft.state.host.backend.starts_by_itself();
    let stage = fence::after_fenced(&draft.state).filter(|_| is_told);
    let is_fence = |live: &&mut Operation| live.status.is_live() && live.kind() == OperationKind::Fence;
    let operation = draft.state.operation.as_mut().filter(is_fence);
    if let (Some(stage), Some(operation)) = (stage, operation) {
        operation.stages.push(Stage {
            delay_s: seconds_until(draft.now, at),
            ..stage
        });
    }
}

fn seconds_until(now: Timestamp, at: Timestamp) -> u32 {
    let whole = (at - now + TimeDelta::milliseconds(999)).num_seconds();
    u32::try_from(whole).unwrap_or(0)
}

fn tell(draft: &mut Draft, proof: &Proof) {
    let data = json!({
        "operation_id": proof.operation_id,
        "generation": proof.generation,
        "proof": { "kind": proof.kind, "source": proof.source, "observed_at": proof.observed_at, "detail": proof.detail },
    });
    draft.event(EventKind::OperationProof, data);
}

/// The first set whose proofs all hold and have settled makes the host FENCED; later proofs change no state.
pub(super) fn settle(draft: &mut Draft) {
    let Some(at) = settles_at(draft) else {
        return;
    };
    if draft.state.host.current_fence().is_some() && on(Guard::FencedOnce) {
        return;
    }
    if at > draft.now && on(Guard::ProofSettles) {
        draft.wake(at);
        return;
    }
    become_fenced(draft);
}

/// Whether one more proof of `kind` would complete a set.
pub(super) fn would_complete(operation: &Operation, kind: ProofKind) -> bool {
    let standing = operation.proofs.iter().filter(|proof| proof.ended.is_none());
    let kinds: SufficientSet = standing.map(|proof| proof.kind).chain([kind]).collect();
    let mut sets = operation
        .fence()
        .into_iter()
        .flat_map(|fence| &fence.sufficient_sets);
    sets.any(|set| !set.is_empty() && set.is_subset(&kinds))
}

/// Until when a fence for a condition waits for its host, whose power was read as off, to answer no more; `None` if it does not wait for that.
pub(super) fn awaits_silence(draft: &Draft) -> Option<Timestamp> {
    let operation = draft.live().filter(|_| answers(draft))?;
    let mut standing = operation.proofs.iter().filter(|proof| proof.ended.is_none());
    let off = standing.find(|proof| proof.kind == ProofKind::PowerOff)?;
    Some(after_s(off.observed_at, CONTESTED_S))
}

/// Whether the fence is of a host that answered when it began, and is seen UP still: its power is not off, whatever was read, or what was seen is from
/// before. Either shows in the next reports.
fn answers(draft: &Draft) -> bool {
    let is_for_a_condition = draft.live().is_some_and(Operation::is_for_a_condition);
    is_for_a_condition && draft.state.host.failure_state == FailureState::Up && on(Guard::WhatAnswersIsNotOff)
}

/// When the proofs that the live operation has won will suffice by time alone, if they will.
pub(super) fn settles_at(draft: &Draft) -> Option<Timestamp> {
    let operation = draft.live()?;
    let fence = operation.fence()?;
    let standing = || operation.proofs.iter().filter(|proof| proof.ended.is_none());
    let kinds: SufficientSet = standing().map(|proof| proof.kind).collect();
    let whole = fence
        .sufficient_sets
        .iter()
        .filter(|set| !set.is_empty() && (set.is_subset(&kinds) || !on(Guard::WholeSetSuffices)))
        .filter(|set| !(set.contains(&ProofKind::PowerOff) && answers(draft)));
    let at = |set: &SufficientSet| {
        let proofs = standing().filter(|proof| set.contains(&proof.kind));
        proofs
            .map(|proof| proof.settled_at(draft.state.clock_set_at))
            .max()
    };
    whole.filter_map(at).min()
}

/// Turns what the tasks have shown, and the silence that was watched, into proofs.
pub(super) fn collect(draft: &mut Draft) {
    read_again(draft);
    for kind in [
        ProofKind::PowerOff,
        ProofKind::StorageFence,
        ProofKind::NetworkFence,
    ] {
        let won = draft
            .live()
            .and_then(|live| by_tasks(live, &draft.state, kind, draft.now));
        if let Some(proof) = won {
            add(draft, proof);
        }
    }
    for proof in [by_self_fencing(draft), kdump_proof::won(draft)]
        .into_iter()
        .flatten()
    {
        add(draft, proof);
    }
    settle(draft);
}

/// Power that was read as off before the host was seen UP has to be read again, as long as it still has to count.
fn read_again(draft: &mut Draft) {
    if draft.state.host.current_fence().is_some() || !on(Guard::ContradictedIsReadAgain) {
        return;
    }
    let Some(mut operation) = draft.state.operation.take() else {
        return;
    };
    let (host, clock_set_at) = (&draft.state.host, draft.state.clock_set_at);
    if operation.kind() == OperationKind::Fence && operation.status == OperationStatus::Running {
        let is_contradicted = |task: &&mut Task| {
            let of = |attempt| contradiction(task.kind(), attempt, host, clock_set_at);
            task.status == TaskStatus::Confirmed && confirmed_of(task).any(|attempt| of(attempt).is_some())
        };
        // Before that it would be contradicted by a sign of life that has come already.
        let can_count = host
            .sources
            .alive_by()
            .max(clock_set_at.map(dated_from))
            .map(clearly_after);
        for task in operation.tasks_mut().filter(is_contradicted) {
            begin_again(task, can_count);
        }
    }
    draft.state.operation = Some(operation);
}

fn begin_again(task: &mut Task, at: Option<Timestamp>) {
    let Some(fencing) = task.as_fencing_mut() else {
        return;
    };
    fencing.contradicted += 1;
    if fencing.contradicted > MAX_CONTRADICTED && on(Guard::ContradictionEnds) {
        task.status = TaskStatus::Failed;
        task.detail = Some("the host was seen UP each time after it had been read as off".to_owned());
        return;
    }
    task.status = TaskStatus::Running;
    task.begun_at = at;
    task.first_attempt = task.attempts.len();
}

/// Why what a confirmed attempt has read stands no more: a source may have had a sign of life since. `None` if it stands.
pub(super) fn contradiction(
    kind: TaskKind,
    attempt: &Attempt,
    host: &Host,
    clock_set_at: Option<Timestamp>,
) -> Option<&'static str> {
    if !kind.proof_kind().is_some_and(ProofKind::says_stopped) {
        return None;
    }
    let is_before = |read_at: Option<Timestamp>, moment| read_at.is_none_or(|at| may_be_after(moment, at));
    let alive_by = host.sources.alive_by().filter(|_| on(Guard::LifeEndsReading));
    // The dates of a reading and of a sign of life do not tell which came first then.
    let dated_from = clock_set_at
        .filter(|_| on(Guard::ReadSinceClockSet))
        .map(dated_from);
    if alive_by.is_some_and(|alive_by| is_before(attempt.read_at(), alive_by)) {
        Some("the host was seen UP after it had been read as off")
    } else if dated_from.is_some_and(|from| is_before(attempt.claimed_at, from)) {
        Some("the clock was set while it was read")
    } else {
        None
    }
}

/// Proven if the operation has tasks of the kind and every one of them is confirmed, by what still stands.
fn by_tasks(operation: &Operation, state: &HostState, kind: ProofKind, now: Timestamp) -> Option<Proof> {
    let standing = operation
        .proofs
        .iter()
        .find(|proof| proof.kind == kind && proof.ended.is_none());
    if standing.is_some() || operation.kind() == OperationKind::Rejoin {
        return None;
    }
    let tasks: Vec<&Task> = operation
        .tasks()
        .filter(|task| task.kind().proof_kind() == Some(kind))
        .collect();
    let proving = tasks.iter().filter(|task| does_prove(task)).count();
    let is_proven = proving == tasks.len() || !on(Guard::EveryTaskProves);
    if proving == 0 || !is_proven {
        return None;
    }
    let confirmed = || {
        tasks
            .iter()
            .flat_map(|task| confirmed_of(task).map(|a| (task.kind(), a)))
    };
    let is_contradicted =
        |(kind, attempt)| contradiction(kind, attempt, &state.host, state.clock_set_at).is_some();
    if confirmed().any(is_contradicted) {
        return None;
    }
    let readings = || confirmed().filter_map(|(_, attempt)| attempt.read_at());
    let newest = || readings().max().filter(|_| !on(Guard::OldestReadingCounts));
    let read_at = newest().or_else(|| readings().min())?;
    // What Ringfence itself has undone is won again by newer readings alone.
    let was_undone = |proof: &Proof| match &proof.ended {
        Some(Ended {
            undoing: Undoing::Claimed { .. },
            at,
        }) => proof.kind == kind && read_at <= *at,
        Some(_) | None => false,
    };
    if operation.proofs.iter().any(was_undone) && on(Guard::EndedProofStaysEnded) {
        return None;
    }
    let methods: Vec<_> = confirmed().map(|(_, attempt)| attempt.by.name()).collect();
    let details: Vec<_> = confirmed()
        .filter_map(|(_, attempt)| attempt.observation.as_ref())
        .map(|o| o.detail.as_str())
        .collect();
    let levels = tasks.iter().filter_map(|task| task.methods_in_use()).flatten();
    let by_method = levels.map(|method| method.times.settle_s).max().unwrap_or(0);
    Some(Proof {
        kind,
        source: methods.join(", "),
        observed_at: now,
        read_at,
        claimed_at: confirmed().filter_map(|(_, attempt)| attempt.claimed_at).min(),
        settle_s: by_method.max(settle_s(operation, kind)),
        operation_id: operation.id,
        generation: operation.generation,
        detail: details.join("; "),
        ended: None,
    })
}

/// Seconds that the segment gives a proof of this kind to settle.
pub(super) fn settle_s(operation: &Operation, kind: ProofKind) -> u32 {
    if kind.says_stopped() {
        operation.policy.settle_s
    } else {
        0
    }
}

/// The attempts by which a confirmed task was confirmed: the last one of each method of its level. What an earlier one has read may
/// have been contradicted since.
fn confirmed_of(task: &Task) -> impl Iterator<Item = &Attempt> {
    let methods = task.methods_in_use().unwrap_or_default();
    methods.iter().filter_map(|method| {
        let tries = task.as_fencing().map(|fencing| fencing.level);
        let is_it = |a: &&Attempt| {
            tries.is_some_and(|level| a.is_by(level, method.id)) && a.outcome() == Some(Outcome::Confirmed)
        };
        task.round().iter().rfind(is_it)
    })
}

/// Whether what a confirmed task has shown counts: every method of the level in use has to be one that can prove something, and what was
/// read back last with it too. A worker cannot make more of a method than its configuration says.
pub(super) fn does_prove(task: &Task) -> bool {
    let Some(level) = task.methods_in_use() else {
        return false;
    };
    level.iter().all(|method| {
        let last = confirmed_of(task).find(|a| a.by.method_id() == Some(method.id));
        let observation = last.and_then(|attempt| attempt.observation.as_ref());
        let may_prove = method.can_prove || !on(Guard::MethodCanProve);
        may_prove && observation.is_some_and(|o| o.proves || !on(Guard::ReadingProves))
    })
}

/// The silence that proves the live fence by the host's own watchdog, as far as it was watched: when it is long enough, and until
/// when it is watched.
pub(super) struct Silent {
    watched: Watched,
    from: Timestamp,
    pub due: Timestamp,
    timeout_s: u32,
}

impl Silent {
    /// When the watch ends unless another report comes.
    pub fn lapses_at(&self) -> Timestamp {
        self.watched.lapses_at
    }
}

/// The silence that the live fence is waiting for; `None` if none counts, or it has been proven.
pub(super) fn silence(draft: &Draft) -> Option<Silent> {
    let operation = draft.live()?;
    let mut sets = operation.fence()?.sufficient_sets.iter();
    let counts = sets.any(|set| set.contains(&ProofKind::SelfFencing));
    let mut proofs = operation.proofs.iter();
    let is_won = proofs.any(|proof| proof.kind == ProofKind::SelfFencing && proof.ended.is_none());
    if !counts || is_won || draft.state.host.current_fence().is_some() {
        return None;
    }
    let timeout_s = operation.policy.self_fencing_timeout_s?;
    let host = &draft.state.host;
    let is_silent = host.failure_state == FailureState::Unreachable;
    let watched = host
        .sources
        .watched_silence()
        .filter(|_| is_silent || !on(Guard::SilenceOfUnreachable))?;
    let undone = host
        .undoing_in_flight(ProofKind::SelfFencing, draft.now)
        .map(|f| f.until);
    let undone = undone
        .max(host.released_at)
        .filter(|_| on(Guard::UndoingBreaksSilence));
    let set_at = draft
        .state
        .clock_set_at
        .filter(|_| on(Guard::ClockSetBreaksSilence));
    // A release has started a boot that knows nothing of the time before; nor does a clock that was set.
    let from = [undone, set_at]
        .into_iter()
        .flatten()
        .fold(watched.from, Timestamp::max);
    Some(Silent {
        watched,
        from,
        due: after_s(from, timeout_s),
        timeout_s,
    })
}

/// When a report of silence would prove the live fence; `None` if none would, as things are.
pub(crate) fn self_fencing_due(state: &HostState, now: Timestamp) -> Option<Timestamp> {
    let silent = silence(&Draft::new(state, now))?;
    (silent.lapses_at() > now).then_some(silent.due)
}

/// Only a report proves that the time has passed in silence: nothing is concluded from that none has come.
fn by_self_fencing(draft: &Draft) -> Option<Proof> {
    let silent = silence(draft)?;
    let known_until = if on(Guard::SilenceNeedsReports) {
        silent.watched.to
    } else {
        draft.now
    };
    let is_watched = silent.lapses_at() > draft.now || !on(Guard::WatchHasNotLapsed);
    if known_until < silent.due || !is_watched {
        return None;
    }
    let operation = draft.live()?;
    Some(Proof {
        kind: ProofKind::SelfFencing,
        source: "the segment's self-fencing timeout".to_owned(),
        observed_at: draft.now,
        read_at: silent.from,
        claimed_at: None,
        settle_s: settle_s(operation, ProofKind::SelfFencing),
        operation_id: operation.id,
        generation: operation.generation,
        detail: format!("seen UNREACHABLE for {} s without a gap", silent.timeout_s),
        ended: None,
    })
}

fn become_fenced(draft: &mut Draft) {
    let now = draft.now;
    let Some(operation) = &draft.state.operation else {
        return;
    };
    let Work::Fence(work) = &operation.work else {
        return;
    };
    let fence = Fence {
        generation: operation.generation,
        operation_id: operation.id,
        at: now,
        sets: work.sufficient_sets.clone(),
        proofs: operation.proofs.clone(),
        off_until: None,
        is_evacuation_begun: false,
        is_emptied: false,
    };
    let proofs: Vec<_> = fence
        .standing()
        .map(|p| json!({ "kind": p.kind, "source": p.source, "observed_at": p.observed_at, "detail": p.detail }))
        .collect();
    let data = json!({
        "operation_id": operation.id,
        "generation": operation.generation,
        "reason": operation.reason,
        "requested_by": operation.requested_by,
        "proofs": proofs,
    });
    draft.state.host.fence = Some(fence);
    draft.event(EventKind::HostFenced, data);
    quarantine(draft);
    if proven_movable(&draft.state, now) != Some(Movable::All) {
        tell_of_more(draft);
    }
}

/// A host that was fenced too often lately is not taken back without being asked.
fn quarantine(draft: &mut Draft) {
    let (now, policy) = (draft.now, draft.state.policy.quarantine);
    let begins = draft.state.host.flapping.fenced(policy, now);
    if let Some(policy) = policy.filter(|_| begins) {
        let fences = draft.state.host.flapping.fences_within(policy.within_s, now);
        let data = json!({ "fences": fences, "within_s": policy.within_s });
        draft.event(EventKind::HostQuarantined, data);
    }
}

/// Ends a fence that was proven and only adds to its proofs, if they hold no more: another one has to prove it anew.
pub(super) fn finish_ended(draft: &mut Draft) {
    let is_fence = draft
        .live()
        .is_some_and(|live| live.kind() == OperationKind::Fence);
    let host = &draft.state.host;
    if is_fence && host.current_fence().is_some() && host.good_fence().is_none() {
        succeed(draft);
    }
}

/// Ends a fence that is proven and has nothing more to do.
pub(super) fn succeed(draft: &mut Draft) {
    let Some(operation) = &draft.state.operation else {
        return;
    };
    let proofs: Vec<_> = operation.proofs.iter().map(|proof| proof.kind.as_str()).collect();
    let failed = operation
        .tasks()
        .filter(|task| task.status == TaskStatus::Failed && task.kind() != FencingKind::PowerOn)
        .map(Task::kind);
    let (fencing, others): (Vec<_>, Vec<_>) = failed.partition(|kind| kind.resource() != Resource::Workloads);
    let names = |kinds: Vec<TaskKind>| {
        kinds
            .iter()
            .map(|kind| kind.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut detail = format!("FENCED, proven by {}", proofs.join(", "));
    if !fencing.is_empty() {
        detail.push_str(&format!("; {} failed and no longer mattered", names(fencing)));
    }
    if !others.is_empty() {
        detail.push_str(&format!("; {} failed", names(others)));
    }
    detail.push_str(&power_last::tell_left_off(draft));
    draft.end(OperationStatus::Succeeded, detail);
}
