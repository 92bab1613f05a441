use super::*;
use crate::MAX_DELAY_MS;

fn at(second: i64) -> Timestamp {
    Timestamp::from_timestamp(1_700_000_000 + second, 0).unwrap()
}

fn one_host() -> World {
    let mut world = World::default();
    world.add_host("a").unwrap();
    world
}

fn command(world: &mut World, resource: Resource, state: PortState) {
    world.set_state("a", resource, state, None, at(0)).unwrap();
}

fn seen(world: &World) -> (FailureState, Option<String>) {
    let host = world.observe().remove(0);
    (host.failure_state, host.boot_id)
}

#[test]
fn a_host_without_power_is_unreachable_and_cannot_write() {
    let mut world = one_host();
    assert_eq!(seen(&world), (FailureState::Up, Some("a-boot-1".to_owned())));
    assert!(world.may_write("a"));

    command(&mut world, Resource::Power, PortState::Off);

    assert_eq!(seen(&world), (FailureState::Unreachable, None));
    assert!(!world.may_write("a"));
}

#[test]
fn power_that_comes_back_is_a_new_boot_and_ends_a_hang() {
    let mut world = one_host();
    world.set_condition("a", Condition::Hung).unwrap();

    command(&mut world, Resource::Power, PortState::Off);
    command(&mut world, Resource::Power, PortState::On);

    assert_eq!(seen(&world), (FailureState::Up, Some("a-boot-2".to_owned())));
}

#[test]
fn power_on_for_a_host_with_power_is_no_new_boot() {
    let mut world = one_host();
    command(&mut world, Resource::Power, PortState::On);
    assert_eq!(seen(&world).1, Some("a-boot-1".to_owned()));
}

#[test]
fn a_hung_host_answers_no_monitor_and_goes_on_writing() {
    let mut world = one_host();
    world.set_condition("a", Condition::Hung).unwrap();
    assert_eq!(seen(&world).0, FailureState::Unreachable);
    assert!(world.may_write("a"));
}

#[test]
fn a_crashed_host_writes_nothing_and_runs_again_with_a_new_boot() {
    let mut world = one_host();
    world.set_condition("a", Condition::Crashed).unwrap();
    assert!(!world.may_write("a"));

    world.set_condition("a", Condition::Running).unwrap();
    assert_eq!(seen(&world), (FailureState::Up, Some("a-boot-2".to_owned())));
}

#[test]
fn fenced_storage_stops_the_writes_and_a_fenced_network_does_not() {
    let mut world = one_host();
    command(&mut world, Resource::Network, PortState::Fenced);
    assert!(world.may_write("a"));
    command(&mut world, Resource::Storage, PortState::Fenced);
    assert!(!world.may_write("a"));
}

#[test]
fn the_monitor_sees_a_host_whose_data_network_is_fenced() {
    let mut world = one_host();
    command(&mut world, Resource::Network, PortState::Fenced);
    assert_eq!(seen(&world).0, FailureState::Up);
}

#[test]
fn a_host_with_two_supplies_loses_power_with_the_second() {
    let mut world = World::default();
    world.add_bare_host("a").unwrap();
    for device in ["left", "right"] {
        world.add_device(device, "a", &[Resource::Power]).unwrap();
    }
    let off = |world: &mut World, device: &str| {
        world
            .set_state(device, Resource::Power, PortState::Off, None, at(0))
            .unwrap();
    };

    off(&mut world, "left");
    assert!(world.may_write("a"));
    off(&mut world, "right");
    assert!(!world.may_write("a"));
}

#[test]
fn an_unknown_host_counts_as_writing() {
    assert!(World::default().may_write("unknown"));
}

