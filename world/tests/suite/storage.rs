//! Writes that the storage has accepted, and the cuts that an evacuation announces.

use ringfence_core::{EventKind, FailureState, FencingKind, ProofKind, SegmentPolicy, StepKind};
use ringfence_world::plans::{admin, person, plan, policy, power_plan, task, task_with};

use crate::{is_open, lost, work};

fn settling(settle_s: u32) -> SegmentPolicy {
    SegmentPolicy { settle_s, ..policy() }
}

#[test]
fn a_host_turns_fenced_after_accepted_writes_have_landed() {
    let mut world = lost(power_plan(), settling(5));
    world.site.lands_ms = 3_500;
    world.fence().unwrap();
    work(&mut world);
    assert!(!world.is_fenced(), "an accepted write may not have landed");
    let detail = world.state.operation.clone().unwrap().detail;
    assert!(detail.starts_with("proven; waiting until"), "{detail}");
    world.pass(4_000);
    assert!(!world.is_fenced());
    world.pass(1_500);
    assert!(world.is_fenced() && is_open(&world));
}

#[test]
fn a_persons_confirmation_settles_too() {
    let mut world = lost(power_plan(), settling(5));
    world.site.lands_ms = 3_500;
    world.site.plug(false);
    world.confirm(0, person("anna"), false).unwrap();
    assert!(!world.is_fenced());
    world.pass(5_000);
    assert!(world.is_fenced() && is_open(&world));
}

#[test]
fn a_method_has_its_own_settling_time() {
    let times = ringfence_core::MethodTimes {
        settle_s: 8,
        ..ringfence_core::MethodTimes::default()
    };
    let mut world = lost(
        plan(vec![vec![task_with(FencingKind::PowerOff, &[&["bmc"]], times)]]),
        settling(0),
    );
    world.fence().unwrap();
    work(&mut world);
    world.pass(7_900);
    assert!(!world.is_fenced());
    world.pass(200);
    assert!(world.is_fenced());
}

#[test]
fn a_sign_of_life_while_a_proof_settles_ends_it() {
    let mut world = lost(power_plan(), settling(10));
    world.fence().unwrap();
    work(&mut world);
    world.site.restore_power();
    world.pass(6_000);
    world.see(FailureState::Up).unwrap();
    world.pass(60_000);
    assert!(!world.is_fenced());
}

#[test]
fn an_evacuation_does_not_announce_a_cut_with_a_failed_task() {
    announces_no_storage(ringfence_world::Manner::Refuses);
}

#[test]
fn an_evacuation_does_not_announce_a_cut_with_an_unproven_task() {
    announces_no_storage(ringfence_world::Manner::OnPaper);
}

/// One of two storage tasks ends before the evacuation, without a proof.
fn announces_no_storage(ceph: ringfence_world::Manner) {
    let mut both = plan(vec![
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
        vec![
            task(FencingKind::StorageFence, &[&["ceph"]]),
            task(FencingKind::StorageFence, &[&["san"]]),
        ],
    ]);
    both.sufficient_sets = vec![[ProofKind::PowerOff].into()];
    let mut world = lost(both, policy());
    world.state.host.backend = ringfence_core::Backend::Nova;
    world.state.host.cloud = Some("east".to_owned());
    world.cloud = ringfence_world::Cloud::with(1);
    world.site.manners.insert("ceph".to_owned(), ceph);
    world.fence().unwrap();
    work(&mut world);
    let ceph = world
        .sent
        .iter()
        .position(|sent| sent.job.by() == "ceph")
        .unwrap();
    let job = world.deliver(ceph, "worker-1").unwrap();
    world.command(job);
    world.complete(job);
    world.evacuate().unwrap();
    world.work_off();
    let told = world
        .log
        .iter()
        .filter(|line| line.contains(EventKind::OperationProof.as_str()));
    assert_eq!(told.filter(|line| line.ends_with("storage.fence")).count(), 0);
}

/// Storage is given back by hand while a worker that has claimed a move may still start the server elsewhere.
#[test]
fn a_confirmed_release_is_refused_while_a_workload_may_still_be_started_elsewhere() {
    let mut cut = plan(vec![vec![task(FencingKind::StorageFence, &[&["ceph"]])]]);
    cut.sufficient_sets = vec![[ProofKind::StorageFence].into()];
    let mut world = lost(cut, policy());
    world.state.host.backend = ringfence_core::Backend::Nova;
    world.state.host.cloud = Some("east".to_owned());
    world.cloud = ringfence_world::Cloud::with(1);
    world.fence().unwrap();
    world.work_off();
    world.evacuate().unwrap();
    while world
        .sent
        .last()
        .is_some_and(|sent| sent.job.kind() != StepKind::Move)
    {
        work(&mut world);
    }
    let moving = world.deliver(world.sent.len() - 1, "worker-1").unwrap();
    world.cancel().unwrap();
    world.rejoin(false).unwrap();
    let early = world.released(2, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(early.code(), "host.evacuating");
    assert!(early.to_string().contains("workloads.move"), "{early}");
    world.command(moving);
    world.complete(moving);
    assert_eq!(world.cloud.started.len(), 1);
    world.site.reconnect("ceph");
    world.released(2, &["ceph"], admin("anna")).unwrap();
    assert_eq!(world.violation, None);
}
