//! Explanations of hosts in known states.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::*;
use uuid::Uuid;

/// The plan with every method filled in, level by level.
pub fn resolved(plan: &FrozenPlan) -> ResolvedPlan {
    let method = |method: &FrozenMethod| ResolvedMethod {
        name: method.name.clone(),
        filled_in: Ok(method.clone()),
    };
    let level = |(level, methods): (u8, &Vec<FrozenMethod>)| ResolvedLevel {
        level,
        methods: methods.iter().map(method).collect(),
    };
    let task = |task: &FrozenTask| ResolvedTask {
        kind: task.kind,
        levels: (1..).zip(&task.levels).map(level).collect(),
    };
    let stage = |stage: &FrozenStage| ResolvedStage {
        delay_s: stage.delay_s,
        tasks: stage.tasks.iter().map(task).collect(),
    };
    ResolvedPlan {
        name: plan.name.clone(),
        scope: PlanScope::Default,
        stages: plan.stages.iter().map(stage).collect(),
        sufficient_sets: plan.sufficient_sets.clone(),
    }
}

/// Facts without checks or past operations; ten hosts are in the segment.
pub fn facts(plan: &FrozenPlan) -> Facts {
    Facts {
        plan: Some(resolved(plan)),
        sufficient_sets: plan.sufficient_sets.clone(),
        methods: BTreeMap::new(),
        around: Neighbourhood {
            hosts: 10,
            ..Neighbourhood::default()
        },
        opinions: Opinions::default(),
    }
}

fn request(world: &World) -> Input {
    Input::Fence {
        operation_id: OperationId(Uuid::from_u128(0xfe)),
        plan: Some(world.plan.clone()),
        reason: "no heartbeat".to_owned(),
        actor: person("anna"),
        heeds_safeguards: false,
    }
}

fn explain<'w>(world: &'w World, facts: &Facts) -> Explanation<'w> {
    Explanation::new(&world.state, request(world), facts, world.now)
}

fn silent(plan: FrozenPlan) -> World {
    let mut world = World::new(plan, policy());
    world.see(FailureState::Unreachable).unwrap();
    world
}

fn hindrances(explanation: &Explanation<'_>, kind: ProofKind) -> Vec<String> {
    let mut proofs = explanation.sets.iter().flat_map(|set| &set.proofs);
    proofs
        .find(|proof| proof.kind == kind)
        .unwrap()
        .hindrances
        .clone()
}

fn failed(world: &World, outcome: CheckOutcome) -> MethodFacts {
    MethodFacts {
        check: Some(LastCheck {
            at: world.now,
            answer: CheckAnswer {
                outcome,
                state: None,
                detail: Some("the password is wrong".to_owned()),
                worker: None,
                took_ms: None,
            },
            failing_since: Some(world.now),
        }),
        ..MethodFacts::default()
    }
}

#[test]
fn the_sets_of_a_sound_plan_can_be_completed_by_its_tasks_or_by_a_person() {
    let world = silent(power_plan());
    let explanation = explain(&world, &facts(&world.plan));
    let possible: Vec<_> = explanation
        .sets
        .iter()
        .map(|set| (set.can_be_completed(), set.needs_person()))
        .collect();
    assert_eq!(
        possible,
        [(true, false), (false, false), (false, false), (true, true)]
    );
    assert_eq!(
        hindrances(&explanation, ProofKind::StorageFence),
        ["the plan has no task storage.fence"]
    );
    assert_eq!(
        hindrances(&explanation, ProofKind::SelfFencing),
        ["the segment has no self_fencing_timeout_s"]
    );
}

#[test]
fn a_method_whose_last_check_failed_keeps_its_set_from_being_completed() {
    let world = silent(power_plan());
    let mut facts = facts(&world.plan);
    facts
        .methods
        .insert("bmc".to_owned(), failed(&world, CheckOutcome::Refused));
    assert_eq!(
        hindrances(&explain(&world, &facts), ProofKind::PowerOff),
        ["method bmc: its last check, at 2030-01-01T12:00:00Z, was refused: the password is wrong"]
    );
    facts
        .methods
        .insert("bmc".to_owned(), failed(&world, CheckOutcome::Confirmed));
    assert!(hindrances(&explain(&world, &facts), ProofKind::PowerOff).is_empty());
}

