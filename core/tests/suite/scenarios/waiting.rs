//! Attempts that no worker has claimed yet: they wait in a queue that moves, or for the broker.

use super::lost;
use ringfence_world::plans::*;

#[test]
fn an_attempt_in_a_queue_that_moves_waits_for_its_turn() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.line_moves(true);
    world.pass(200_000);
    // The first message is still valid.
    world.work(0);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "200.0 operation.proof power.off",
        "200.0 host.fenced 1",
        "200.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn a_lost_message_is_sent_again_once_the_queue_stops_moving() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.line_moves(true);
    world.pass(310_000);
    world.line_moves(false);
    world.pass(300_000);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "300.0 send 2 power.off bmc",
        "315.0 send 3 power.off bmc",
        "330.0 send 4 power.off bmc",
        "345.0 send 5 power.off bmc",
        "360.0 operation.needs_operator: no sufficient set was completed; failed: power.off (every level failed; last \
         bmc: unknown, no worker claimed it in time)",
    ]);
}

#[test]
fn an_hours_outage_of_the_broker_costs_a_method_none_of_its_time() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.broker_goes_away();
    world.pass(3_600_000);
    world.line_moves(false);
    // The message was lost with the broker.
    world.pass(16_000);
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "3615.0 send 2 power.off bmc",
        "3616.0 operation.proof power.off",
        "3616.0 host.fenced 1",
        "3616.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn an_attempt_that_waited_for_the_broker_continues_with_its_first_message() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.broker_goes_away();
    world.pass(3_600_000);
    world.line_moves(false);
    world.work(0);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "3600.0 operation.proof power.off",
        "3600.0 host.fenced 1",
        "3600.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn a_message_lost_with_its_bus_is_sent_again_at_once_without_cost_to_the_methods_time() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass(12_000);
    world.bus_begins_anew();
    world.pass(1_000);
    world.tick();
    world.pass(50_000);
    world.work(world.sent.len() - 1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "13.0 send 2 power.off bmc",
        "28.0 send 3 power.off bmc",
        "43.0 send 4 power.off bmc",
        "58.0 send 5 power.off bmc",
        "63.0 operation.proof power.off",
        "63.0 host.fenced 1",
        "63.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn a_message_lost_from_an_empty_queue_is_sent_again_without_cost_to_the_methods_time() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.line_is_empty();
    world.pass(80_000);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "15.0 send 2 power.off bmc",
        "30.0 send 3 power.off bmc",
        "45.0 send 4 power.off bmc",
        "60.0 send 5 power.off bmc",
        "75.0 operation.needs_operator: no sufficient set was completed; failed: power.off (every level failed; last \
         bmc: unknown, no worker claimed it in time)",
    ]);
}

#[test]
fn a_claimed_attempt_is_not_lost_with_the_bus() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world.pass(1_000);
    world.bus_begins_anew();
    world.tick();
    world.take_log();
    world.pass(5_000);
    world.expect(&[]);
}
