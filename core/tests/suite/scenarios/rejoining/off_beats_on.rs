//! A fence that comes in the middle of a rejoin.

use ringfence_core::*;
use ringfence_world::Manner;

use super::off;

#[test]
fn a_rejoin_overtaken_by_a_fence_holds_the_off_until_the_on_is_over() {
    let mut world = off();
    world.pass(10_000);
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.fence().unwrap();
    assert!(world.is_fenced(), "FENCED is not dropped");
    assert!(
        !world.gates().evacuate.allowed,
        "the fence is of an older generation"
    );
    world.pass(5_000);
    world.command(on);
    assert!(world.site.is_powered());
    world.complete(on);
    world.expect(&[
        "10.0 operation.started rejoin 2",
        "10.0 send 1 power.on bmc",
        "10.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "10.0 operation.cancelled: superseded by a fence of generation 3",
        "10.0 operation.started fence 3",
        "15.0 note result.ignored: it is of another operation or generation",
        "15.0 send 1 power.off bmc",
    ]);
    world.work(2);
    assert!(!world.site.is_powered());
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn an_off_waits_until_the_on_of_a_silent_worker_has_no_effect_any_more() {
    let mut world = off();
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.fence().unwrap();
    world.pass(19_999);
    world.command(on);
    world.pass(13_000);
    assert!(!world.command(on), "its time is up");
    // Its deadline, and the ten seconds that a simulated device lingers.
    world.expect(&[
        "0.0 operation.started rejoin 2",
        "0.0 send 1 power.on bmc",
        "0.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "0.0 operation.cancelled: superseded by a fence of generation 3",
        "0.0 operation.started fence 3",
        "32.0 send 1 power.off bmc",
    ]);
    world.work(2);
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn an_off_waits_for_the_effect_of_an_on_that_was_given_up() {
    let mut world = off();
    world.site.manners.insert("bmc".to_owned(), Manner::Slow(8_000));
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.command(on);
    world.complete(on);
    world.site.manners.clear();
    world.fence().unwrap();
    world.take_log();
    world.pass(9_999);
    assert!(world.site.is_powered(), "it came eight seconds late");
    world.expect(&[]);
    world.pass(1);
    world.expect(&["10.0 send 1 power.off bmc"]);
    world.work_off();
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.violation, None);
}

#[test]
fn a_rejoin_that_is_cancelled_leaves_the_host_fenced_and_the_gate_shut() {
    let mut world = off();
    world.rejoin(false).unwrap();
    world.work(1);
    world.cancel().unwrap();
    assert!(world.is_fenced());
    assert!(!world.gates().evacuate.allowed);
    assert!(
        matches!(world.fence(), Ok(Reply::Started(_))),
        "the host can be fenced again"
    );
}
