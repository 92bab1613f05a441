//! Self-fencing, and clocks that are set.

use chrono::TimeDelta;
use ringfence_core::*;

use super::{comes_back, falls_silent, lost, lost_under};
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
fn a_silent_host_is_fenced_after_the_self_fencing_timeout() {
    let mut world = lost_under(power_plan(), with_watchdog(90));
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.pass(10_000);
    world.fence().unwrap();
    world.work(0);
    world.stays_silent(100);
    world.expect(&[
        "10.0 operation.started fence 1",
        "10.0 send 1 power.off bmc",
        "90.0 operation.proof self-fencing",
        "90.0 host.fenced 1",
        "90.0 operation.succeeded: FENCED, proven by self-fencing; power.off failed and no longer mattered",
    ]);
    assert!(!world.site.running);
}

#[test]
fn the_self_fencing_timeout_starts_again_after_a_sign_of_life() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.stays_silent(80);
    comes_back(&mut world);
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.stays_silent(85);
    assert!(!world.is_fenced());
    world.stays_silent(5);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_source_that_reported_unknown_meanwhile_has_watched_no_silence() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.stays_silent(80);
    world.see(FailureState::Unknown).unwrap();
    world.see(FailureState::Unreachable).unwrap();
    world.stays_silent(85);
    assert!(!world.is_fenced());
    world.stays_silent(5);
    assert!(world.is_fenced());
}

#[test]
fn a_silence_from_before_the_clock_was_set_proves_nothing() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.pass(10_000);
    // The deciding process was halted, or the database's clock was set: the two look alike.
    world.move_clock(15);
    world.state.clock_set_at = Some(world.now);
    world.stays_silent(85);
    assert!(!world.is_fenced());
    world.stays_silent(5);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn an_attempt_under_way_is_not_over_because_the_clock_was_set_forward() {
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
    let until = of_first(&world).expect("the worker may still be acting");
    assert_eq!(
        until - world.now,
        TimeDelta::seconds(20 + 2 + 10),
        "the attempt has its full time again"
    );
    // After its full time the attempt is over.
    world.pass(32_001);
    world.tick();
    assert_eq!(of_first(&world), None);
}

#[test]
fn an_unknown_host_is_not_fenced_by_the_self_fencing_timeout() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.see(FailureState::Unknown).unwrap();
    world.fence().unwrap();
    world.pass(DAY_S * 1000);
    assert!(!world.is_fenced());
}

#[test]
fn the_self_fencing_timeout_starts_again_after_a_power_on() {
    let mut world = lost_under(power_plan(), with_watchdog(60));
    world.fence().unwrap();
    world.work(0);
    world.stays_silent(1_000);
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
        "the host has been silent for a second only since the power-on"
    );
    world.stays_silent(100);
    world.expect(&[
        "1061.0 operation.proof self-fencing",
        "1061.0 host.fenced 3",
        "1061.0 operation.succeeded: FENCED, proven by self-fencing; power.off failed and no longer mattered",
    ]);
}

#[test]
fn the_self_fencing_timeout_starts_again_after_a_rejoin_began() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(60));
    world.fence().unwrap();
    world.stays_silent(1_000);
    assert!(world.gates().evacuate.allowed);
    // The host boots, and its monitor does not hear it.
    world.rejoin(false).unwrap();
    world.site.restore_power();
    world.cancel().unwrap();
    world.pass(1_000);
    world.fence().unwrap();
    world.stays_silent(50);
    assert!(!world.gates().evacuate.allowed);
    world.stays_silent(15);
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn the_self_fencing_timeout_starts_again_after_a_power_on_of_a_killed_worker() {
    let mut world = lost_under(power_plan(), with_watchdog(60));
    world.fence().unwrap();
    world.work(0);
    world.stays_silent(1_000);
    world.rejoin(false).unwrap();
    world.site.manners.insert("bmc".to_owned(), Manner::Slow(8_000));
    let on = world.deliver(1, "worker-1").unwrap();
    world.command(on);
    world.cancel().unwrap();
    world.pass(1_000);
    world.fence().unwrap();
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.stays_silent(30);
    assert!(world.site.is_powered(), "the command took effect 8 s later");
    world.stays_silent(55);
    assert!(
        !world.gates().evacuate.allowed,
        "the command might have come true until half a minute after its claim"
    );
    world.stays_silent(10);
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn an_unwatched_self_fencing_timeout_is_counted_again() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.pass_unseen(600_000);
    world.tick();
    world.see(FailureState::Unreachable).unwrap();
    assert!(!world.is_fenced(), "the host may have come and gone meanwhile");
    world.stays_silent(85);
    assert!(!world.is_fenced());
    world.stays_silent(5);
    assert!(world.is_fenced());
}

