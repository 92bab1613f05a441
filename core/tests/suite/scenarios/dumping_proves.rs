//! What a message of a crash kernel proves, where the plan counts kdump.

use ringfence_core::*;

use super::on_nova::{automatic, on_nova};
use super::{comes_back, lost_under};
use ringfence_world::World;
use ringfence_world::plans::*;

fn waits_for_dumps() -> SegmentPolicy {
    SegmentPolicy {
        fencing: FencingPolicy {
            automatic: true,
            after_s: 5,
            kdump_timeout_s: Some(60),
            ..FencingPolicy::default()
        },
        ..ringfence_world::plans::policy()
    }
}

fn counting(kdump: &[ProofKind], stages: FrozenPlan) -> FrozenPlan {
    let mut plan = stages;
    plan.sufficient_sets = vec![[ProofKind::PowerOff].into(), kdump.iter().copied().collect()];
    plan
}

/// A host whose kernel has died, and whose automatic fence has begun at five seconds.
fn fencing(plan: FrozenPlan, policy: SegmentPolicy) -> World {
    let mut world = lost_under(plan, policy);
    world.site.crash(false);
    message(&mut world);
    world.pass(5_000);
    world.take_log();
    world
}

/// The crash kernel sends a message, and a worker hears it.
#[track_caller]
fn sends(world: &mut World) {
    assert!(world.send_kdump() && world.hear_kdump(0));
    world.datagrams.clear();
}

/// An engine is told of the last message.
fn told(world: &mut World) {
    world.tell_kdump(world.kdump_heard.len() - 1).unwrap();
}

#[track_caller]
fn message(world: &mut World) {
    sends(world);
    told(world);
}

fn is_proven(world: &World) -> bool {
    let live = world.state.operation.iter().flat_map(|live| &live.proofs);
    live.chain(world.state.host.fence.iter().flat_map(|fence| &fence.proofs))
        .any(|proof| proof.kind == ProofKind::Kdump && proof.ended.is_none())
}

#[test]
fn a_message_after_the_fence_has_begun_opens_the_gate_while_power_is_held_for_the_dump() {
    let mut world = fencing(counting(&[ProofKind::Kdump], power_plan()), waits_for_dumps());
    world.pass(5_000);
    message(&mut world);
    assert!(!world.is_fenced(), "it may have been sent before the fence began");
    world.pass(5_000);
    message(&mut world);
    world.expect(&["15.0 operation.proof kdump", "15.0 host.fenced 1"]);
    assert!(world.gates().evacuate.allowed);
    assert!(world.sent.is_empty());
    let detail = world.state.operation.as_ref().unwrap().told();
    assert!(
        detail.contains("power.off is held while the host writes a crash dump"),
        "{detail}"
    );
    world.pass(30_000);
    world.expect(&["45.0 host.kdump_ended", "45.0 send 1 power.off bmc"]);
    world.work_off();
    let proofs = &world.state.host.fence.as_ref().unwrap().proofs;
    assert_eq!(proofs.len(), 2);
}

#[test]
fn a_host_that_starts_again_after_its_dump_ends_the_proof() {
    let mut world = fencing(counting(&[ProofKind::Kdump], power_plan()), waits_for_dumps());
    world.pass(10_000);
    message(&mut world);
    assert!(world.gates().evacuate.allowed);
    world.site.start_again();
    world.pass(5_000);
    comes_back(&mut world);
    assert!(world.is_fenced() && !is_proven(&world) && !world.gates().evacuate.allowed);
    assert_eq!(world.violation, None);
}

#[test]
fn messages_prove_nothing_where_the_plan_does_not_count_them() {
    let mut world = fencing(power_plan(), waits_for_dumps());
    world.pass(10_000);
    message(&mut world);
    assert!(!is_proven(&world) && !world.is_fenced());
}

#[test]
fn a_message_without_a_time_holds_power_and_proves_nothing() {
    let mut world = fencing(counting(&[ProofKind::Kdump], power_plan()), waits_for_dumps());
    world.pass(20_000);
    world.give(Input::KdumpMessage { heard_after: None }).unwrap();
    assert!(!is_proven(&world) && world.sent.is_empty());
}

#[test]
fn a_report_of_an_earlier_dump_proves_nothing_of_a_host_that_runs_again() {
    let mut world = lost_under(counting(&[ProofKind::Kdump], power_plan()), waits_for_dumps());
    world.site.crash(false);
    sends(&mut world);
    world.site.start_again();
    world.pass(4_900);
    comes_back(&mut world);
    world.tick();
    assert!(world.site.running);
    world.see(FailureState::Unreachable).unwrap();
    world.pass(20_000);
    assert!(world.state.operation.is_some());
    told(&mut world);
    assert!(!is_proven(&world));
}

