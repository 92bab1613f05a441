//! Automatic fences, and the storm brake.

use ringfence_core::{
    FailureState, FencingPolicy, FrozenPlan, Neighbourhood, OperationKind, OperationStatus, Reply,
    SegmentPolicy, fence_due,
};

use super::{comes_back, lost_under};
use ringfence_world::World;
use ringfence_world::plans::*;

fn automatic() -> SegmentPolicy {
    SegmentPolicy {
        fencing: FencingPolicy {
            automatic: true,
            ..FencingPolicy::default()
        },
        ..ringfence_world::plans::policy()
    }
}

fn silent(plan: FrozenPlan) -> World {
    lost_under(plan, automatic())
}

/// This number of the nine other hosts has just failed, too.
fn with_others(world: &mut World, failed: u64) {
    world.others.out_of_service = failed;
    world.others.lately = failed;
}

const ASKS: &str = "6 hosts of the segment fell silent or were fenced within 600 s, and at most 5 are fenced without being asked; \
                    look why, then retry this operation to fence the host, or cancel it";

#[test]
fn a_silent_host_is_fenced_after_the_segments_waiting_time() {
    let mut world = silent(power_plan());
    world.pass(14_999);
    world.expect(&[]);
    world.pass(1);
    world.work_off();
    world.expect(&[
        "15.0 operation.started fence 1",
        "15.0 send 1 power.off bmc",
        "15.0 operation.proof power.off",
        "15.0 host.fenced 1",
        "15.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn an_automatic_fence_records_its_actor_and_reason() {
    let mut world = silent(power_plan());
    world.pass(15_000);
    let operation = world.state.operation.unwrap();
    assert_eq!(operation.requested_by, "ringfence");
    assert_eq!(
        operation.reason,
        "the host has been UNREACHABLE since 2030-01-01T12:00:00Z (seen by monitor)"
    );
}

#[test]
fn no_host_is_fenced_automatically_unless_its_segment_says_so() {
    let mut world = lost_under(power_plan(), ringfence_world::plans::policy());
    world.pass(3_600_000);
    assert_eq!(fence_due(&world.state), None);
    world.expect(&[]);
}

#[test]
fn a_host_that_is_seen_again_in_time_is_not_fenced() {
    let mut world = silent(power_plan());
    world.pass(10_000);
    comes_back(&mut world);
    world.pass(60_000);
    // The waiting time begins again.
    world.see(FailureState::Unreachable).unwrap();
    world.pass(14_000);
    assert!(world.state.operation.is_none());
    world.see(FailureState::Unknown).unwrap();
    world.pass(60_000);
    assert!(
        world.state.operation.is_none(),
        "a host that no source can see is not fenced"
    );
    world.see(FailureState::Unreachable).unwrap();
    world.pass(15_000);
    assert!(world.state.operation.is_some());
}

#[test]
fn a_cancelled_automatic_fence_is_not_repeated_within_one_silence() {
    let mut world = silent(power_plan());
    world.pass(15_000);
    world.cancel().unwrap();
    world.see(FailureState::Unknown).unwrap();
    world.see(FailureState::Unreachable).unwrap();
    world.pass(600_000);
    assert!(world.state.operation.is_none());
    comes_back(&mut world);
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.pass(15_000);
    assert!(world.state.operation.is_some());
}

#[test]
fn a_host_that_falls_silent_again_after_its_fence_is_fenced_again_when_it_has_had_time_to_boot() {
    let mut world = silent(power_plan());
    world.pass(15_000);
    world.work_off();
    world.pass(60_000);
    world.site.restore_power();
    world.pass(5_000);
    comes_back(&mut world);
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.take_log();
    world.pass(600_000);
    world.expect(&["681.0 operation.started fence 2", "681.0 send 1 power.off bmc"]);
}

#[test]
fn the_storm_brake_holds_a_fence_and_asks_a_person() {
    let mut world = silent(power_plan());
    with_others(&mut world, 5);
    world.pass(600_000);
    world.expect(&[
        "15.0 operation.started fence 1",
        &format!("15.0 operation.needs_operator: {ASKS}"),
    ]);
    assert!(world.sent.is_empty());
    world.retry().unwrap();
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn the_storm_brake_counts_hosts_that_are_out_of_service() {
    let mut world = silent(power_plan());
    // The other hosts have been out of service for weeks.
    world.others.out_of_service = 4;
    world.pass(15_000);
    let operation = world.state.operation.unwrap();
    assert_eq!(operation.status, OperationStatus::NeedsOperator);
    assert_eq!(
        operation.detail,
        "5 of the 10 hosts of the segment are out of service, and nothing is fenced without being asked beyond 40 %; look why, \
         then retry this operation to fence the host, or cancel it"
    );
}

#[test]
fn a_requested_fence_releases_the_storm_brake_for_that_host() {
    let mut world = silent(power_plan());
    with_others(&mut world, 5);
    world.pass(15_000);
    let held = world.live_id();
    assert_eq!(world.fence(), Ok(Reply::Joined(held)));
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn a_held_fence_ends_when_the_host_answers_again() {
    let mut world = silent(power_plan());
    with_others(&mut world, 5);
    world.pass(15_000);
    world.take_log();
    comes_back(&mut world);
    world.expect(&[
        "15.0 host.failure_state UP",
        "15.0 operation.cancelled: the host was seen UP before anything was done to it",
    ]);
}

#[test]
fn a_held_fence_is_not_proven_by_the_hosts_watchdog() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(30),
        restarts: 3,
        ..automatic()
    };
    let mut world = lost_under(power_plan(), policy);
    with_others(&mut world, 5);
    world.stays_silent(3_600);
    world.tick();
    assert!(!world.is_fenced() && world.sent.is_empty());
    world.retry().unwrap();
    assert_eq!(world.sent.len(), 1);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn a_persons_confirmation_counts_while_the_storm_brake_holds() {
    let mut world = silent(power_plan());
    with_others(&mut world, 5);
    world.pass(15_000);
    world.site.plug(false);
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::Done));
    assert!(world.is_fenced() && world.gates().evacuate.allowed);
}

#[test]
fn an_automatic_fence_without_a_plan_asks_a_person() {
    let mut world = silent(power_plan());
    world.pass_unseen(15_000);
    world.auto_fence(Err("method bmc does not exist".to_owned()));
    let operation = world.state.operation.clone().unwrap();
    assert_eq!(operation.status, OperationStatus::NeedsOperator);
    assert_eq!(
        operation.detail,
        "no plan can be carried out: fence the host by hand and confirm it"
    );
    assert!(operation.reason.ends_with("; method bmc does not exist"));
    world.site.plug(false);
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::Done));
    assert!(world.is_fenced());
}

