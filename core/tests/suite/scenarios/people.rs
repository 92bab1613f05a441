//! What a person's confirmation does, and what it cannot do.

use ringfence_core::*;

use super::lost;
use ringfence_world::Manner;
use ringfence_world::plans::*;

#[test]
fn a_person_can_confirm_a_fence_whose_tasks_have_failed() {
    let mut world = lost(power_plan());
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work(0);
    world.take_log();
    world.pass(600_000);
    world.site.plug(false);
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::Done));
    world.expect(&[
        "600.0 operation.proof operator",
        "600.0 host.fenced 1",
        "600.0 operation.succeeded: FENCED, proven by operator; power.off failed and no longer mattered",
    ]);
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn a_confirmation_without_an_operation_makes_one() {
    let mut world = lost(power_plan());
    world.site.plug(false);
    assert_eq!(world.confirm(0, person("anna"), false), Ok(Reply::Done));
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 operation.proof operator",
        "0.0 host.fenced 1",
        "0.0 operation.succeeded: FENCED, proven by operator",
    ]);
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::AlreadySo));
}

#[test]
fn a_plan_without_tasks_waits_for_a_person() {
    let mut world = lost(plan(Vec::new()));
    world.fence().unwrap();
    world.site.plug(false);
    world.confirm(1, person("anna"), false).unwrap();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 operation.needs_operator: the plan does nothing by itself: fence the host by hand and confirm it",
        "0.0 operation.proof operator",
        "0.0 host.fenced 1",
        "0.0 operation.succeeded: FENCED, proven by operator",
    ]);
}

#[test]
fn a_confirmation_of_another_generation_is_refused() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    for generation in [0, 2] {
        let refusal = world.confirm(generation, admin("root"), true).unwrap_err();
        assert_eq!(refusal.code(), "generation.stale");
    }
}

#[test]
fn a_confirmation_for_a_host_that_is_up_needs_an_admins_override() {
    let mut world = lost(power_plan());
    world.see(FailureState::Up).unwrap();
    let code = |said: Result<Reply, Refusal>| said.unwrap_err().code();
    assert_eq!(code(world.confirm(0, person("anna"), false)), "host.up");
    assert_eq!(
        code(world.confirm(0, person("anna"), true)),
        "host.override_needs_admin"
    );
    assert_eq!(code(world.confirm(0, admin("root"), false)), "host.up");
    assert_eq!(world.confirm(0, admin("root"), true), Ok(Reply::Done));
    assert!(world.is_fenced());
    assert!(!world.gates().evacuate.allowed, "the host is still seen UP");
}

#[test]
fn a_confirmation_that_completes_no_set_is_refused() {
    let mut strict = power_plan();
    strict.sufficient_sets = vec![[ProofKind::PowerOff].into()];
    let mut world = lost(strict);
    let code = |said: Result<Reply, Refusal>| said.unwrap_err().code();
    assert_eq!(code(world.confirm(0, admin("root"), true)), "plan.no_operator");
    world.fence().unwrap();
    assert_eq!(code(world.confirm(1, admin("root"), true)), "plan.no_operator");
    assert!(!world.is_fenced());
}

#[test]
fn a_confirmation_is_refused_while_something_is_being_given_back() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.rejoin(false).unwrap();
    world.deliver(1, "worker-1").unwrap();
    world.cancel().unwrap();
    let refusal = world.confirm(2, person("anna"), false).unwrap_err();
    assert_eq!(refusal.code(), "host.undoing");
    world.pass(31_999);
    let refusal = world.confirm(2, person("anna"), false).unwrap_err();
    assert_eq!(refusal.code(), "host.undoing", "the device may still switch on");
    world.pass(1);
    world.site.plug(false);
    assert_eq!(world.confirm(2, person("anna"), false), Ok(Reply::Done));
}

#[test]
fn only_an_operation_that_waits_for_a_person_can_be_retried() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    assert_eq!(world.retry().unwrap_err().code(), "operation.not_waiting");
    world.work(0);
    assert_eq!(world.retry().unwrap_err().code(), "operation.over");
}

#[test]
fn an_override_is_recorded_only_for_a_host_that_was_seen_up() {
    let detail = |world: &ringfence_world::World| {
        let last = world.trace.last().unwrap().said.clone().unwrap();
        last.state.operation.unwrap().proofs[0].detail.clone()
    };
    let mut world = lost(power_plan());
    world.confirm(0, admin("root"), true).unwrap();
    assert_eq!(detail(&world), "I pulled the plug");
    let mut world = lost(power_plan());
    world.see(FailureState::Up).unwrap();
    world.confirm(0, admin("root"), true).unwrap();
    assert_eq!(
        detail(&world),
        "I pulled the plug (although the host was seen UP)"
    );
}
