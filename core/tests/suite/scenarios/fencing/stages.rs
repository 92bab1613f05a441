//! One level after the other, one stage after the other, and power that is given back.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::plans::*;

use super::super::lost;

#[test]
fn a_failed_level_is_followed_by_the_next() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::PowerOff,
        &[&["bmc"], &["pdu"]],
    )]]));
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 send 2 power.off pdu",
        "0.0 operation.proof power.off",
        "0.0 host.fenced 1",
        "0.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn a_late_success_of_a_former_level_proves_nothing() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::PowerOff,
        &[&["left", "right"], &["bmc"]],
    )]]));
    world.site.manners.insert("right".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    let left = world.deliver(0, "worker-1").unwrap();
    world.work(1);
    world.command(left);
    world.complete(left);
    assert!(!world.is_fenced());
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off left",
        "0.0 send 2 power.off right",
        "0.0 send 3 power.off bmc",
    ]);
    world.work(2);
    assert!(world.is_fenced());
}

#[test]
fn a_reboot_fences_at_the_off_and_the_gate_closes_when_the_on_is_claimed() {
    let mut world = lost(reboot_plan());
    world.fence().unwrap();
    world.work(0);
    assert!(world.gates().evacuate.allowed);
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.pass(1_000);
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 operation.proof power.off",
        "0.0 host.fenced 1",
        "0.0 send 2 power.on bmc",
        "1.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 1",
        "1.0 host.left_off: every level failed; last bmc: refused",
        "1.0 operation.succeeded: FENCED, proven by power.off; the host may stay off: power.on failed (every level failed; last bmc: refused)",
    ]);
    assert!(world.is_fenced(), "nothing was taken back");
    assert!(
        !world.gates().evacuate.allowed,
        "a worker may have switched the power on"
    );
}

#[test]
fn power_does_not_come_back_before_the_host_is_fenced() {
    let mut reboot = reboot_plan();
    reboot.stages[0]
        .tasks
        .push(task(FencingKind::StorageFence, &[&["ceph"]]));
    reboot.sufficient_sets = vec![[ProofKind::PowerOff, ProofKind::StorageFence].into()];
    let mut world = lost(reboot);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 send 2 storage.fence ceph",
        "0.0 operation.proof power.off",
        "0.0 operation.needs_operator: no sufficient set was completed; failed: storage.fence (every level failed; last \
         ceph: refused)",
    ]);
    // A stranger switches it on meanwhile: the old observation must not complete the set.
    world.pass(60_000);
    world.site.restore_power();
    world.pass(60_000);
    world.site.manners.clear();
    world.retry().unwrap();
    let storage = world
        .sent
        .iter()
        .rposition(|d| d.job.kind() == FencingKind::StorageFence)
        .unwrap();
    world.work(storage);
    assert!(!world.is_fenced(), "the power must be read again");
    world.work_off();
    world.expect(&[
        "120.0 note operation.retry",
        "120.0 note fence.proof_ended: the fence was started again",
        "120.0 operation.restarted: tried again by anna: mended",
        "120.0 send 3 power.off bmc",
        "120.0 send 4 storage.fence ceph",
        "120.0 operation.proof storage.fence",
        "120.0 operation.proof power.off",
        "120.0 host.fenced 1",
    ]);
    // What was read as off may be the doing of the first command, and the second one may come yet.
    world.pass(10_000);
    world.work_off();
    world.expect(&[
        "130.0 send 5 power.on bmc",
        "130.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 1",
        "130.0 operation.succeeded: FENCED, proven by power.off, storage.fence",
    ]);
}

#[test]
fn a_stage_waits_for_the_one_before_and_for_its_delay() {
    let mut staged = plan(vec![
        vec![task(FencingKind::StorageFence, &[&["ceph"]])],
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
    ]);
    staged.stages[1].delay_s = 5;
    let mut world = lost(staged);
    world.fence().unwrap();
    world.pass(2_000);
    world.work(0);
    world.pass(10_000);
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 storage.fence ceph",
        "2.0 operation.proof storage.fence",
        "7.0 send 2 power.off bmc",
        "12.0 operation.proof power.off",
        "12.0 host.fenced 1",
        "12.0 operation.succeeded: FENCED, proven by power.off, storage.fence",
    ]);
}
