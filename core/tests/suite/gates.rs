//! The gates in every state.

use chrono::TimeDelta;
use ringfence_core::*;
use uuid::Uuid;

use ringfence_world::plans::{host, start};

fn proof(kind: ProofKind) -> Proof {
    Proof {
        kind,
        source: "test".to_owned(),
        observed_at: start(),
        read_at: start(),
        claimed_at: None,
        settle_s: 0,
        operation_id: OperationId(Uuid::from_u128(3)),
        generation: Generation(3),
        detail: String::new(),
        ended: None,
    }
}

fn fence(proofs: Vec<Proof>) -> Fence {
    Fence {
        generation: Generation(3),
        operation_id: OperationId(Uuid::from_u128(3)),
        at: start(),
        sets: default_sufficient_sets(),
        proofs,
        off_until: None,
        is_evacuation_begun: false,
        is_emptied: false,
    }
}

fn state(failure: FailureState, fencing: FencingState) -> HostState {
    let mut host = host();
    host.failure_state = failure;
    host.generation = Generation(3);
    if fencing == FencingState::Fenced {
        host.fence = Some(fence(vec![proof(ProofKind::PowerOff)]));
    }
    HostState::new(host, None, ringfence_world::plans::policy())
}

fn ended_by_a_claim(kind: ProofKind, by: FencingKind) -> Proof {
    let undoing = Undoing::Claimed {
        kind: by.into(),
        generation: Generation(3),
    };
    Proof {
        ended: Some(Ended { undoing, at: start() }),
        ..proof(kind)
    }
}

fn attempt(generation: u32) -> AttemptId {
    AttemptId {
        operation_id: OperationId(Uuid::from_u128(u128::from(generation))),
        number: 1,
    }
}

fn in_flight(kind: impl Into<TaskKind>, generation: u32, seconds: i64) -> InFlight {
    InFlight {
        attempt: attempt(generation),
        generation: Generation(generation),
        kind: kind.into(),
        method: Some(MethodId(Uuid::from_u128(7))),
        claim_id: None,
        until: start() + TimeDelta::seconds(seconds),
        only_looks: false,
        lasts_ms: None,
    }
}

#[test]
fn each_gate_is_open_in_one_state_of_six() {
    for failure in FailureState::ALL {
        for fencing in FencingState::ALL {
            let gates = gates(&state(*failure, *fencing), start());
            let schedule = (*failure, *fencing) == (FailureState::Up, FencingState::Unfenced);
            let evacuate = (*failure, *fencing) == (FailureState::Unreachable, FencingState::Fenced);
            assert_eq!(
                gates.schedule.allowed, schedule,
                "{failure} {fencing}: {}",
                gates.schedule.reason
            );
            assert_eq!(
                gates.evacuate.allowed, evacuate,
                "{failure} {fencing}: {}",
                gates.evacuate.reason
            );
            assert_eq!(gates.generation, Generation(3));
            assert!(!gates.schedule.reason.is_empty() && !gates.evacuate.reason.is_empty());
        }
    }
}

#[test]
fn a_fence_that_a_rejoin_may_have_undone_opens_no_gate() {
    let mut state = state(FailureState::Unreachable, FencingState::Fenced);
    state.host.generation = Generation(4);
    let gate = gates(&state, start()).evacuate;
    assert!(!gate.allowed);
    assert!(gate.reason.contains("fence it again"), "{}", gate.reason);
}

#[test]
fn a_fence_whose_proof_was_ended_by_a_claim_opens_no_gate_until_another_set_is_complete() {
    use ProofKind::{NetworkFence, PowerOff, StorageFence};
    let mut state = state(FailureState::Unreachable, FencingState::Fenced);
    let mut fence = fence(vec![ended_by_a_claim(PowerOff, FencingKind::PowerOn)]);
    state.host.fence = Some(fence.clone());
    let gate = gates(&state, start() + TimeDelta::days(1)).evacuate;
    assert!(!gate.allowed);
    assert!(gate.reason.contains("fence the host again"), "{}", gate.reason);
    assert!(gate.reason.contains("power.on"), "{}", gate.reason);
    assert_eq!(state.host.fencing_state(), FencingState::Fenced);
    fence.proofs.extend([proof(StorageFence), proof(NetworkFence)]);
    state.host.fence = Some(fence);
    assert!(gates(&state, start()).evacuate.allowed);
}

