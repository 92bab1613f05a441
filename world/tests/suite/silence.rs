//! Self-fencing: silence counts only while it is watched.

use ringfence_core::{FailureState, Refusal, Report, SegmentPolicy};
use ringfence_world::World;
use ringfence_world::plans::{plan, policy};

use crate::lost;

fn with_watchdog(timeout_s: u32) -> SegmentPolicy {
    SegmentPolicy {
        self_fencing_timeout_s: Some(timeout_s),
        ..policy()
    }
}

/// A host with a self-fencing timeout of a minute, and no other way to prove its fence.
fn alone() -> World {
    let mut world = lost(plan(Vec::new()), with_watchdog(60));
    world.fence().unwrap();
    world
}

#[test]
fn a_host_is_fenced_by_a_report_of_silence_after_its_time() {
    let mut world = alone();
    world.stays_silent(59);
    assert!(!world.is_fenced());
    world.stays_silent(6);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn time_without_an_engine_is_not_watched_silence() {
    let mut world = alone();
    world.pass(1_000);
    world.pass_unseen(60_000);
    world.tick();
    assert!(!world.is_fenced());
    world.see(FailureState::Unreachable).unwrap();
    assert!(
        !world.is_fenced(),
        "between two reports that are a minute apart the host may have come and gone"
    );
    world.stays_silent(65);
    assert!(world.is_fenced());
}

#[test]
fn the_first_report_after_an_hour_proves_nothing() {
    let mut world = World::new(plan(Vec::new()), with_watchdog(60));
    world.see(FailureState::Up).unwrap();
    world.pass_unseen(3_600_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    assert!(!world.is_fenced());
}

#[test]
fn a_monitor_that_dies_after_its_only_report_proves_nothing() {
    let mut world = alone();
    world.pass(86_400_000);
    assert!(!world.is_fenced());
    let operation = world.state.operation.clone().unwrap();
    assert!(
        operation
            .detail
            .ends_with("fence the host by hand and confirm it"),
        "{}",
        operation.detail
    );
}

#[test]
fn a_restarted_source_with_an_old_sign_of_life_restarts_the_silence() {
    let mut world = alone();
    world.stays_silent(50);
    // The source knows only that the last sign came within the minute before.
    world.say("monitor", FailureState::Up, 60_000, None).unwrap();
    world.stays_silent(15);
    assert!(!world.is_fenced());
    world.stays_silent(60);
    assert!(world.is_fenced());
}

#[test]
fn a_sign_of_life_between_two_reports_of_silence_restarts_the_silence() {
    let mut world = alone();
    world.stays_silent(50);
    world.site.link("monitor", true);
    world.pass(1_000);
    world.site.link("monitor", false);
    let report = |world: &World, ago_s| Report {
        state: FailureState::Unreachable,
        source: "monitor".to_owned(),
        observed_at: world.now,
        last_seen_at: Some(world.now - chrono::TimeDelta::seconds(ago_s)),
        silent_since: None,
        boot: None,
    };
    world.pass(4_000);
    world.report(report(&world, 4)).unwrap();
    for ago_s in [10, 16, 22] {
        world.pass(6_000);
        world.report(report(&world, ago_s)).unwrap();
    }
    assert!(!world.is_fenced(), "the watchdog counts from the last contact");
    for ago_s in (28..=70).step_by(6) {
        world.pass(6_000);
        world.report(report(&world, ago_s)).unwrap();
    }
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_source_without_the_time_of_its_last_contact_is_no_witness() {
    let mut world = alone();
    for _ in 0..30 {
        world.pass(5_000);
        let report = Report {
            state: FailureState::Unreachable,
            source: "monitor".to_owned(),
            observed_at: world.now,
            last_seen_at: None,
            silent_since: None,
            boot: None,
        };
        world.report(report).unwrap();
    }
    assert!(
        !world.is_fenced(),
        "the source may have heard the host between two reports"
    );
}

#[test]
fn every_source_that_has_heard_the_host_must_report_its_silence() {
    let mut world = World::new(plan(Vec::new()), with_watchdog(60));
    world.say("platform", FailureState::Up, 0, None).unwrap();
    world.see(FailureState::Up).unwrap();
    world.site.link("platform", true);
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.stays_silent(120);
    assert!(
        !world.is_fenced(),
        "the platform may hear the host, whose agent then has contact"
    );
    world
        .give(ringfence_core::Input::ForgetSource {
            source: "platform".to_owned(),
            reason: "the platform was shut down".to_owned(),
            actor: ringfence_world::plans::person("anna"),
        })
        .unwrap();
    world.site.link("platform", false);
    world.stays_silent(65);
    assert!(world.is_fenced());
}

#[test]
fn a_source_that_has_never_heard_the_host_is_no_witness() {
    let mut world = World::new(plan(Vec::new()), with_watchdog(60));
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.stays_silent(120);
    assert!(!world.is_fenced());
}

#[test]
fn a_host_has_at_most_sixteen_sources() {
    let mut world = alone();
    for number in 0..15 {
        world
            .say(&format!("source-{number}"), FailureState::Unknown, 0, None)
            .unwrap();
    }
    let one_more = world.say("one-more", FailureState::Up, 0, None);
    assert!(matches!(one_more, Err(Refusal::TooManySources { .. })));
}

#[test]
fn a_host_that_its_watchdog_resets_ends_the_proof_before_it_starts_workloads() {
    let mut world = alone();
    world.site.watchdog_resets = true;
    world.stays_silent(65);
    assert!(world.is_fenced() && crate::is_open(&world));
    // The host has booted again by now, and its agent has no contact.
    world.stays_silent(15);
    assert_eq!(world.site.boot, 2);
    assert!(!world.site.running && crate::is_open(&world));
    world.site.link("monitor", true);
    world.tick();
    assert!(!crate::is_open(&world), "the agent has given a sign of life");
    assert!(!world.site.running, "the agent got no leave to start workloads");
    assert_eq!(world.violation, None);
}
