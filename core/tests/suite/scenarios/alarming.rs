//! Problems of a host that come again and again.

use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::{self, power_plan};

use super::boot;

fn alarm(problem: HostProblem, times: u32, within_s: u32) -> AlarmRule {
    AlarmRule {
        problem,
        condition: None,
        times,
        within_s,
    }
}

fn world(alarms: Vec<AlarmRule>) -> World {
    let policy = SegmentPolicy {
        alarms,
        ..plans::policy()
    };
    let mut world = World::new(power_plan(), policy);
    comes_back(&mut world);
    world.take_log();
    world
}

fn comes_back(world: &mut World) {
    let present = boot("boot-1", world.site.booted_at);
    world.say("monitor", FailureState::Up, 0, Some(present)).unwrap();
}

/// The host falls silent, is heard again a second later, and is heard for a minute.
fn fails(world: &mut World) {
    world.see(FailureState::Unreachable).unwrap();
    world.pass(1_000);
    comes_back(world);
    world.pass(59_000);
}

fn told(world: &mut World) -> Vec<String> {
    let log = world.take_log().into_iter();
    log.filter(|line| line.contains("alarm")).collect()
}

#[test]
fn an_alarm_begins_once_and_ends_when_the_problem_is_rarer() {
    let mut world = world(vec![alarm(HostProblem::Failed, 3, 600)]);
    fails(&mut world);
    fails(&mut world);
    assert_eq!(told(&mut world), [""; 0]);
    fails(&mut world);
    assert_eq!(told(&mut world), ["120.0 host.alarm_began"]);
    // A fourth one says nothing new, and keeps the alarm for longer.
    fails(&mut world);
    assert_eq!(told(&mut world), [""; 0]);
    let [standing] = &world.state.host.alarms.standing[..] else {
        panic!("{:?}", world.state.host.alarms);
    };
    assert_eq!(standing.rule, world.state.policy.alarms[0]);
    // The second of the four is out of sight 600 s after it came.
    world.pass(600_000);
    assert_eq!(told(&mut world), ["660.0 host.alarm_ended"]);
    assert!(world.state.host.alarms.standing.is_empty());
    fails(&mut world);
    fails(&mut world);
    fails(&mut world);
    assert_eq!(told(&mut world), ["960.0 host.alarm_began"]);
}

#[test]
fn a_report_that_comes_again_is_no_second_failure() {
    let mut world = world(vec![alarm(HostProblem::Failed, 2, 600)]);
    world.see(FailureState::Unreachable).unwrap();
    for _ in 0..5 {
        world.pass(1_000);
        world.see(FailureState::Unreachable).unwrap();
    }
    assert_eq!(told(&mut world), [""; 0]);
}

#[test]
fn an_alarm_ends_with_its_rule() {
    let mut world = world(vec![alarm(HostProblem::Failed, 1, 600)]);
    fails(&mut world);
    assert_eq!(told(&mut world), ["0.0 host.alarm_began"]);
    world.state.policy.alarms.clear();
    world.tick();
    assert_eq!(told(&mut world), ["60.0 host.alarm_ended"]);
    assert!(world.state.host.alarms.is_none());
}

#[test]
fn alarms_are_kept_in_the_record_of_a_host_that_was_fenced() {
    let fenced_twice = vec![alarm(HostProblem::Fenced, 2, 3_600)];
    let mut world = world(fenced_twice.clone());
    assert!(Record::of(&world.state).is_none(), "nothing has to be kept of it");
    world.pass(5_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.work_off();
    assert!(world.is_fenced());
    let record = Record::of(&world.state).unwrap();
    let text = serde_json::to_string(&record).unwrap();
    let read: Record = serde_json::from_str(&text).unwrap();
    let fresh = self::world(fenced_twice);
    let restored = read.restore(fresh.state, world.now);
    assert_eq!(restored.host.alarms, world.state.host.alarms);
    assert_eq!(restored.host.alarms.counted.len(), 1);
}
