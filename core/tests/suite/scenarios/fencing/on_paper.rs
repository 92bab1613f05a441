//! What is done and proves nothing.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::plans::*;

use super::super::lost;

#[test]
fn a_task_done_by_an_untrusted_method_proves_nothing() {
    let mut world = lost(cut_off_plan());
    world.site.manners.insert("switch".to_owned(), Manner::OnPaper);
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 storage.fence ceph",
        "0.0 send 2 network.fence switch",
        "0.0 operation.proof storage.fence",
        "0.0 operation.needs_operator: no sufficient set was completed; done, which proves nothing: network.fence",
    ]);
    assert!(!world.is_fenced());
    let standing: Vec<_> = world.state.host.applied.fencing.iter().map(|s| s.kind).collect();
    assert_eq!(
        standing,
        [FencingKind::StorageFence, FencingKind::NetworkFence],
        "both devices must be released"
    );
}

#[test]
fn a_worker_cannot_prove_by_an_untrusted_method() {
    let mut ports = task(FencingKind::NetworkFence, &[&["ports"]]);
    ports.levels[0][0].can_prove = false;
    let both = |ports: FrozenTask| plan(vec![vec![task(FencingKind::StorageFence, &[&["ceph"]]), ports]]);
    let mut world = lost(both(ports.clone()));
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    assert!(!world.is_fenced());

    ports.levels[0][0].can_prove = true;
    let mut world = lost(both(ports));
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    assert!(world.is_fenced());
}

#[test]
fn a_task_that_was_done_without_proof_is_done_by_the_next_level_too() {
    let plan = plan(vec![vec![
        task(FencingKind::StorageFence, &[&["ceph"]]),
        task(FencingKind::NetworkFence, &[&["cloud"], &["fabric"]]),
    ]]);
    let mut world = lost(plan);
    world.site.manners.insert("cloud".to_owned(), Manner::OnPaper);
    world.fence().unwrap();
    world.work_off();
    assert!(world.is_fenced());
    let methods: Vec<String> = world.sent.iter().map(|sent| sent.job.by()).collect();
    assert_eq!(methods, ["ceph", "cloud", "fabric"]);
    let standing = world
        .state
        .host
        .applied
        .fencing
        .iter()
        .map(|s| s.method.name.as_str());
    assert_eq!(
        standing.collect::<Vec<_>>(),
        ["ceph", "cloud", "fabric"],
        "every device is released"
    );
}

#[test]
fn a_retry_repeats_a_task_that_was_done_without_proof() {
    let mut world = lost(cut_off_plan());
    world.site.manners.insert("switch".to_owned(), Manner::OnPaper);
    world.fence().unwrap();
    world.work_off();
    assert!(!world.is_fenced());
    world.site.manners.remove("switch");
    world.retry().unwrap();
    world.work_off();
    assert!(world.is_fenced());
}
