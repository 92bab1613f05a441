//! What was commanded may come true late.

use ringfence_core::{FailureState, SegmentPolicy, TaskKind};
use ringfence_world::plans::{policy, power_plan};
use ringfence_world::{Manner, World};

use crate::{is_open, lost, work};

/// FENCED by power, and a rejoin has sent `power.on` to a device that answers nothing.
fn unanswered_on(manner: Manner) -> World {
    let mut world = lost(
        power_plan(),
        SegmentPolicy {
            rejoin_wait_s: 3_600,
            ..policy()
        },
    );
    world.fence().unwrap();
    work(&mut world);
    world.pass(10_000);
    world.rejoin(false).unwrap();
    world.site.manners.insert("bmc".to_owned(), manner);
    let on = world.deliver(world.sent.len() - 1, "worker-1").unwrap();
    world.command(on);
    world.pass(1_000);
    let result = world.finish(on).unwrap();
    world.deliver_result(result);
    world.see(FailureState::Unreachable).unwrap();
    world
}

#[test]
fn an_off_waits_for_an_on_that_may_yet_come_true_and_is_commanded_although_it_reads_off() {
    let mut world = unanswered_on(Manner::Slow(6_000));
    world.fence().unwrap();
    let before = world.sent.len();
    world.pass(1_000);
    assert_eq!(world.sent.len(), before, "the off waits");
    assert!(!is_open(&world));
    world.pass(20_000);
    assert_eq!(world.sent.last().unwrap().kind, TaskKind::PowerOff);
    world.site.manners.clear();
    work(&mut world);
    assert!(world.is_fenced() && is_open(&world));
    assert!(!world.site.is_powered());
    world.pass(60_000);
    assert!(is_open(&world));
}

#[test]
fn a_device_that_shows_the_old_state_is_commanded_all_the_same() {
    let mut world = lost(
        power_plan(),
        SegmentPolicy {
            rejoin_wait_s: 3_600,
            ..policy()
        },
    );
    world.fence().unwrap();
    work(&mut world);
    world.pass(10_000);
    world.rejoin(false).unwrap();
    world.site.manners.insert("bmc".to_owned(), Manner::Stale(11_000));
    let on = world.deliver(world.sent.len() - 1, "worker-1").unwrap();
    world.command(on);
    assert!(world.site.is_powered(), "and still reads off");
    world.pass(500);
    let result = world.finish(on).unwrap();
    world.deliver_result(result);
    world.see(FailureState::Unreachable).unwrap();
    world.site.manners.clear();
    world.fence().unwrap();
    world.pass(30_000);
    world.work_off();
    assert!(!world.site.is_powered());
    assert!(world.is_fenced() && is_open(&world));
}

#[test]
fn a_person_is_not_believed_while_an_on_may_yet_come_true() {
    let mut world = unanswered_on(Manner::Slow(6_000));
    world.cancel().unwrap();
    world.pass(3_000);
    let generation = world.state.host.generation.0;
    world.site.plug(false);
    let said = world.confirm(generation, ringfence_world::plans::person("anna"), false);
    assert!(said.is_err(), "{said:?}");
    world.pass(20_000);
    world
        .confirm(generation, ringfence_world::plans::person("anna"), false)
        .unwrap();
    assert!(is_open(&world));
}

#[test]
fn an_attempt_in_a_line_that_moves_is_not_sent_again_for_ever() {
    let mut world = lost(power_plan(), policy());
    world.line_moves(true);
    world.fence().unwrap();
    world.pass(86_400_000);
    assert!(world.sent.len() < 20, "sent {} times", world.sent.len());
    let detail = world.state.operation.clone().unwrap().detail;
    assert!(detail.contains("no worker claimed it"), "{detail}");
}