#[test]
fn a_host_whose_silence_was_watched_for_long_enough_is_fenced_at_once() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.stays_silent(3_600);
    world.fence().unwrap();
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_silence_that_is_no_longer_reported_proves_nothing_and_a_person_is_asked() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.stays_silent(60);
    world.take_log();
    world.pass(3_600_000);
    world.expect(&[
        "90.0 operation.needs_operator: the plan does nothing by itself: fence the host by hand and confirm it",
    ]);
    // Time alone has not proven it; one report after a gap does not either.
    world.see(FailureState::Unreachable).unwrap();
    assert!(!world.is_fenced());
}

#[test]
fn a_continued_silence_does_not_end_its_own_proof() {
    let mut world = World::new(plan(Vec::new()), with_watchdog(10));
    world.see(FailureState::Up).unwrap();
    world.pass(500);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.stays_silent(15);
    assert!(world.is_fenced());
    assert!(world.gates().evacuate.allowed);
    world.stays_silent(3_600);
    let gate = world.gates().evacuate;
    assert!(gate.allowed, "{}", gate.reason);
    assert_eq!(world.violation, None);
}

#[test]
fn an_earlier_silence_does_not_prove_a_fence_that_begins_unwatched() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(10));
    world.stays_silent(60);
    world.pass(3_600_000);
    world.fence().unwrap();
    assert!(!world.is_fenced(), "the host may have come and gone meanwhile");
}

#[test]
fn the_sign_of_life_of_a_removed_source_still_counts() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(30));
    world.stays_silent(25);
    world.say("gossip", FailureState::Up, 0, None).unwrap();
    world
        .give(Input::ForgetSource {
            source: "gossip".to_owned(),
            reason: "it reports no more".to_owned(),
            actor: person("anna"),
        })
        .unwrap();
    world.fence().unwrap();
    world.stays_silent(25);
    assert!(!world.is_fenced(), "the host was heard 25 s ago");
    world.stays_silent(5);
    assert!(world.is_fenced());
}

#[test]
fn infrequent_reports_watch_no_silence() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    for _ in 0..20 {
        world.pass(i64::from(WATCHED_GAP_S) * 1_000 + 1);
        world.see(FailureState::Unreachable).unwrap();
    }
    assert!(!world.is_fenced());
    for _ in 0..3 {
        world.pass(i64::from(WATCHED_GAP_S) * 1_000);
        world.see(FailureState::Unreachable).unwrap();
    }
    assert!(world.is_fenced());
}

#[test]
fn a_source_that_has_never_heard_the_host_is_no_witness_of_its_silence() {
    let mut world = World::new(plan(Vec::new()), with_watchdog(10));
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.stays_silent(600);
    assert!(!world.is_fenced());
}

#[test]
fn every_source_that_has_heard_the_host_must_report_its_silence() {
    let mut world = World::new(plan(Vec::new()), with_watchdog(30));
    world.say("probe", FailureState::Up, 5_000, None).unwrap();
    falls_silent(&mut world);
    world.fence().unwrap();
    world.stays_silent(100);
    assert!(!world.is_fenced(), "the probe might hear the host");
    world.say("probe", FailureState::Unreachable, 0, None).unwrap();
    for _ in 0..6 {
        world.stays_silent(5);
        assert!(!world.is_fenced());
        world.say("probe", FailureState::Unreachable, 0, None).unwrap();
    }
    assert!(world.is_fenced());
}