#[test]
fn a_host_that_dies_while_its_rejoin_waits_for_a_person_is_fenced_again() {
    let policy = SegmentPolicy {
        rejoin_wait_s: 60,
        ..automatic()
    };
    let mut world = lost_under(power_plan(), policy);
    world.pass(15_000);
    world.work_off();
    world.rejoin(false).unwrap();
    world.pass(600_000);
    let rejoin = world.state.operation.clone().unwrap();
    assert_eq!(rejoin.status, OperationStatus::NeedsOperator, "{}", rejoin.detail);
    world.site.restore_power();
    world.pass(5_000);
    comes_back(&mut world);
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.pass(60_000);
    let fence = world.state.operation.clone().unwrap();
    assert_eq!(
        (fence.kind(), fence.requested_by.as_str()),
        (OperationKind::Fence, "ringfence")
    );
}

#[test]
fn an_automatic_fence_that_comes_too_early_or_twice_changes_nothing() {
    let mut world = silent(power_plan());
    let plan = world.plan.clone();
    assert_eq!(world.auto_fence(Ok(plan.clone())), Reply::AlreadySo);
    assert!(world.state.operation.is_none());
    world.pass(15_000);
    let first = world.live_id();
    assert_eq!(world.auto_fence(Ok(plan)), Reply::AlreadySo);
    assert_eq!(world.live_id(), first);
}

#[test]
fn one_failed_host_never_triggers_the_storm_brake() {
    let policy = FencingPolicy::default();
    let alone = Neighbourhood {
        hosts: 1,
        out_of_service: 1,
        lately: 1,
        ..Neighbourhood::default()
    };
    assert_eq!(policy.brake(&alone), None);
    // Each host is alone in its segment, and the whole cloud fails.
    let dark = Neighbourhood {
        in_cloud: 30,
        out_of_service_in_cloud: 13,
        ..alone
    };
    assert!(
        policy
            .brake(&dark)
            .unwrap()
            .contains("13 of the 30 hosts of the cloud")
    );
    let both = Neighbourhood {
        hosts: 2,
        out_of_service: 2,
        lately: 1,
        ..Neighbourhood::default()
    };
    assert!(policy.brake(&both).is_some());
}

#[test]
fn two_hosts_of_a_small_segment_may_fail_while_a_third_is_in_service() {
    let policy = FencingPolicy::default();
    let of = |hosts, out_of_service| Neighbourhood {
        hosts,
        out_of_service,
        lately: 1,
        in_cloud: hosts,
        out_of_service_in_cloud: out_of_service,
        ..Neighbourhood::default()
    };
    assert_eq!(policy.brake(&of(3, 2)), None);
    assert!(policy.brake(&of(3, 3)).is_some());
    assert!(policy.brake(&of(4, 3)).is_some(), "75 %");
    assert!(policy.brake(&of(2, 2)).is_some());
    assert_eq!(policy.brake(&of(100, 40)), None);
    assert!(policy.brake(&of(100, 41)).is_some());
}
