//! Commands that take effect late.

use ringfence_core::{
    Backend, EvacuationPolicy, FailureState, FencingKind, Input, Observation, ObservedState, Outcome,
    ProofKind, Reply, SegmentPolicy, StepKind,
};
use ringfence_world::plans::{admin, cut_off_plan, plan, policy, power_plan, task};
use ringfence_world::{Cloud, Manner, World};

use crate::{is_open, lost, work};

/// A host that is FENCED by power, and whose rejoin has sent `power.on` to a device that does not answer.
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
    world.complete(on);
    world.see(FailureState::Unreachable).unwrap();
    world
}

#[test]
fn an_off_waits_for_an_on_that_may_still_take_effect_and_is_commanded_although_the_device_reads_off() {
    let mut world = unanswered_on(Manner::Slow(6_000));
    world.fence().unwrap();
    let before = world.sent.len();
    world.pass(1_000);
    assert_eq!(world.sent.len(), before, "the off was sent too early");
    assert!(!is_open(&world));
    world.pass(20_000);
    assert_eq!(world.sent.last().unwrap().job.kind(), FencingKind::PowerOff);
    world.site.manners.clear();
    work(&mut world);
    assert!(world.is_fenced() && is_open(&world));
    assert!(!world.site.is_powered());
    world.pass(60_000);
    assert!(is_open(&world));
}

#[test]
fn a_device_that_shows_an_old_state_is_still_commanded() {
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
    assert!(
        world.site.is_powered(),
        "the host has power, and the BMC still reads off"
    );
    world.pass(500);
    world.complete(on);
    world.see(FailureState::Unreachable).unwrap();
    world.site.manners.clear();
    world.fence().unwrap();
    world.pass(30_000);
    world.work_off();
    assert!(!world.site.is_powered());
    assert!(world.is_fenced() && is_open(&world));
}

#[test]
fn a_confirmation_is_refused_while_an_on_may_still_take_effect() {
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
fn an_attempt_in_a_queue_that_moves_is_not_sent_again_for_ever() {
    let mut world = lost(power_plan(), policy());
    world.line_moves(true);
    world.fence().unwrap();
    world.pass(86_400_000);
    assert!(world.sent.len() < 20, "sent {} times", world.sent.len());
    let detail = world.state.operation.clone().unwrap().detail;
    assert!(detail.contains("no worker claimed it"), "{detail}");
}

#[test]
fn a_reading_after_a_second_command_may_show_the_effect_of_the_first() {
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
    world.site.manners.insert("bmc".to_owned(), Manner::Slow(9_000));
    let newest = |world: &mut World| {
        let last = world.sent.len() - 1;
        world.deliver(last, "worker-1").unwrap()
    };
    let first = newest(&mut world);
    world.command(first);
    world.pass(1_000);
    world.complete(first);
    world.pass(4_000);
    // The BMC still reads off, gets a second command, and the first command takes effect.
    let second = newest(&mut world);
    world.command(second);
    world.pass(5_500);
    world.complete(second);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.site.manners.clear();
    world.pass(2_000);
    world.work_off();
    assert!(!is_open(&world), "the second command has yet to take effect");
    world.pass(30_000);
    world.work_off();
    assert!(is_open(&world));
}

#[test]
fn a_result_counts_only_for_its_own_claim() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.pass(500);
    let result = world.finish(job).unwrap();
    let mut forged = world.results[result].clone();
    forged.claim.claim_id = world.next_id();
    forged.outcome = Outcome::Confirmed;
    forged.observation = forged.observation.map(|seen| Observation {
        state: ObservedState::Off,
        ..seen
    });
    world.results.push(forged);
    let said = world.deliver_result(world.results.len() - 1);
    assert!(matches!(said, Reply::Ignored(_)));
    assert!(!world.is_fenced());
}

#[test]
fn a_refusal_releases_nothing_that_another_attempt_may_have_taken() {
    let mut world = lost(cut_off_plan(), policy());
    world.fence().unwrap();
    world.site.manners.insert("ceph".to_owned(), Manner::Slow(3_000));
    let first = world.deliver(0, "worker-1").unwrap();
    world.command(first);
    world.pass(500);
    world.complete(first);
    world.pass(1_500);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    let second = world.deliver(world.sent.len() - 1, "worker-1").unwrap();
    world.command(second);
    world.complete(second);
    world.pass(60_000);
    let stands = |world: &World| {
        world
            .state
            .host
            .applied
            .fencing
            .iter()
            .any(|s| s.method.name == "ceph")
    };
    assert!(stands(&world), "the first attempt has taken it");
    assert_eq!(world.violation, None);
}

