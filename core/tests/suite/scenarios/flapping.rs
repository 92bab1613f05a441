//! A host that is fenced again and again.

use chrono::TimeDelta;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::{self, power_plan};

use super::boot;

fn policy() -> SegmentPolicy {
    SegmentPolicy {
        auto_rejoin: true,
        quarantine: Some(QuarantinePolicy {
            fences: 2,
            within_s: 3_600,
        }),
        ..plans::policy()
    }
}

/// Fences the host, and has it come back with a new boot.
fn is_fenced_and_comes_back(world: &mut World, name: &str) {
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.work_off();
    assert!(world.is_fenced());
    world.pass(60_000);
    let new = boot(name, world.now);
    world.say("monitor", FailureState::Up, 0, Some(new)).unwrap();
    world.pass(1_000);
    world.work_off();
    world.pass(1_000);
}

#[test]
fn a_host_that_is_fenced_too_often_is_taken_back_by_a_person_alone() {
    let mut world = World::new(power_plan(), policy());
    is_fenced_and_comes_back(&mut world, "boot-2");
    assert!(!world.is_fenced(), "one fence is no quarantine");
    is_fenced_and_comes_back(&mut world, "boot-3");
    assert!(world.is_fenced());
    assert!(world.state.host.flapping.quarantined_at.is_some());
    let log = world.take_log();
    assert_eq!(
        log.iter()
            .filter(|line| line.contains("host.quarantined"))
            .count(),
        1,
        "{log:#?}"
    );
    // It does not end with the time.
    world.pass(2 * 3_600_000);
    assert!(world.is_fenced());
    let since = world.state.host.flapping.quarantined_at.unwrap();
    assert_eq!(world.rejoin_for_program(), Err(Refusal::Quarantined { since }));
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(1_000);
    world.work_off();
    assert!(!world.is_fenced());
    assert_eq!(world.state.host.flapping, Flapping::default());
}

#[test]
fn a_suspended_host_is_not_taken_back_for_a_program() {
    let mut world = World::new(power_plan(), plans::policy());
    is_fenced_and_comes_back(&mut world, "boot-2");
    world.suspend(SuspensionScope::Host, None);
    let Err(Refusal::Suspended { why }) = world.rejoin_for_program() else {
        panic!("it is taken back: {:?}", world.state.operation)
    };
    assert!(
        why.starts_with("the host is suspended without an end by anna"),
        "{why}"
    );
    world.resume(SuspensionScope::Host);
    assert!(matches!(world.rejoin_for_program(), Ok(Reply::Started(_))));
}

#[test]
fn fences_that_lie_far_apart_are_no_quarantine() {
    let mut world = World::new(power_plan(), policy());
    is_fenced_and_comes_back(&mut world, "boot-2");
    world.pass(3_600_000);
    is_fenced_and_comes_back(&mut world, "boot-3");
    assert!(!world.is_fenced());
    assert_eq!(world.state.host.flapping.fences_within(3_600, world.now), 1);
}

#[test]
fn a_segment_that_has_no_rule_any_more_keeps_no_host_in_quarantine() {
    let mut world = World::new(power_plan(), policy());
    is_fenced_and_comes_back(&mut world, "boot-2");
    is_fenced_and_comes_back(&mut world, "boot-3");
    assert!(world.is_fenced());
    world.state.policy.quarantine = None;
    world.tick();
    world.work_off();
    world.pass(1_000);
    world.work_off();
    assert!(!world.is_fenced());
}

#[test]
fn a_quarantine_is_kept_in_the_record() {
    let mut world = World::new(power_plan(), policy());
    is_fenced_and_comes_back(&mut world, "boot-2");
    is_fenced_and_comes_back(&mut world, "boot-3");
    let record = Record::of(&world.state).unwrap();
    assert_eq!(record.flapping, world.state.host.flapping);
    let text = serde_json::to_string(&record).unwrap();
    let read: Record = serde_json::from_str(&text).unwrap();
    let now = world.now + TimeDelta::seconds(1);
    let restored = read.restore(World::new(power_plan(), policy()).state, now);
    assert_eq!(restored.host.flapping, world.state.host.flapping);
}