#[test]
fn a_late_report_of_a_sign_of_life_restarts_the_silence() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(30));
    world.fence().unwrap();
    world.stays_silent(25);
    world.say("monitor", FailureState::Up, 20_000, None).unwrap();
    world.stays_silent(25);
    assert!(!world.is_fenced());
    world.stays_silent(5);
    assert!(world.is_fenced());
}

#[test]
fn a_clock_set_forward_by_a_day_proves_no_self_fencing() {
    let mut world = lost_under(plan(Vec::new()), with_watchdog(90));
    world.fence().unwrap();
    world.pass(10_000);
    world.move_clock(DAY_S);
    world.tick();
    assert!(world.site.running);
    assert!(!world.is_fenced());
    world.see(FailureState::Unreachable).unwrap();
    assert!(!world.is_fenced());
    world.stays_silent(90);
    assert!(world.is_fenced());
    assert!(!world.site.running);
}

#[test]
fn a_clock_set_forward_by_a_day_costs_one_try() {
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
fn a_clock_set_back_by_a_day_strands_no_operation() {
    let mut world = lost_under(power_plan(), with_watchdog(90));
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world.move_clock(-DAY_S);
    world.tick();
    assert!(
        world.wake_at.unwrap() <= world.now + TimeDelta::seconds(10),
        "the lease is longer than before the clock was set"
    );
    world.pass(11_000);
    world.work(1);
    assert!(world.is_fenced());
    world.rejoin(false).unwrap();
    // The silent worker has no more time than at its claim.
    world.pass(33_000);
    world.work(2);
    // The host's watchdog may have been running.
    world.pass(95_000);
    comes_back(&mut world);
    assert!(!world.is_fenced());
}

#[test]
fn a_clock_set_back_never_sends_the_off_too_early() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.move_clock(-DAY_S);
    world.fence().unwrap();
    world.pass(19_000);
    assert!(world.command(on), "the worker's own clock was not set");
    assert!(world.deliver(2.min(world.sent.len() - 1), "worker-2").is_err());
    world.pass(4_000_000);
    assert!(world.sent.len() > 2, "the off was not sent");
}

#[test]
fn a_monitor_with_a_fast_clock_does_not_shut_out_the_others() {
    let mut world = lost(power_plan());
    world
        .say("hasty", FailureState::Up, -31_536_000_000, None)
        .unwrap();
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
}

#[test]
fn a_report_of_silence_that_is_older_than_its_sources_last_is_refused() {
    let mut world = lost(power_plan());
    let old = world.say("monitor", FailureState::Unreachable, 1_000, None);
    assert_eq!(old.unwrap_err().code(), "observation.stale");
    let of_another = world.say("slow", FailureState::Unreachable, 1_000, None);
    assert_eq!(of_another, Ok(Reply::AlreadySo));
}

#[test]
fn a_broken_silence_counts_again_beside_another_proof() {
    let both = SufficientSet::from([ProofKind::StorageFence, ProofKind::SelfFencing]);
    let plan = FrozenPlan {
        sufficient_sets: vec![both],
        ..plan(vec![vec![task(FencingKind::StorageFence, &[&["ceph"]])]])
    };
    let mut world = lost_under(plan, with_watchdog(10));
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    world.stays_silent(60);
    world.see(FailureState::Up).unwrap();
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.site.manners.clear();
    world.retry().unwrap();
    world.work_off();
    world.stays_silent(5);
    assert!(
        !world.is_fenced(),
        "the host has been silent for less than the timeout"
    );
    world.stays_silent(5);
    assert!(world.is_fenced(), "the proof needs no further request");
}