#[test]
fn a_worker_that_follows_a_move_is_stopped_when_the_host_is_back() {
    let mut world = lost(power_plan(), policy());
    world.state.host.backend = Backend::Nova;
    world.state.host.cloud = Some("east".to_owned());
    world.cloud = Cloud::with(1);
    world.fence().unwrap();
    work(&mut world);
    world.evacuate().unwrap();
    let position = |world: &World, kind| world.sent.iter().rposition(|sent| sent.job.kind() == kind);
    for kind in [StepKind::MarkDown, StepKind::List] {
        let at = position(&world, kind).unwrap();
        world.work(at);
    }
    let at = position(&world, StepKind::Move).unwrap();
    let job = world.deliver(at, "worker-1").unwrap();
    world.site.restore_power();
    world.pass(6_000);
    world.see(FailureState::Up).unwrap();
    world.see(FailureState::Unreachable).unwrap();
    let claim = world.jobs[job].claim.clone();
    assert!(world.give(Input::Renew(claim)).is_err());
}

#[test]
fn a_power_on_is_refused_once_an_evacuation_is_expected() {
    let mut rebooted = plan(vec![
        vec![
            task(FencingKind::StorageFence, &[&["ceph"]]),
            task(FencingKind::NetworkFence, &[&["switch"]]),
        ],
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
        vec![task(FencingKind::PowerOn, &[])],
    ]);
    rebooted.sufficient_sets.retain(|set| set.len() > 1);
    let automatic = EvacuationPolicy {
        automatic: true,
        ..EvacuationPolicy::default()
    };
    let mut world = lost(
        rebooted,
        SegmentPolicy {
            evacuation: automatic,
            ..policy()
        },
    );
    world.state.host.backend = Backend::Nova;
    world.state.host.cloud = Some("east".to_owned());
    world.cloud = Cloud::with(1);
    world.see(FailureState::Unknown).unwrap();
    world.fence().unwrap();
    let at = |world: &World, kind| world.sent.iter().rposition(|sent| sent.job.kind() == kind);
    for kind in [FencingKind::StorageFence, FencingKind::NetworkFence] {
        let sent = at(&world, kind).unwrap();
        world.work(sent);
    }
    world.pass(100);
    world.see(FailureState::Up).unwrap();
    let off = at(&world, FencingKind::PowerOff).unwrap();
    world.work(off);
    world.pass(100);
    let on = at(&world, FencingKind::PowerOn).expect("the host is UP, so that no evacuation is expected");
    world.see(FailureState::Unreachable).unwrap();
    assert!(world.deliver(on, "worker-1").is_err());
}

#[test]
fn two_tasks_of_a_kind_are_proven_only_together() {
    let mut two = plan(vec![vec![
        task(FencingKind::StorageFence, &[&["ceph"]]),
        task(FencingKind::StorageFence, &[&["san"]]),
    ]]);
    two.sufficient_sets = vec![[ProofKind::StorageFence].into()];
    let mut world = lost(two, policy());
    world.fence().unwrap();
    world.work(0);
    assert!(!world.is_fenced());
    world.work(1);
    assert!(world.is_fenced());
}

#[test]
fn a_confirmed_release_is_refused_while_a_repeated_cut_may_still_take_effect() {
    let mut world = lost(cut_off_plan(), policy());
    world.site.manners.insert("ceph".to_owned(), Manner::Slow(3_000));
    world.fence().unwrap();
    let first = world.deliver(0, "worker-1").unwrap();
    world.command(first);
    let result = world.finish(first).unwrap();
    assert_eq!(world.results[result].outcome, Outcome::Unknown);
    world.deliver_result(result);
    world.pass(40_000);
    let of_ceph = world
        .sent
        .iter()
        .rposition(|sent| sent.job.kind() == FencingKind::StorageFence);
    // The reading shows the effect of the first command, which is over; the second command takes effect 3 s later.
    world.work(of_ceph.unwrap());
    world.cancel().unwrap();
    let early = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(early.code(), "host.fencing");
    world.pass(40_000);
    world.site.reconnect("ceph");
    world.released(1, &["ceph"], admin("anna")).unwrap();
    world.see(FailureState::Up).unwrap();
    world.pass(60_000);
    assert_eq!(world.violation, None);
}