#[test]
fn a_release_under_way_changes_no_gate_beyond_the_proof_that_it_ended() {
    let mut state = state(FailureState::Unreachable, FencingState::Fenced);
    state.host.fence = Some(fence(vec![
        ended_by_a_claim(ProofKind::PowerOff, FencingKind::PowerOn),
        proof(ProofKind::StorageFence),
        proof(ProofKind::NetworkFence),
    ]));
    state.host.in_flight.push(in_flight(FencingKind::PowerOn, 3, 60));
    assert!(
        gates(&state, start()).evacuate.allowed,
        "a cut by storage and network is not undone by a sign of life"
    );
}

#[test]
fn a_fencing_attempt_under_way_keeps_the_schedule_gate_closed() {
    let mut state = state(FailureState::Up, FencingState::Unfenced);
    state.host.in_flight.push(in_flight(FencingKind::PowerOff, 3, 20));
    assert!(!gates(&state, start()).schedule.allowed);
    assert!(gates(&state, start() + TimeDelta::seconds(20)).schedule.allowed);
}

#[test]
fn a_host_that_is_cut_off_takes_no_workloads() {
    let mut state = state(FailureState::Up, FencingState::Unfenced);
    state.host.applied.fencing.push(AppliedFencing {
        kind: FencingKind::StorageFence,
        method: ringfence_world::plans::method_with("ceph", Resource::Storage, MethodTimes::default()),
        attempt: attempt(2),
        by: start(),
        is_shown: true,
    });
    let gate = gates(&state, start()).schedule;
    assert!(!gate.allowed);
    assert!(gate.reason.contains("rejoin"), "{}", gate.reason);
}

#[test]
fn a_host_is_unforced_by_its_own_rejoin_or_while_no_fence_needs_it_down() {
    let unforce =
        |state: &HostState, seconds: i64| unforce_gate(state, start() + TimeDelta::seconds(seconds));
    for failure in FailureState::ALL {
        assert!(unforce(&state(*failure, FencingState::Unfenced), 0).allowed);
        assert!(!unforce(&state(*failure, FencingState::Fenced), 0).allowed);
    }
    // While the rejoin's own step may be under way: not a step of an older rejoin, and not after the step's deadline.
    let mut rejoining = state(FailureState::Up, FencingState::Fenced);
    rejoining.host.in_flight.push(in_flight(StepKind::MarkUp, 2, 60));
    assert!(!unforce(&rejoining, 0).allowed);
    rejoining.host.in_flight.push(in_flight(StepKind::MarkUp, 3, 20));
    assert!(unforce(&rejoining, 0).allowed);
    assert!(!unforce(&rejoining, 20).allowed);
    // Not while a device may still take something from the host, or while applied fencing stands.
    let mut fencing = state(FailureState::Up, FencingState::Unfenced);
    fencing
        .host
        .in_flight
        .push(in_flight(FencingKind::PowerOff, 3, 20));
    assert!(!unforce(&fencing, 0).allowed);
    assert!(unforce(&fencing, 20).allowed);
    fencing.host.applied.fencing.push(AppliedFencing {
        kind: FencingKind::StorageFence,
        method: ringfence_world::plans::method_with("ceph", Resource::Storage, MethodTimes::default()),
        attempt: attempt(2),
        by: start(),
        is_shown: true,
    });
    assert!(!unforce(&fencing, 20).allowed);
}

