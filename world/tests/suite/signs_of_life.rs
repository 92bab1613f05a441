//! A sign of life after a proof that the host had stopped ends the proof, whenever it arrives and from any source.

use ringfence_core::{FailureState, FencingKind, ProofKind, Refusal};
use ringfence_world::World;
use ringfence_world::plans::{cut_off_plan, plan, policy, power_plan, task};
use ringfence_world::search::Word;

use crate::{is_open, lost, work};

#[test]
fn a_late_report_of_up_ends_the_proof_although_a_newer_report_says_unreachable() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    assert!(is_open(&world));
    world.pass(10_000);
    world.site.restore_power();
    world.pass(6_000);
    world.see(FailureState::Unreachable).unwrap();
    world.say("monitor", FailureState::Up, 1_000, None).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
    assert!(!is_open(&world), "the host ran a second ago");
    assert!(world.gates().evacuate.reason.contains("monitor saw the host UP"));
}

#[test]
fn a_late_report_of_up_between_the_readings_of_two_supplies_ends_the_proof() {
    let two = plan(vec![vec![task(
        FencingKind::PowerOff,
        &[&["supply-a", "supply-b"]],
    )]]);
    let mut world = lost(two, policy());
    world.fence().unwrap();
    world.work(0);
    world.pass(1_500);
    world.site.restore_power();
    world.pass(2_500);
    world.work(1);
    assert!(is_open(&world));
    // By the time of the sign the first supply was on again.
    world.say("monitor", FailureState::Up, 2_000, None).unwrap();
    world.see(FailureState::Unreachable).unwrap();
    assert!(!is_open(&world));
}

#[test]
fn a_late_report_of_up_from_before_the_proof_changes_nothing() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    world.pass(10_000);
    world.say("monitor", FailureState::Up, 20_000, None).unwrap();
    assert!(is_open(&world));
}

#[test]
fn a_word_that_is_read_after_the_host_was_seen_up_and_fell_silent_again_is_refused() {
    let mut world = lost(power_plan(), policy());
    let word = Word::written(&mut world);
    world.pass(2_000);
    world.site.restore_power();
    world.pass(6_000);
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    world.see(FailureState::Up).unwrap();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    word.is_heard(&mut world);
    assert!(!is_open(&world), "the host runs");
    assert!(!world.is_fenced());
}

#[test]
fn a_source_that_hears_the_host_counts_against_one_that_does_not() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    world.pass(10_000);
    world.site.restore_power();
    for _ in 0..20 {
        world.pass(5_000);
        world.say("monitor", FailureState::Unreachable, 0, None).unwrap();
        world.say("platform", FailureState::Up, 0, None).unwrap();
        assert!(!is_open(&world));
    }
    assert_eq!(world.state.host.failure_state, FailureState::Up);
    assert!(matches!(world.fence(), Err(Refusal::HostUp { .. })));
}

#[test]
fn a_source_that_stops_reporting_does_not_keep_the_host_up_for_ever() {
    let mut world = lost(power_plan(), policy());
    world.pass(1_000);
    world.say("platform", FailureState::Up, 0, None).unwrap();
    world.say("monitor", FailureState::Unreachable, 0, None).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Up);
    world.pass(121_000);
    world.tick();
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
}

#[test]
fn a_silence_that_began_after_the_last_sign_of_life_counts_at_once() {
    let mut world = lost(power_plan(), policy());
    world.say("platform", FailureState::Up, 0, None).unwrap();
    world.say("monitor", FailureState::Up, 0, None).unwrap();
    world.pass(3_000);
    world.say("monitor", FailureState::Unreachable, 0, None).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
}

#[test]
fn a_cut_host_that_is_seen_up_stays_cut() {
    let mut world = lost(cut_off_plan(), policy());
    world.fence().unwrap();
    world.work_off();
    world.pass(5_000);
    world.see(FailureState::Up).unwrap();
    world.pass(5_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(is_open(&world));
}

/// A plan by which power alone does not suffice.
fn power_and_network() -> ringfence_core::FrozenPlan {
    let mut both = plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::NetworkFence, &[&["switch"]]),
    ]]);
    both.sufficient_sets = vec![[ProofKind::PowerOff, ProofKind::NetworkFence].into()];
    both
}

#[test]
fn a_report_of_up_between_the_proofs_of_a_set_ends_the_first_and_power_is_read_again() {
    let mut world = lost(power_and_network(), policy());
    world.fence().unwrap();
    let off = world.deliver(0, "worker-1").unwrap();
    world.command(off);
    world.complete(off);
    world.pass(4_000);
    world.site.restore_power();
    world.pass(5_000);
    world.see(FailureState::Up).unwrap();
    let cut = world.deliver(1, "worker-1").unwrap();
    world.command(cut);
    world.complete(cut);
    assert!(!world.is_fenced(), "it runs");
    world.pass(1_000);
    let again = world.sent.last().unwrap();
    assert_eq!(
        again.job.kind(),
        FencingKind::PowerOff,
        "the host is switched off again"
    );
    world.pass(2_000);
    world.see(FailureState::Unreachable).unwrap();
    world.pass(2_000);
    work(&mut world);
    assert!(world.is_fenced());
    assert!(is_open(&world));
}

#[test]
fn an_off_read_before_a_report_of_up_proves_nothing_if_its_result_comes_later() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    let off = world.deliver(0, "worker-1").unwrap();
    world.command(off);
    world.pass(1_000);
    let result = world.finish(off).unwrap();
    world.site.restore_power();
    world.pass(4_000);
    world.see(FailureState::Up).unwrap();
    world.pass(3_000);
    world.deliver_result(result);
    assert!(!world.is_fenced());
    world.see(FailureState::Unreachable).unwrap();
    world.pass(2_000);
    work(&mut world);
    assert!(
        is_open(&world),
        "the second reading is newer than every sign of life"
    );
}

#[test]
fn a_host_that_is_up_after_every_off_needs_an_operator() {
    let mut world = lost(power_and_network(), policy());
    world.fence().unwrap();
    for _ in 0..20 {
        let last = world.sent.len() - 1;
        let newest_off = world
            .sent
            .iter()
            .rposition(|sent| sent.job.kind() == FencingKind::PowerOff)
            .unwrap_or(last);
        if let Ok(job) = world.deliver(newest_off, "worker-1") {
            world.command(job);
            world.complete(job);
        }
        world.pass(2_000);
        world.site.restore_power();
        world.pass(6_000);
        drop(world.see(FailureState::Up));
    }
    world.pass(600_000);
    assert!(!world.is_fenced());
    let detail = world.state.operation.clone().unwrap().detail;
    assert!(detail.contains("the host was seen UP"), "{detail}");
}

#[test]
fn power_read_within_a_second_of_a_sign_of_life_is_read_again_later() {
    let mut world = World::new(power_plan(), policy());
    world.see(FailureState::Up).unwrap();
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.work(0);
    assert!(!world.is_fenced(), "the clocks cannot tell which came first");
    world.pass(900);
    assert_eq!(
        world.sent.len(),
        1,
        "a reading at this time could not count either"
    );
    world.pass(100);
    world.work(1);
    assert!(world.is_fenced() && is_open(&world));
}
