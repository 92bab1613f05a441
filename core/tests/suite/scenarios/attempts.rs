//! Which attempts can be claimed, how many there are, and which results count.

use ringfence_core::*;

use super::lost;
use ringfence_world::Manner;
use ringfence_world::plans::*;

#[test]
fn an_attempt_that_has_ended_cannot_be_claimed() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::PowerOff,
        &[&["left", "right"], &["bmc"]],
    )]]));
    world.site.manners.insert("right".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work(1);
    let refusal = world.deliver(0, "worker-1").unwrap_err();
    assert!(refusal.to_string().contains("it has ended"), "{refusal}");
}

#[test]
fn an_attempt_is_not_claimed_while_its_opposite_may_be_acting() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.rejoin(false).unwrap();
    let until = world.now + chrono::TimeDelta::seconds(10);
    let attempt = world.sent[0].attempt;
    world.state.host.in_flight.push(InFlight {
        attempt,
        generation: Generation(1),
        kind: FencingKind::PowerOff.into(),
        method: world.sent[0].job.method().map(|method| method.id),
        claim_id: None,
        until,
        only_looks: false,
        lasts_ms: None,
    });
    let refusal = world.deliver(1, "worker-1").unwrap_err();
    assert!(
        refusal.to_string().contains("the opposite of its task"),
        "{refusal}"
    );
    world.pass(10_000);
    assert!(world.deliver(1, "worker-1").is_ok());
}

#[test]
fn a_success_without_the_wanted_state_is_no_success() {
    let mut world = lost(power_plan());
    world.site.manners.insert("bmc".to_owned(), Manner::Lies);
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.command(job);
    let result = world.finish(job).unwrap();
    world.results[result].outcome = Outcome::Confirmed;
    world.deliver_result(result);
    assert!(!world.is_fenced(), "the device reads on");
    assert_eq!(world.violation, None);
}

#[test]
fn no_try_begins_once_seven_tenths_of_the_time_of_a_method_are_used() {
    let times = MethodTimes {
        attempt_timeout_s: 10,
        timeout_s: 30,
        retries: 10,
        pause_ms: 5_000,
        ..MethodTimes::default()
    };
    let silent = task_with(FencingKind::PowerOff, &[&["bmc"]], times);
    let mut world = lost(plan(vec![vec![silent]]));
    world.site.manners.insert("bmc".to_owned(), Manner::Silent);
    world.fence().unwrap();
    for _ in 0..20 {
        world.work_off();
        world.pass(1_000);
    }
    world.work_off();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "5.0 send 2 power.off bmc",
        "10.0 send 3 power.off bmc",
        "15.0 send 4 power.off bmc",
        "20.0 send 5 power.off bmc",
        "20.0 operation.needs_operator: no sufficient set was completed; failed: power.off (every level failed; last bmc: unknown)",
    ]);
}
