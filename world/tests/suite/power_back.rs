//! Power that Ringfence gives back ends the proofs by power.

use ringfence_core::{
    Backend, EvacuationPolicy, FailureState, FencingKind, OperationKind, OperationStatus, Reply,
    SegmentPolicy,
};
use ringfence_world::plans::{plan, policy, power_plan, reboot_plan, task};
use ringfence_world::{Cloud, World};

use crate::{is_open, lost, work};

fn on_nova(servers: usize, automatic: bool) -> World {
    let policy = SegmentPolicy {
        evacuation: EvacuationPolicy {
            automatic,
            ..EvacuationPolicy::default()
        },
        ..policy()
    };
    let mut world = lost(reboot_plan(), policy);
    world.state.host.backend = Backend::Nova;
    world.state.host.cloud = Some("east".to_owned());
    world.cloud = Cloud::with(servers);
    world
}

fn is_sent(world: &World, kind: FencingKind) -> bool {
    world.sent.iter().any(|sent| sent.job.kind() == kind)
}

#[test]
fn a_host_that_was_switched_on_again_is_not_evacuated_after_any_silence() {
    let mut world = lost(reboot_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    assert!(world.is_fenced());
    work(&mut world);
    world.pass(600_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(
        !is_open(&world),
        "the host may have booted and run without its monitor"
    );
    let why = world.gates().evacuate.reason;
    assert!(
        why.contains("power.on") && why.ends_with("fence the host again"),
        "{why}"
    );
    assert!(
        matches!(world.fence(), Ok(Reply::Started(_))),
        "a new fence was not started"
    );
}

#[test]
fn the_claim_of_a_power_on_ends_the_proof_before_its_result() {
    let mut world = lost(reboot_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    assert!(
        is_open(&world),
        "the host is off, and no worker has claimed the on"
    );
    world.deliver(world.sent.len() - 1, "worker-1").unwrap();
    assert!(!is_open(&world));
    assert!(world.is_fenced(), "FENCED stays until the host is taken back");
}

#[test]
fn power_waits_for_an_expected_evacuation_while_the_host_is_unknown() {
    let mut world = on_nova(2, true);
    world.see(FailureState::Unknown).unwrap();
    world.fence().unwrap();
    work(&mut world);
    world.pass(60_000);
    assert!(
        !is_sent(&world, FencingKind::PowerOn),
        "a host that waits for its evacuation must not boot"
    );
    world.see(FailureState::Unreachable).unwrap();
    world.pass(5_000);
    world.work_off();
    assert_eq!(world.cloud.started.len(), 2);
    assert_eq!(world.violation, None);
    assert!(
        is_sent(&world, FencingKind::PowerOn),
        "the power-on follows the evacuation"
    );
}

#[test]
fn power_stays_off_until_a_rejoin_if_the_evacuation_cannot_begin() {
    let mut world = on_nova(2, true);
    world.see(FailureState::Unknown).unwrap();
    world.fence().unwrap();
    work(&mut world);
    world.pass(4_000_000);
    assert!(!is_sent(&world, FencingKind::PowerOn));
    assert!(world.state.operation.is_none(), "the fence has ended");
}

#[test]
fn no_workload_is_evacuated_while_a_worker_may_switch_the_power_on() {
    let mut world = on_nova(1, false);
    world.fence().unwrap();
    work(&mut world);
    let on = world
        .sent
        .iter()
        .position(|sent| sent.job.kind() == FencingKind::PowerOn)
        .unwrap();
    world.deliver(on, "worker-1").unwrap();
    assert!(world.evacuate().is_err());
}

#[test]
fn an_evacuation_that_has_given_the_power_back_leaves_the_gate_closed() {
    let mut world = on_nova(2, true);
    world.cloud.add("stays", &[("HA_Enabled", "false")]);
    world.fence().unwrap();
    world.work_off();
    world.pass(10_000);
    world.work_off();
    assert!(is_sent(&world, FencingKind::PowerOn));
    assert_eq!(world.cloud.on("compute1"), ["stays"]);
    assert!(!is_open(&world), "the server that stays may run there again");
    assert!(world.state.operation.is_none(), "the evacuation has ended");
}

#[test]
fn a_cut_host_stays_cut_when_its_power_comes_back() {
    let both = plan(vec![
        vec![
            task(FencingKind::PowerOff, &[&["bmc"]]),
            task(FencingKind::StorageFence, &[&["ceph"]]),
            task(FencingKind::NetworkFence, &[&["switch"]]),
        ],
        vec![task(FencingKind::PowerOn, &[])],
    ]);
    let mut world = lost(both, policy());
    world.fence().unwrap();
    world.work_off();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(world.site.running, "the host has booted");
    assert!(is_open(&world), "the host can write nothing");
}

#[test]
fn a_fence_whose_power_was_given_back_is_fenced_again_by_a_new_operation() {
    let mut world = lost(reboot_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    work(&mut world);
    world.pass(60_000);
    world.plan = power_plan();
    world.fence().unwrap();
    work(&mut world);
    assert!(is_open(&world));
    assert_eq!(world.state.host.generation.0, 2);
    let is_live = |kind| {
        world
            .state
            .operation
            .as_ref()
            .is_some_and(|o| o.kind() == kind && o.status == OperationStatus::Running)
    };
    assert!(!is_live(OperationKind::Fence));
}