#[test]
fn a_host_that_its_platform_was_told_of_stays_isolated_until_its_release_begins() {
    let isolated =
        |state: &HostState, seconds: i64| stays_isolated(state, start() + TimeDelta::seconds(seconds));
    let mut state = state(FailureState::Unreachable, FencingState::Fenced);
    assert!(!isolated(&state, 0), "the platform was told nothing");
    state.host.applied.marked_down_by = Some(attempt(1));
    assert!(isolated(&state, 0));
    let mark_up = |status| {
        rejoin(Task {
            status,
            ..Task::step(WorkloadStep::MarkUp)
        })
    };
    state.operation = Some(mark_up(TaskStatus::Pending));
    assert!(isolated(&state, 0), "the rejoin has not come to it");
    state.operation = Some(mark_up(TaskStatus::Running));
    assert!(!isolated(&state, 0));
    // The rejoin was cancelled, and its worker may still be at it.
    state.operation = None;
    state.host.in_flight.push(in_flight(StepKind::MarkUp, 3, 20));
    assert!(!isolated(&state, 0));
    assert!(isolated(&state, 20));
}

#[test]
fn a_mark_is_left_over_on_a_host_that_was_fenced_and_that_nothing_holds() {
    let mut free = state(FailureState::Up, FencingState::Unfenced);
    free.host.generation = Generation(3);
    assert!(is_mark_left_over(&free));
    let with = |change: fn(&mut HostState)| {
        let mut state = free.clone();
        change(&mut state);
        is_mark_left_over(&state)
    };
    assert!(
        !with(|state| state.host.generation = Generation(0)),
        "its records may be lost"
    );
    assert!(!with(
        |state| state.host.fence = Some(fence(vec![proof(ProofKind::PowerOff)]))
    ));
    assert!(
        !with(|state| state.host.applied.marked_down_by = Some(attempt(1))),
        "a fence was cancelled"
    );
    let operation = |status| Operation {
        status,
        ..rejoin(Task::step(WorkloadStep::MarkUp))
    };
    free.operation = Some(operation(OperationStatus::Running));
    assert!(!is_mark_left_over(&free));
    free.operation = Some(operation(OperationStatus::Succeeded));
    assert!(is_mark_left_over(&free));
}

fn rejoin(task: Task) -> Operation {
    Operation {
        id: OperationId(Uuid::from_u128(4)),
        host_id: host().id,
        work: Work::Rejoin(RejoinWork {
            boot_confirmed: false,
        }),
        status: OperationStatus::Running,
        detail: String::new(),
        generation: Generation(3),
        reason: String::new(),
        requested_by: String::new(),
        policy: Box::default(),
        platform: None,
        stages: vec![Stage {
            delay_s: 0,
            at_once: None,
            awaits: None,
            entered_at: None,
            started_at: None,
            tasks: vec![task],
        }],
        proofs: Vec::new(),
        paused: None,
        despite: Vec::new(),
        round: 0,
        restarts_left: 0,
        restart_at: None,
        last_attempt: 0,
        revision: 0,
        created_at: start(),
        updated_at: start(),
        finished_at: None,
    }
}

#[test]
fn what_the_standing_proofs_allow_to_be_moved() {
    use ProofKind::*;
    let ended = ended_by_a_claim(PowerOff, FencingKind::PowerOn);
    let table = [
        (vec![proof(PowerOff)], Some(Movable::All)),
        (vec![proof(Operator)], Some(Movable::All)),
        (vec![proof(SelfFencing)], Some(Movable::All)),
        (vec![proof(StorageFence), proof(NetworkFence)], Some(Movable::All)),
        (vec![proof(StorageFence)], Some(Movable::OnFencedStorage)),
        (
            vec![ended.clone(), proof(StorageFence)],
            Some(Movable::OnFencedStorage),
        ),
        (vec![proof(NetworkFence)], Some(Movable::WithoutVolumes)),
        (vec![ended], None),
    ];
    for (proofs, movable) in table {
        let told = format!("{proofs:?}");
        let mut state = state(FailureState::Unreachable, FencingState::Fenced);
        state.policy.settle_s = 0;
        let sets = [ProofKind::StorageFence, ProofKind::NetworkFence].map(|kind| SufficientSet::from([kind]));
        state.host.fence = Some(Fence {
            sets: [&sets[..], &default_sufficient_sets()].concat(),
            ..fence(proofs)
        });
        assert_eq!(proven_movable(&state, start()), movable, "{told}");
    }
}