#[test]
fn one_sound_level_suffices() {
    let world = silent(plan(vec![vec![task(
        FencingKind::PowerOff,
        &[&["bmc"], &["pdu-a", "pdu-b"]],
    )]]));
    let mut facts = facts(&world.plan);
    let unserved = || MethodFacts {
        is_served: Some(false),
        ..MethodFacts::default()
    };
    facts.methods.insert("pdu-b".to_owned(), unserved());
    assert!(hindrances(&explain(&world, &facts), ProofKind::PowerOff).is_empty());
    facts.methods.insert("bmc".to_owned(), unserved());
    assert_eq!(
        hindrances(&explain(&world, &facts), ProofKind::PowerOff),
        [
            "method bmc: no worker takes tasks for power in zone \"here\"",
            "method pdu-b: no worker takes tasks for power in zone \"here\"",
        ]
    );
}

#[test]
fn a_method_that_cannot_be_filled_in_or_is_another_hosts_too_is_named() {
    let world = silent(cut_off_plan());
    let mut facts = facts(&world.plan);
    let mut problems = Problems::default();
    problems.add("parameters.device", "is missing");
    let plan = facts.plan.as_mut().unwrap();
    plan.stages[0].tasks[0].levels[0].methods[0].filled_in = Err(Unusable::NotFilledIn(problems));
    let shared = MethodFacts {
        shared: Some("acts on the device of host h2".to_owned()),
        ..MethodFacts::default()
    };
    facts.methods.insert("switch".to_owned(), shared);
    let explanation = explain(&world, &facts);
    assert_eq!(
        hindrances(&explanation, ProofKind::StorageFence),
        ["method ceph: parameters.device: is missing"]
    );
    assert_eq!(
        hindrances(&explanation, ProofKind::NetworkFence),
        ["method switch: acts on the device of host h2"]
    );
}

#[test]
fn a_proof_that_is_won_has_no_hindrances() {
    let mut world = silent(plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]]));
    world.plan.sufficient_sets = vec![SufficientSet::from([
        ProofKind::PowerOff,
        ProofKind::StorageFence,
    ])];
    world.fence().unwrap();
    world.work(0);
    let mut facts = facts(&world.plan);
    for name in ["bmc", "ceph"] {
        facts
            .methods
            .insert(name.to_owned(), failed(&world, CheckOutcome::Unknown));
    }
    let explanation = explain(&world, &facts);
    assert!(matches!(explanation.fence.answer, Ok(Reply::Joined(_))));
    assert!(hindrances(&explanation, ProofKind::PowerOff).is_empty());
    assert_eq!(hindrances(&explanation, ProofKind::StorageFence).len(), 1);
}

#[test]
fn a_watched_silence_tells_when_it_will_prove_the_fence() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(60),
        ..policy()
    };
    let mut world = World::new(power_plan(), policy);
    world.say("monitor", FailureState::Up, 0, None).unwrap();
    world.stays_silent(10);
    let explanation = explain(&world, &facts(&world.plan));
    let due = explanation.fence.self_fencing_due.unwrap();
    assert!(
        due > world.now && due <= world.now + TimeDelta::seconds(60),
        "{due}"
    );
    let set = &explanation.sets[2];
    assert!(set.can_be_completed());
    assert_eq!(set.proofs[0].due_at, Some(due));
    // Another source has heard the host, and does not report its silence.
    world.say("probe", FailureState::Unknown, 0, None).unwrap();
    world.pass(60_000);
    let explanation = explain(&world, &facts(&world.plan));
    assert_eq!(explanation.fence.self_fencing_due, None);
    assert_eq!(
        hindrances(&explanation, ProofKind::SelfFencing),
        ["the host's silence is not watched by every source that has had a sign of life of it"]
    );
}

