//! Cancelled operations and their effects.

use ringfence_core::*;

use super::{comes_back, lost};
use ringfence_world::plans::*;

#[test]
fn an_attempt_cancelled_before_its_claim_is_refused() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.cancel().unwrap();
    let refusal = world.deliver(0, "worker-1").unwrap_err();
    assert_eq!(refusal.code(), "attempt.refused");
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 note operation.cancel",
        "0.0 operation.cancelled: cancelled by anna: a mistake",
    ]);
    assert!(world.state.host.applied.fencing.is_empty());
    assert!(world.site.running);
}

#[test]
fn a_cancelled_operation_waits_for_the_worker_of_its_attempt() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.cancel().unwrap();
    world.pass(1_000);
    comes_back(&mut world);
    assert!(!world.gates().schedule.allowed, "the off may still come");
    world.command(job);
    assert_eq!(world.complete(job), Reply::Ignored("its operation has ended"));
    assert!(!world.is_fenced(), "a fence that was cancelled proves nothing");
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 note operation.cancel",
        "0.0 operation.cancelled: cancelled by anna: a mistake",
        "1.0 host.failure_state UP",
        "1.0 note result.ignored: its operation has ended",
        "2.0 host.failure_state UNREACHABLE",
    ]);
    // The host is off: what was taken is remembered and can be given back.
    world.rejoin(false).unwrap();
    world.work(1);
    world.pass(5_000);
    comes_back(&mut world);
    world.expect(&[
        "2.0 operation.started rejoin 2",
        "2.0 send 1 power.on bmc",
        "7.0 host.failure_state UP",
        "7.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.state.host.applied.fencing.is_empty());
}

#[test]
fn a_host_heard_only_before_its_power_off_is_not_taken_back() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.cancel().unwrap();
    world.pass(1_000);
    comes_back(&mut world);
    world.command(job);
    world.complete(job);
    world.take_log();
    // The monitor has not reported since.
    world.rejoin(false).unwrap();
    world.work(1);
    let rejoin = world.state.operation.as_ref().unwrap();
    assert_eq!(
        rejoin.detail,
        "waiting: the host was last seen UP before it was fenced or switched off, and not since"
    );
}

#[test]
fn an_on_waits_until_the_off_of_a_silent_worker_has_no_effect_any_more() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.cancel().unwrap();
    world.take_log();
    world.rejoin(false).unwrap();
    world.pass(19_999);
    assert!(
        world.command(job),
        "the worker commands the device just before its deadline"
    );
    world.pass(15_000);
    // Its deadline, and the ten seconds that a simulated device lingers.
    world.expect(&["0.0 operation.started rejoin 2", "32.0 send 1 power.on bmc"]);
}

#[test]
fn a_fence_cancelled_after_its_proof_keeps_the_host_fenced() {
    let mut world = lost(reboot_plan());
    world.fence().unwrap();
    world.work(0);
    world.cancel().unwrap();
    assert!(world.is_fenced());
    assert!(world.gates().evacuate.allowed);
    assert!(world.deliver(1, "worker-1").is_err(), "the power stays off");
    assert_eq!(world.fence(), Ok(Reply::AlreadySo));
}

#[test]
fn an_ended_operation_cannot_be_cancelled() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let operation_id = world.live_id();
    world.work(0);
    let cancel = Input::Cancel {
        operation_id,
        reason: "too late".to_owned(),
        actor: person("anna"),
    };
    assert_eq!(world.give(cancel).unwrap_err().code(), "operation.over");
}

#[test]
fn a_late_result_of_an_older_generation_changes_nothing() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.command(job);
    let late = world.finish(job).unwrap();
    world.cancel().unwrap();
    world.site.restore_power();
    world.fence().unwrap();
    world.take_log();
    let answer = world.deliver_result(late);
    assert_eq!(answer, Reply::Ignored("it is of another operation or generation"));
    assert!(!world.is_fenced());
    world.expect(&["0.0 note result.ignored: it is of another operation or generation"]);
    world.work(1);
    assert!(world.is_fenced());
}

#[test]
fn a_result_that_comes_twice_counts_once() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.take_log();
    assert_eq!(world.deliver_result(0), Reply::Ignored("its operation has ended"));
    world.expect(&["0.0 note result.ignored: its operation has ended"]);
}

#[test]
fn the_result_of_another_claim_does_not_end_the_attempt() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world.cancel().unwrap();
    let dispatch = world.sent[0].clone();
    let claim = world.claim_for(&dispatch, "worker-2");
    let stranger = TaskResult {
        claim,
        outcome: Outcome::Refused,
        observation: None,
        finding: None,
        detail: "my claim was refused".to_owned(),
    };
    world.give(Input::Result(stranger)).unwrap();
    assert_eq!(
        world.state.host.in_flight.len(),
        1,
        "worker-1's attempt is still under way"
    );
}

#[test]
fn a_message_that_reaches_two_workers_is_one_attempt() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    assert_eq!(
        world.deliver(0, "worker-2").unwrap_err().code(),
        "attempt.refused"
    );
    // The first worker repeats its claim, because the answer was lost, and gets the time that is left.
    world.pass(4_000);
    let claim = world.jobs[0].claim.clone();
    let again = world.give(Input::Claim(claim)).unwrap();
    assert_eq!(
        again,
        Reply::Granted {
            budget_ms: 16_000,
            lease_ms: 10_000
        }
    );
}