#[test]
fn the_gate_of_all_is_closed_where_a_cluster_may_let_only_some_go() {
    let fenced = |backend: Backend, proofs: Vec<Proof>| {
        let mut state = state(FailureState::Unreachable, FencingState::Fenced);
        state.host.backend = backend;
        let sets = vec![SufficientSet::from([ProofKind::StorageFence])];
        state.host.fence = Some(Fence {
            sets: [sets, default_sufficient_sets()].concat(),
            ..fence(proofs)
        });
        assert!(gates(&state, start()).evacuate.allowed);
        gate_of_all(&state, start())
    };
    let storage = || vec![proof(ProofKind::StorageFence)];
    assert!(!fenced(Backend::Kubernetes, storage()).allowed);
    assert!(fenced(Backend::Nova, storage()).allowed);
    let both = vec![proof(ProofKind::StorageFence), proof(ProofKind::NetworkFence)];
    assert!(fenced(Backend::Kubernetes, both).allowed);
}

/// A node that is FENCED by its storage alone.
fn cut_off_from_storage() -> HostState {
    let mut state = state(FailureState::Unreachable, FencingState::Fenced);
    state.host.backend = Backend::Kubernetes;
    state.host.fence = Some(Fence {
        sets: vec![SufficientSet::from([ProofKind::StorageFence])],
        ..fence(vec![proof(ProofKind::StorageFence)])
    });
    state
}

fn named(state: &HostState, names: &[&str]) -> NamedToGo {
    NamedToGo {
        generation: state.host.generation,
        movable: Movable::OnFencedStorage,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn of_a_host_that_is_cut_off_from_some_storage_only_what_is_named_goes() {
    let state = cut_off_from_storage();
    let list = named(&state, &["pod", "volume"]);
    let may_go = |names: &[&str]| gate_of_named(&state, Some(&list), names, start()).allowed;
    assert!(may_go(&["pod"]) && may_go(&["other", "volume"]));
    assert!(!may_go(&["other"]) && !may_go(&[]) && !may_go(&[""]));
    let unnamed = gate_of_named(&state, None, &["pod"], start());
    assert!(
        !unnamed.allowed && unnamed.reason.contains("nothing was named yet"),
        "{unnamed:?}"
    );
}

#[test]
fn what_was_named_counts_only_for_its_fence_for_what_is_proven_now_and_while_the_host_is_away() {
    let state = cut_off_from_storage();
    let list = named(&state, &["pod"]);
    let may_go =
        |state: &HostState, list: &NamedToGo| gate_of_named(state, Some(list), &["pod"], start()).allowed;
    assert!(may_go(&state, &list));
    let older = NamedToGo {
        generation: Generation(list.generation.0 - 1),
        ..list.clone()
    };
    assert!(!may_go(&state, &older));
    let by_less = NamedToGo {
        movable: Movable::WithoutVolumes,
        ..list.clone()
    };
    assert!(!may_go(&state, &by_less));
    for seen in [FailureState::Up, FailureState::Unknown] {
        let mut back = state.clone();
        back.host.failure_state = seen;
        assert!(!may_go(&back, &list), "{seen:?}");
    }
    let mut unfenced = state.clone();
    unfenced.host.fence = None;
    assert!(!may_go(&unfenced, &list));
    let mut ended = state;
    let proofs = vec![ended_by_a_claim(
        ProofKind::StorageFence,
        FencingKind::StorageUnfence,
    )];
    ended.host.fence.as_mut().unwrap().proofs = proofs;
    assert!(!may_go(&ended, &list));
}

#[test]
fn where_all_may_go_no_name_is_needed() {
    let mut state = cut_off_from_storage();
    state.host.fence = Some(fence(vec![proof(ProofKind::PowerOff)]));
    assert!(gate_of_named(&state, None, &[], start()).allowed);
}