#[test]
fn a_fault_fires_as_often_as_it_was_set() {
    let mut world = one_host();
    let lie = Fault::new(FaultKind::Lie, Some(2), None).unwrap();
    world.set_fault("a", Resource::Power, Some(lie)).unwrap();
    let mut off = || {
        world
            .meet("a", Resource::Power, Verb::Command(PortState::Off))
            .unwrap()
    };

    assert_eq!(
        [off(), off(), off()],
        [Behaviour::Lie, Behaviour::Lie, Behaviour::Obey]
    );
}

#[test]
fn a_lying_device_lies_about_commands_and_not_in_readings() {
    let mut world = one_host();
    let lie = Fault::new(FaultKind::Lie, Some(1), None).unwrap();
    world.set_fault("a", Resource::Power, Some(lie)).unwrap();

    let read = world.meet("a", Resource::Power, Verb::Read).unwrap();
    assert_eq!(read, Behaviour::Obey);
    let off = world
        .meet("a", Resource::Power, Verb::Command(PortState::Off))
        .unwrap();
    assert_eq!(off, Behaviour::Lie);
}

#[test]
fn a_fault_of_the_power_does_not_affect_other_resources() {
    let mut world = World::demo();
    let storage = Verb::Command(PortState::Fenced);
    assert_eq!(
        world.meet("sim-5", Resource::Storage, storage).unwrap(),
        Behaviour::Obey
    );
    assert_eq!(
        world.meet("sim-5", Resource::Power, Verb::Read).unwrap(),
        Behaviour::Silence
    );
}

#[test]
fn a_flapping_device_gives_power_back_after_its_delay() {
    let mut world = one_host();
    let flap = Fault::new(FaultKind::Flap, None, Some(5000)).unwrap();
    world.set_fault("a", Resource::Power, Some(flap)).unwrap();
    let off = Verb::Command(PortState::Off);
    assert_eq!(
        world.meet("a", Resource::Power, off).unwrap(),
        Behaviour::TakeBackAfter(5000)
    );
    world
        .set_state("a", Resource::Power, PortState::Off, Some(5000), at(0))
        .unwrap();

    world.settle(at(4));
    assert!(!world.may_write("a"));
    world.settle(at(5));
    assert!(world.may_write("a"));
    assert_eq!(seen(&world).1, Some("a-boot-2".to_owned()));
}

#[test]
fn a_new_command_ends_a_flap_that_is_due() {
    let mut world = one_host();
    world
        .set_state("a", Resource::Power, PortState::Off, Some(5000), at(0))
        .unwrap();
    command(&mut world, Resource::Power, PortState::Off);
    world.settle(at(60));
    assert!(!world.may_write("a"));
}

#[test]
fn invalid_states_and_names_are_refused() {
    let mut world = one_host();
    let fenced = Verb::Command(PortState::Fenced);
    assert!(world.meet("a", Resource::Power, fenced).is_err());
    assert!(world.meet("b", Resource::Power, Verb::Read).is_err());
    assert!(world.add_host("a").is_err());
    assert!(world.add_host("a\nb").is_err());
    assert!(world.add_device("d", "b", &[Resource::Power]).is_err());
    assert!(world.add_device("d", "a", &[Resource::Workloads]).is_err());
    assert!(Fault::new(FaultKind::Lie, Some(0), None).is_err());
    assert!(Fault::new(FaultKind::Slow, None, Some(MAX_DELAY_MS + 1)).is_err());
}

#[test]
fn a_ghost_shows_the_wanted_state_until_the_fault_ends() {
    let mut world = one_host();
    let ghost = Fault::forever(FaultKind::Ghost);
    world.set_fault("a", Resource::Power, Some(ghost)).unwrap();

    let met = world.meet("a", Resource::Power, Verb::Command(PortState::Off));

    assert_eq!(met.unwrap(), Behaviour::Lie);
    assert_eq!(world.shown("a", Resource::Power).unwrap(), PortState::Off);
    assert!(world.may_write("a"));
    world.set_fault("a", Resource::Power, None).unwrap();
    assert_eq!(world.shown("a", Resource::Power).unwrap(), PortState::On);
}
