//! Self-fencing: only silence that was watched counts.

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

/// A host that fences itself after a minute alone, and nothing else that could prove its fence.
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
fn time_that_passed_while_no_engine_was_there_counts_for_nothing() {
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
fn a_source_that_starts_anew_and_remembers_a_sign_of_life_starts_the_silence_anew() {
    let mut world = alone();
    world.stays_silent(50);
    // It knows no more than that the last sign came somewhen in the minute before.
    world.say("monitor", FailureState::Up, 60_000, None).unwrap();
    world.stays_silent(15);
    assert!(!world.is_fenced());
    world.stays_silent(60);
    assert!(world.is_fenced());
}

#[test]
fn a_sign_of_life_between_two_reports_of_silence_starts_the_silence_anew() {
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
    assert!(!world.is_fenced(), "its watchdog counts from the last contact");
    for ago_s in (28..=70).step_by(6) {
        world.pass(6_000);
        world.report(report(&world, ago_s)).unwrap();
    }
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_source_that_does_not_say_when_it_last_saw_the_host_is_no_witness() {
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
    assert!(!world.is_fenced(), "it may have heard it between two reports");
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
        "the platform may hear it, and then its agent is not alone"
    );
    world
        .give(ringfence_core::Input::ForgetSource {
            source: "platform".to_owned(),
            reason: "it was shut down".to_owned(),
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
fn a_host_has_sixteen_sources_and_no_more() {
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
fn a_host_that_its_watchdog_resets_ends_the_proof_before_it_starts_anything() {
    let mut world = alone();
    world.site.watchdog_resets = true;
    world.stays_silent(65);
    assert!(world.is_fenced() && crate::is_open(&world));
    // It has booted again by now, and is alone: its agent hears from none.
    world.stays_silent(15);
    assert_eq!(world.site.boot, 2);
    assert!(!world.site.running && crate::is_open(&world));
    world.site.link("monitor", true);
    world.tick();
    assert!(!crate::is_open(&world), "its agent has said that it lives");
    assert!(!world.site.running, "it was told that it may not start anything");
    assert_eq!(world.violation, None);
}
