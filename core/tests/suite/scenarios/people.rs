//! What a person's confirmation does, and what it cannot do.

use chrono::TimeDelta;
use ringfence_core::*;
use ringfence_world::World;

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
    world.pass(1_000);
    let refusal = world.confirm(2, person("anna"), false).unwrap_err();
    assert_eq!(
        refusal.code(),
        "host.released_since",
        "two clocks may differ by so much"
    );
    world.pass(1);
    world.site.plug(false);
    assert_eq!(world.confirm(2, person("anna"), false), Ok(Reply::Done));
}

/// The word of a person who has just pulled the plug, before what follows happens.
fn written(world: &mut World) -> Word {
    world.site.plug(false);
    Word {
        said_at: world.now,
        generation: world.state.host.generation.0,
    }
}

struct Word {
    said_at: Timestamp,
    generation: u32,
}

impl Word {
    fn is_heard(&self, world: &mut World) -> Result<Reply, Refusal> {
        world.confirm_as_of(self.said_at, self.generation, person("anna"), false)
    }

    #[track_caller]
    fn is_refused(&self, world: &mut World, code: &str) {
        let before = world.state.clone();
        assert_eq!(self.is_heard(world).unwrap_err().code(), code);
        assert_eq!(world.state, before);
    }
}

#[test]
fn a_word_is_a_proof_of_the_moment_in_which_it_was_said() {
    let mut world = lost(power_plan());
    let word = written(&mut world);
    let said_at = word.said_at;
    world.pass(600_000);
    word.is_heard(&mut world).unwrap();
    let proof = &world.state.host.fence.as_ref().unwrap().proofs[0];
    assert_eq!((proof.read_at, proof.observed_at), (said_at, world.now));
}

#[test]
fn a_word_says_nothing_of_a_host_that_was_alive_after_it() {
    let mut world = lost(power_plan());
    let word = written(&mut world);
    world.pass(1_000);
    world.site.plug(true);
    world.pass(1_000);
    world.see(FailureState::Up).unwrap();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    word.is_refused(&mut world, "host.alive_since");
    let admin = world.confirm_as_of(word.said_at, word.generation, admin("root"), true);
    assert_eq!(admin, Ok(Reply::Done), "an admin knows that, and says so");
}

#[test]
fn a_sign_of_life_that_is_reported_later_ends_a_word_as_it_does_every_stop() {
    let mut world = lost(power_plan());
    let word = written(&mut world);
    world.pass(20_000);
    word.is_heard(&mut world).unwrap();
    assert!(world.gates().evacuate.allowed);
    world.say("other", FailureState::Up, 10_000, None).unwrap();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(
        !world.gates().evacuate.allowed,
        "it was alive 10 s after the word"
    );
}

#[test]
fn a_word_that_a_clock_ahead_has_dated_is_no_newer_than_its_hearing() {
    let mut world = lost(power_plan());
    let mut word = written(&mut world);
    world.see(FailureState::Up).unwrap();
    world.say("monitor", FailureState::Unreachable, 0, None).unwrap();
    word.said_at += TimeDelta::milliseconds(1_000);
    world.pass(500);
    word.is_refused(&mut world, "host.alive_since");
}

#[test]
fn a_word_says_nothing_of_a_host_to_which_something_was_released_after_it() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.cancel().unwrap();
    let word = written(&mut world);
    world.pass(2_000);
    world.command(on);
    let result = world.finish(on).unwrap();
    world.deliver_result(result);
    world.pass(60_000);
    word.is_refused(&mut world, "host.released_since");
}

#[test]
fn a_word_whose_age_is_not_known_or_too_great_is_refused() {
    let mut world = lost(power_plan());
    let mut word = written(&mut world);
    word.said_at += TimeDelta::milliseconds(1_001);
    word.is_refused(&mut world, "word.not_dated");
    let word = written(&mut world);
    world.pass(600_001);
    word.is_refused(&mut world, "word.too_old");
    let word = written(&mut world);
    world.pass(2_000);
    world.state.clock_set_at = Some(world.now);
    word.is_refused(&mut world, "word.not_dated");
}

#[test]
fn a_word_from_before_the_host_was_known_is_refused() {
    let mut world = lost(power_plan());
    let word = written(&mut world);
    world.pass(20_000);
    world.forget();
    word.is_refused(&mut world, "word.not_dated");
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
