//! A host whose kernel has crashed writes what its memory holds, and keeps its power meanwhile.

use ringfence_core::*;

use super::lost_under;
use ringfence_world::World;
use ringfence_world::plans::*;

fn waits_for_dumps() -> SegmentPolicy {
    SegmentPolicy {
        fencing: FencingPolicy {
            automatic: true,
            kdump_timeout_s: Some(60),
            ..FencingPolicy::default()
        },
        ..ringfence_world::plans::policy()
    }
}

fn message(world: &mut World) {
    world.give(Input::KdumpMessage { heard_after: None }).unwrap();
}

/// The host falls silent, its first message comes 10 s later, and its fence begins.
fn dumping(plan: FrozenPlan, policy: SegmentPolicy) -> World {
    let mut world = lost_under(plan, policy);
    world.pass(10_000);
    message(&mut world);
    world.pass(5_000);
    world
}

#[test]
fn power_is_held_until_no_message_comes_any_more() {
    let mut world = dumping(power_plan(), waits_for_dumps());
    message(&mut world);
    assert_eq!(
        world.state.operation.as_ref().unwrap().told(),
        "waiting: power.off is held while the host writes a crash dump, since 2030-01-01T12:00:10Z, at the latest until 2030-01-01T12:01:10Z"
    );
    world.pass(30_000);
    world.expect(&[
        "10.0 host.kdump_began",
        "15.0 operation.started fence 1",
        "45.0 host.kdump_ended",
        "45.0 send 1 power.off bmc",
    ]);
    world.work_off();
    assert!(world.is_fenced());
    world.pass(1_000);
    assert_eq!(world.state.host.kdump, None);
}

#[test]
fn a_dump_that_takes_too_long_loses_its_power() {
    let mut world = dumping(power_plan(), waits_for_dumps());
    for _ in 0..11 {
        message(&mut world);
        world.pass(5_000);
    }
    world.expect(&[
        "10.0 host.kdump_began",
        "15.0 operation.started fence 1",
        "70.0 send 1 power.off bmc",
    ]);
    // It may go on, and holds nothing any more.
    message(&mut world);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn what_no_worker_has_taken_is_withdrawn_when_the_first_message_comes() {
    let mut world = lost_under(power_plan(), waits_for_dumps());
    world.pass(15_000);
    assert_eq!(world.sent.len(), 1);
    message(&mut world);
    let refused = world.deliver(0, "worker-1").unwrap_err();
    assert!(refused.to_string().contains("it has ended"), "{refused}");
    world.pass(30_000);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn what_a_person_has_joined_before_the_first_message_is_not_held() {
    let mut world = lost_under(power_plan(), waits_for_dumps());
    world.pass(15_000);
    let joined = world.fence().unwrap();
    assert!(matches!(joined, Reply::Joined(_)), "{joined:?}");
    message(&mut world);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn what_a_worker_is_at_goes_on() {
    let mut world = lost_under(power_plan(), waits_for_dumps());
    world.pass(15_000);
    let job = world.deliver(0, "worker-1").unwrap();
    message(&mut world);
    assert!(world.command(job));
    world.complete(job);
    assert!(world.is_fenced());
}

#[test]
fn storage_and_network_are_cut_meanwhile_and_the_host_is_fenced_by_that() {
    let all = plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
        task(FencingKind::NetworkFence, &[&["switch"]]),
    ]]);
    let mut world = dumping(all, waits_for_dumps());
    world.work_off();
    assert!(world.is_fenced());
    let power = |world: &World| {
        world
            .sent
            .iter()
            .any(|sent| sent.job.kind() == FencingKind::PowerOff)
    };
    assert!(!power(&world));
    world.pass(25_000);
    assert!(power(&world));
}

#[test]
fn a_request_is_not_held_and_a_second_one_ends_the_hold() {
    let mut asked = lost_under(power_plan(), waits_for_dumps());
    message(&mut asked);
    asked.fence().unwrap();
    assert_eq!(asked.sent.len(), 1);

    let mut joined = dumping(power_plan(), waits_for_dumps());
    assert!(joined.sent.is_empty());
    joined.fence().unwrap();
    assert_eq!(joined.sent.len(), 1);
}

#[test]
fn a_segment_that_does_not_wait_for_dumps_tells_of_them_and_holds_nothing() {
    let mut policy = waits_for_dumps();
    policy.fencing.kdump_timeout_s = None;
    let mut world = dumping(power_plan(), policy);
    world.expect(&[
        "10.0 host.kdump_began",
        "15.0 operation.started fence 1",
        "15.0 send 1 power.off bmc",
    ]);
    assert!(world.state.host.kdump.is_some());
}

#[test]
fn the_time_of_a_method_begins_after_the_hold() {
    let mut policy = waits_for_dumps();
    policy.fencing.kdump_timeout_s = Some(21_600);
    let mut world = dumping(power_plan(), policy);
    for _ in 0..360 {
        message(&mut world);
        world.pass(10_000);
    }
    assert!(world.sent.is_empty());
    world.pass(20_000);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn an_address_tells_the_host_that_names_it_unless_two_do() {
    let given = |addresses: &str| Parameters::from([("addresses".to_owned(), addresses.to_owned())]);
    let id = |number| HostId(uuid::Uuid::from_u128(number));
    let (one, two) = (given("192.0.2.1, 2001:db8::1"), given("192.0.2.1,192.0.2.2"));
    let known = KdumpAddresses::new([(id(1), &one), (id(2), &two)]);
    let host = |address: &str| known.host(address.parse().unwrap());
    assert_eq!(host("192.0.2.1"), None);
    assert_eq!(host("2001:db8::1"), Some(id(1)));
    assert_eq!(host("::ffff:192.0.2.2"), Some(id(2)));
    assert_eq!(host("192.0.2.3"), None);
    let first = known.after(None, 1);
    assert_eq!(first, ["192.0.2.2".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(known.after(first.last().copied(), 9).len(), 1);
}