#[test]
fn a_message_from_before_a_sign_of_life_proves_nothing() {
    let mut world = fencing(counting(&[ProofKind::Kdump], power_plan()), waits_for_dumps());
    world.pass(10_000);
    sends(&mut world);
    // The monitor's own report is late, and tells of it.
    let alive_at = world.now - chrono::TimeDelta::seconds(4);
    let report = Report {
        state: FailureState::Unreachable,
        source: "monitor".to_owned(),
        observed_at: world.now,
        last_seen_at: Some(alive_at),
        silent_since: None,
        boot: None,
    };
    world.report(report).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
    told(&mut world);
    assert!(!is_proven(&world));
}

#[test]
fn a_moment_of_another_time_proves_nothing() {
    let mut world = fencing(counting(&[ProofKind::Kdump], power_plan()), waits_for_dumps());
    world.pass(10_000);
    sends(&mut world);
    world.move_clock(-3);
    world.state.clock_set_at = Some(world.now);
    world.tick();
    world.pass(20_000);
    told(&mut world);
    assert!(!is_proven(&world));
    message(&mut world);
    assert!(is_proven(&world), "the new time counts");
}

#[test]
fn a_message_from_before_a_release_proves_nothing() {
    let mut world = fencing(counting(&[ProofKind::Kdump], power_plan()), waits_for_dumps());
    world.pass(10_000);
    let now = world.now;
    world.state.host.released_at = Some(now);
    message(&mut world);
    assert!(!is_proven(&world));
    world.pass(10_000);
    message(&mut world);
    assert!(is_proven(&world));
}

#[test]
fn a_message_of_a_host_that_is_not_silent_proves_nothing() {
    let mut world = fencing(counting(&[ProofKind::Kdump], power_plan()), waits_for_dumps());
    world.pass(10_000);
    world.say("monitor", FailureState::Unknown, 0, None).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Unknown);
    message(&mut world);
    assert!(!is_proven(&world));
}

#[test]
fn a_set_of_two_needs_both_and_a_message_says_no_more_than_its_set() {
    let storage = plan(vec![vec![task(FencingKind::StorageFence, &[&["ceph"]])]]);
    let both = [ProofKind::Kdump, ProofKind::NetworkFence];
    let mut sets = counting(&both, storage);
    sets.sufficient_sets.push([ProofKind::StorageFence].into());
    let mut world = fencing(sets, waits_for_dumps());
    world.pass(10_000);
    message(&mut world);
    assert!(is_proven(&world) && !world.is_fenced());
    world.work_off();
    assert!(world.is_fenced());
    assert_eq!(
        proven_movable(&world.state, world.now),
        Some(Movable::OnFencedStorage)
    );
}

#[test]
fn a_fence_that_a_safeguard_holds_is_not_proven_and_one_that_waits_for_a_message_asks_no_operator() {
    let mut policy = waits_for_dumps();
    policy.fencing.at_most = 1;
    let by_message = counting(&[ProofKind::Kdump], plan(Vec::new()));
    let mut world = lost_under(by_message.clone(), policy);
    world.others.out_of_service = 5;
    world.others.lately = 5;
    world.site.crash(false);
    message(&mut world);
    world.pass(20_000);
    assert!(world.state.operation.as_ref().is_some_and(Operation::is_held));
    message(&mut world);
    assert!(!is_proven(&world));

    let mut world = fencing(by_message, waits_for_dumps());
    let detail = world.state.operation.as_ref().unwrap().told();
    assert!(detail.contains("waiting for a kdump message"), "{detail}");
    world.pass(9_000);
    message(&mut world);
    assert!(world.is_fenced());

    let mut silent = lost_under(world.plan.clone(), waits_for_dumps());
    silent.pass(5_000);
    let status = silent.state.operation.as_ref().unwrap().status;
    assert_eq!(status, OperationStatus::NeedsOperator, "no dump has begun");
}

#[test]
fn workloads_run_elsewhere_while_the_dump_is_written_and_power_is_held_for_it() {
    let mut world = on_nova(counting(&[ProofKind::Kdump], power_plan()), 1, automatic());
    world.state.policy.fencing = waits_for_dumps().fencing;
    world.site.crash(false);
    message(&mut world);
    world.pass(5_000);
    for _ in 0..3 {
        world.pass(5_000);
        message(&mut world);
        world.work_off();
    }
    world.take_log();
    world.pass(5_000);
    world.work_off();
    let is_power = |sent: &Dispatch| sent.job.kind() == FencingKind::PowerOff;
    assert_eq!(world.cloud.started.len(), 1);
    assert!(world.cloud.started[0].was_safe && !world.sent.iter().any(is_power));
    assert!(world.state.operation.is_some(), "power is still to be taken");
    world.pass(30_000);
    assert!(world.sent.iter().any(is_power));
    world.work_off();
    assert_eq!(world.state.operation, None);
    assert_eq!(world.violation, None);
}