#[test]
fn a_fence_of_a_host_that_is_seen_up_is_explained_as_refused() {
    let mut world = World::new(power_plan(), policy());
    world.see(FailureState::Up).unwrap();
    let explanation = explain(&world, &facts(&world.plan));
    let refusal = explanation.fence.answer.unwrap_err();
    assert_eq!(refusal.code(), "host.up");
    assert_eq!(explanation.fence.gates_after, explanation.gates);
    assert_eq!(explanation.fence.gates_once_fenced, None);
    assert_eq!(explanation.seen.because, SeenBecause::Up);
}

#[test]
fn the_explanation_of_a_silent_host_shows_its_gates_once_fenced() {
    let world = silent(power_plan());
    let explanation = explain(&world, &facts(&world.plan));
    assert!(!explanation.gates.evacuate.allowed);
    let once_fenced = explanation.fence.gates_once_fenced.unwrap();
    assert!(once_fenced.evacuate.allowed && !once_fenced.schedule.allowed);
    assert_eq!(once_fenced.generation, Generation(1));
    let first = (TaskKind::Fencing(FencingKind::PowerOff), "bmc".to_owned());
    assert_eq!(explanation.fence.begins_with, [first]);
    assert_eq!(explanation.seen.because, SeenBecause::Silent);
}

#[test]
fn the_brake_counts_the_host_as_if_it_had_fallen_silent() {
    let mut world = World::new(power_plan(), policy());
    world.see(FailureState::Up).unwrap();
    let mut facts = facts(&world.plan);
    facts.around.out_of_service = 4;
    facts.around.lately = 4;
    let brake = explain(&world, &facts).brake;
    assert_eq!((brake.around.out_of_service, brake.around.lately), (5, 5));
    let why = brake.holds.unwrap();
    assert!(
        why.contains("5 of the 10 hosts of the segment are out of service"),
        "{why}"
    );
    // A host that is silent already is counted once.
    world.see(FailureState::Unreachable).unwrap();
    let brake = explain(&world, &facts).brake;
    assert_eq!((brake.around.out_of_service, brake.holds), (4, None));
}

#[test]
fn the_explanation_of_a_live_operation_says_what_it_waits_for() {
    let mut world = silent(plan(Vec::new()));
    let waits = |world: &World| explain(world, &facts(&world.plan)).waits_for;
    assert_eq!(waits(&world), None);
    world.fence().unwrap();
    let why = "the plan does nothing by itself: fence the host by hand and confirm it";
    assert_eq!(waits(&world).as_deref(), Some(why));
}

#[test]
fn durations_come_from_the_newest_operation_that_has_them() {
    let mut world = silent(power_plan());
    world.fence().unwrap();
    world.pass(400);
    let job = world.deliver(0, "worker-1").unwrap();
    world.command(job);
    world.pass(1_300);
    world.complete(job);
    let newest = world
        .trace
        .last()
        .unwrap()
        .said
        .clone()
        .unwrap()
        .state
        .operation
        .unwrap();
    assert_eq!(newest.status, OperationStatus::Succeeded);
    let method = world.plan.methods().next().unwrap().id;
    let kind = TaskKind::Fencing(FencingKind::PowerOff);
    let mut older = newest.clone();
    for attempt in older.tasks_mut().flat_map(|task| &mut task.attempts) {
        attempt.claimed_at = Some(attempt.started_at);
    }
    let of_another = Operation {
        host_id: HostId(Uuid::from_u128(7)),
        ..older.clone()
    };

    let times = PastTimes::new(&[newest, older], std::slice::from_ref(&of_another));
    let time = times.of(kind, Some(method)).unwrap();
    assert_eq!((time.waited_ms, time.took_ms), (400, 1_300));
    assert_eq!(
        (time.outcome, time.host_id),
        (Outcome::Confirmed, world.state.host.id)
    );
    let fence = times.fence.as_ref().unwrap();
    assert_eq!((fence.proven_after_ms, fence.took_ms), (1_700, Some(1_700)));

    // A duration that the host's own operations lack comes from other hosts' operations; the host's own fence has none.
    let times = PastTimes::new(&[], &[of_another]);
    assert_eq!(times.of(kind, Some(method)).unwrap().took_ms, 1_700);
    assert_eq!(times.fence, None);
    assert!(
        times
            .of(TaskKind::Fencing(FencingKind::PowerOn), Some(method))
            .is_none()
    );
}
