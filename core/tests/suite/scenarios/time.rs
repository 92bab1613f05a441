//! Self-fencing, and clocks that are moved.

use chrono::TimeDelta;
use ringfence_core::*;

use super::{expect, lost, lost_under};
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::*;

const DAY_S: i64 = 86_400;

fn with_watchdog(timeout_s: u32) -> SegmentPolicy {
    SegmentPolicy {
        self_fencing_timeout_s: Some(timeout_s),
        ..ringfence_world::plans::policy()
    }
}

#[test]
fn a_host_that_fences_itself_is_fenced_when_its_time_is_up() {
    let mut world = lost_under(power_plan(), with_watchdog(90));
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.pass(10_000);
    world.fence().unwrap();
    world.work(0);
    world.pass(100_000);
    expect(
        &mut world,
        &[
            "10.0 operation.started fence 1",
            "10.0 send 1 power.off bmc",
            "90.0 operation.proof self-fencing",
            "90.0 host.fenced 1",
            "90.0 operation.succeeded: FENCED, proven by self-fencing; power.off failed and no longer mattered",
        ],
    );
    assert!(!world.site.running);
}

#[test]
fn a_host_that_was_heard_meanwhile_has_all_its_time_again() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.pass(80_000);
    world.see(FailureState::Unknown).unwrap();
    world.see(FailureState::Unreachable).unwrap();
    world.pass(89_999);
    assert!(!world.is_fenced());
    world.pass(1);
    assert!(world.is_fenced());
}

#[test]
fn a_clock_that_was_set_says_nothing_of_the_time_before() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.pass(10_000);
    // Whoever decides was halted, or the database's clock was moved: nobody can tell.
    world.move_clock(60);
    world.state.clock_set_at = Some(world.now);
    world.pass(89_999);
    assert!(!world.is_fenced());
    world.pass(1);
    assert!(world.is_fenced());
}

#[test]
fn what_was_under_way_is_not_over_because_the_clock_was_set_forward() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let first = world.sent[0].attempt;
    world.deliver(0, "w1").unwrap();
    world.move_clock(DAY_S);
    world.state.clock_set_at = Some(world.now);
    world.tick();
    let of_first = |world: &World| {
        let mut in_flight = world.state.host.in_flight.iter();
        in_flight.find(|f| f.attempt == first).map(|f| f.until)
    };
    let until = of_first(&world).expect("its worker may still be acting");
    assert_eq!(until - world.now, TimeDelta::seconds(302));
    // And not for longer than that.
    world.pass(302_001);
    world.tick();
    assert_eq!(of_first(&world), None);
}

#[test]
fn nobody_knows_when_an_unknown_host_has_fenced_itself() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.see(FailureState::Unknown).unwrap();
    world.fence().unwrap();
    world.pass(DAY_S * 1000);
    assert!(!world.is_fenced());
}

#[test]
fn a_host_that_was_switched_on_meanwhile_has_all_its_time_again() {
    let mut world = lost_under(power_plan(), with_watchdog(60));
    world.fence().unwrap();
    world.work(0);
    world.pass(1_000_000);
    world.rejoin(false).unwrap();
    world.work(1);
    assert!(world.site.is_powered());
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.pass(1_000);
    world.fence().unwrap();
    world.take_log();
    world.work(2);
    assert!(
        !world.gates().evacuate.allowed,
        "it has been up for a second, and alone for a second"
    );
    world.pass(100_000);
    expect(
        &mut world,
        &[
            "1060.0 operation.proof self-fencing",
            "1060.0 host.fenced 3",
            "1060.0 operation.succeeded: FENCED, proven by self-fencing; power.off failed and no longer mattered",
        ],
    );
}

#[test]
fn a_timeout_that_nobody_watched_is_counted_again() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.pass_unseen(600_000);
    world.tick();
    assert!(!world.is_fenced(), "the host may have come and gone meanwhile");
    world.pass(89_999);
    assert!(!world.is_fenced());
    world.pass(1);
    assert!(world.is_fenced());
}

#[test]
fn a_host_that_is_seen_to_be_still_gone_has_fenced_itself() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.pass(3_600_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    assert!(world.is_fenced());
}

#[test]
fn a_clock_moved_forward_by_a_day_makes_no_watchdog_strike() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.pass(10_000);
    world.move_clock(DAY_S);
    world.tick();
    assert!(world.site.running);
    assert!(!world.is_fenced());
    world.pass(90_000);
    assert!(world.is_fenced());
    assert!(!world.site.running);
}

#[test]
fn a_clock_moved_forward_by_a_day_costs_one_try() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world.move_clock(DAY_S);
    world.tick();
    world.pass(1_000);
    world.work(1);
    assert!(world.is_fenced());
}

#[test]
fn a_clock_moved_back_by_a_day_strands_nothing() {
    let mut world = lost_under(power_plan(), with_watchdog(90));
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world.move_clock(-DAY_S);
    world.tick();
    assert!(
        world.wake_at.unwrap() <= world.now + TimeDelta::seconds(10),
        "the lease is short again"
    );
    world.pass(11_000);
    world.work(1);
    assert!(world.is_fenced());
    world.rejoin(false).unwrap();
    // How long the silent worker goes on is not known any more: the longest that any may is waited for.
    world.pass(302_000);
    world.work(2);
    world.see(FailureState::Up).unwrap();
    assert!(!world.is_fenced());
}

#[test]
fn a_clock_moved_back_never_frees_the_off_too_early() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.move_clock(-DAY_S);
    world.fence().unwrap();
    world.pass(19_000);
    assert!(world.command(on), "the worker's own watch was not moved");
    assert!(world.deliver(2.min(world.sent.len() - 1), "worker-2").is_err());
    world.pass(400_000);
    assert!(world.sent.len() > 2, "the off comes in the end");
}

#[test]
fn a_monitor_whose_watch_is_ahead_does_not_shut_out_the_others() {
    let mut world = lost(power_plan());
    let ahead = Input::FailureState {
        operation_id: OperationId(world.next_id()),
        state: FailureState::Up,
        source: "hasty".to_owned(),
        observed_at: world.now + TimeDelta::days(365),
        boot: None,
    };
    world.give(ahead).unwrap();
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
}

#[test]
fn a_report_that_is_older_than_the_last_is_refused() {
    let mut world = lost(power_plan());
    let old = Input::FailureState {
        operation_id: OperationId(world.next_id()),
        state: FailureState::Up,
        source: "slow".to_owned(),
        observed_at: world.now - TimeDelta::seconds(1),
        boot: None,
    };
    assert_eq!(world.give(old).unwrap_err().code(), "observation.stale");
}

#[test]
fn a_silence_that_was_broken_counts_anew_beside_another_proof() {
    let both = SufficientSet::from([ProofKind::StorageFence, ProofKind::SelfFencing]);
    let plan = FrozenPlan {
        sufficient_sets: vec![both],
        ..plan(vec![vec![task(TaskKind::StorageFence, &[&["ceph"]])]])
    };
    let mut world = lost_under(plan, with_watchdog(10));
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    world.pass(60_000);
    world.see(FailureState::Up).unwrap();
    world.see(FailureState::Unreachable).unwrap();
    world.site.manners.clear();
    world.retry().unwrap();
    world.work_off();
    world.pass(9_999);
    assert!(!world.is_fenced(), "it has been silent for less than the timeout");
    world.pass(1);
    assert!(world.is_fenced(), "nobody had to ask");
}
