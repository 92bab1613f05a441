//! What a person's word does, and what it cannot do.

use ringfence_core::*;

use super::lost;
use ringfence_world::Manner;
use ringfence_world::plans::*;

#[test]
fn when_everything_failed_a_person_has_the_last_word() {
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
fn a_word_without_an_operation_is_an_operation() {
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
fn a_plan_that_does_nothing_waits_for_a_person() {
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
fn a_word_for_another_generation_is_refused() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    for generation in [0, 2] {
        let refusal = world.confirm(generation, admin("root"), true).unwrap_err();
        assert_eq!(refusal.code(), "generation.stale");
    }
}

#[test]
fn a_word_for_a_host_that_is_up_needs_an_admin_who_insists() {
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
    assert!(!world.gates().evacuate.allowed, "the host still answers");
}

#[test]
fn a_word_that_the_plan_does_not_count_is_refused() {
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
fn a_word_waits_until_nothing_is_being_given_back() {
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
    assert_eq!(refusal.code(), "host.undoing", "its device may still do it");
    world.pass(1);
    world.site.plug(false);
    assert_eq!(world.confirm(2, person("anna"), false), Ok(Reply::Done));
}

#[test]
fn only_what_waits_for_a_person_can_be_tried_again() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    assert_eq!(world.retry().unwrap_err().code(), "operation.not_waiting");
    world.work(0);
    assert_eq!(world.retry().unwrap_err().code(), "operation.over");
}

#[test]
fn the_override_is_on_record_only_where_something_was_overridden() {
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
