//! A node of a cluster that is cut off from its storage alone: some of its pods may go, until more is proven.

use ringfence_core::*;

use super::on_nova::{manual, on_nova};
use ringfence_world::plans::*;
use ringfence_world::{Cloud, World};

/// Storage alone suffices, and so does power, or the word of a person. The node has a pod of each sort.
pub fn in_cluster(tasks: Vec<FrozenTask>, settle_s: u32) -> World {
    let kinds = [ProofKind::StorageFence, ProofKind::PowerOff, ProofKind::Operator];
    let plan = FrozenPlan {
        sufficient_sets: kinds.map(|kind| SufficientSet::from([kind])).to_vec(),
        ..plan(vec![tasks])
    };
    let mut world = on_nova(plan, 3, manual());
    world.state.host.backend = Backend::Kubernetes;
    world.state.policy.settle_s = settle_s;
    world.cloud = Cloud::cluster(3);
    world
}

fn storage() -> FrozenTask {
    task(FencingKind::StorageFence, &[&["ceph"]])
}

fn power() -> FrozenTask {
    task(FencingKind::PowerOff, &[&["bmc"]])
}

fn movable(world: &World) -> Option<Movable> {
    proven_movable(&world.state, world.now)
}

/// A worker claims the task of this kind, and takes its time.
fn claims(world: &mut World, kind: FencingKind) -> usize {
    let is_it = |sent: &Dispatch| sent.job.kind() == kind;
    let sent = world.sent.iter().position(is_it).unwrap();
    world.deliver(sent, "worker-2").unwrap()
}

fn acts(world: &mut World, job: usize) {
    assert!(world.command(job));
    world.complete(job);
    world.work_off();
}

/// Time passes, and what is sent is done.
fn goes_on(world: &mut World, seconds: i64) {
    for _ in 0..seconds {
        world.pass(1_000);
        world.work_off();
    }
}

fn told(world: &World) -> usize {
    let sent = world.sent.iter();
    sent.filter(|sent| sent.job.kind() == StepKind::MarkDown).count()
}

#[test]
fn no_more_is_let_go_than_what_is_still_proven() {
    let mut world = in_cluster(vec![storage(), power()], 0);
    world.fence().unwrap();
    world.work_off();
    world.evacuate().unwrap();
    let down = world
        .sent
        .iter()
        .rposition(|sent| sent.job.kind() == StepKind::MarkDown);
    world.pass(5_000);
    let late = Report {
        state: FailureState::Unreachable,
        source: "probe".to_owned(),
        observed_at: world.now,
        last_seen_at: Some(world.now),
        silent_since: None,
        boot: None,
    };
    world.report(late).unwrap();
    assert_eq!(movable(&world), Some(Movable::OnFencedStorage));
    world.deliver(down.unwrap(), "worker-1").unwrap_err();
}

#[test]
fn power_that_is_proven_after_storage_lets_the_rest_go_once_it_has_settled() {
    let mut world = in_cluster(vec![storage(), power()], 4);
    world.site.lands_ms = 1_900;
    world.fence().unwrap();
    let power = claims(&mut world, FencingKind::PowerOff);
    world.work_off();
    goes_on(&mut world, 3);
    assert_eq!(movable(&world), Some(Movable::OnFencedStorage));
    assert!(
        !world.cloud.forced_down,
        "a cluster lets all pods of a node go, or none"
    );
    world.evacuate().unwrap();
    world.work_off();
    assert_eq!(world.cloud.started.len(), 1);
    acts(&mut world, power);
    let is_off = |proof: &Proof| proof.kind == ProofKind::PowerOff;
    assert!(world.state.host.good_fence().unwrap().standing().any(is_off));
    assert_eq!(
        movable(&world),
        Some(Movable::OnFencedStorage),
        "what was written may still land"
    );
    goes_on(&mut world, 2);
    assert_eq!(world.cloud.started.len(), 1);
    goes_on(&mut world, 6);
    assert_eq!(movable(&world), Some(Movable::All));
    assert!(world.cloud.forced_down);
    assert_eq!(world.cloud.started.len(), 3);
    assert_eq!(world.violation, None);
    world.expect_last("7.0 operation.succeeded: 3 of 3 workloads moved");
}

/// A scheduler that has not seen that the node is closed binds a pod to it after the last listing.
#[test]
fn a_pod_that_comes_while_its_node_is_emptied_is_moved_too() {
    let mut world = in_cluster(vec![power()], 0);
    world.fence().unwrap();
    world.work_off();
    world.evacuate().unwrap();
    let mut next = world.sent.len() - 1;
    while world.sent[next].job.kind() != StepKind::Empty {
        world.work(next);
        next += 1;
    }
    world.cloud.add("late", &[]);
    world.work_off();
    assert!(world.cloud.started.iter().any(|start| start.id == "late"));
    world.expect_last("0.0 operation.succeeded: 4 of 4 workloads moved");
    assert_eq!(world.violation, None);
}

/// One that is to stay by its metadata keeps nothing up.
#[test]
fn a_node_with_a_pod_that_stays_by_its_metadata_is_emptied() {
    let mut world = in_cluster(vec![power()], 0);
    world.cloud.add("stays", &[("HA_Enabled", "false")]);
    world.fence().unwrap();
    world.work_off();
    world.evacuate().unwrap();
    world.work_off();
    world.expect_last("0.0 operation.succeeded: 3 of 3 workloads moved, 1 left where they are");
}

/// A pod may be bound to it again by a scheduler that has not seen that it is closed. An engine that has forgotten looks for one too.
#[test]
fn a_node_is_looked_at_once_an_evacuation_has_emptied_it() {
    let is_looked_at = |world: &World| look_for_latecomers(&world.state, world.now).is_some();
    let mut world = in_cluster(vec![power()], 0);
    world.fence().unwrap();
    world.work_off();
    assert!(!is_looked_at(&world), "a person decides whether it is evacuated");
    world.evacuate().unwrap();
    assert!(!is_looked_at(&world));
    world.work_off();
    assert!(is_looked_at(&world));
    world.forget();
    assert!(!is_looked_at(&world), "it may be back");
    world.see(FailureState::Unreachable).unwrap();
    assert!(is_looked_at(&world));
    world.suspend(SuspensionScope::Host, None);
    assert!(
        !is_looked_at(&world),
        "nothing begins by itself while it is suspended"
    );
    world.resume(SuspensionScope::Host);
    world.evacuate().unwrap();
    world.cancel().unwrap();
    assert!(!is_looked_at(&world), "a person has ended it");
}

#[test]
fn the_fence_itself_tells_the_cluster_of_more() {
    let mut world = in_cluster(vec![storage(), power()], 0);
    world.fence().unwrap();
    let power = claims(&mut world, FencingKind::PowerOff);
    world.work_off();
    assert_eq!((told(&world), world.cloud.forced_down), (1, false));
    acts(&mut world, power);
    assert_eq!((told(&world), world.cloud.forced_down), (2, true));
    assert_eq!(world.violation, None);
}

#[test]
fn the_word_of_a_person_lets_the_rest_go() {
    let mut world = in_cluster(vec![storage()], 0);
    world.fence().unwrap();
    world.work_off();
    assert_eq!(movable(&world), Some(Movable::OnFencedStorage));
    world.site.plug(false);
    world.settle();
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::Done));
    assert_eq!(movable(&world), Some(Movable::All));
    assert_eq!(world.confirm(1, person("otto"), false), Ok(Reply::AlreadySo));
    world.evacuate().unwrap();
    world.work_off();
    assert_eq!(world.cloud.started.len(), 3);
    assert_eq!(world.violation, None);
}

#[test]
fn a_word_that_the_plan_does_not_take_is_refused_and_one_on_a_rejoin_too() {
    let mut world = in_cluster(vec![storage()], 0);
    world.plan.sufficient_sets.pop();
    world.fence().unwrap();
    world.work_off();
    world.site.plug(false);
    world.settle();
    let refused = world.confirm(1, person("anna"), false);
    assert_eq!(refused, Err(Refusal::ConfirmationNotSufficient));
    let mut world = in_cluster(vec![storage()], 0);
    world.fence().unwrap();
    world.work_off();
    world.rejoin(true).unwrap();
    let generation = world.state.host.generation.0;
    let refused = world.confirm(generation, person("anna"), false).unwrap_err();
    assert!(matches!(refused, Refusal::OperationLive { .. }), "{refused:?}");
}

/// The host dies a moment before its network is taken: what it has sent to another storage has yet to land there.
#[test]
fn what_was_sent_before_the_network_was_taken_lands_before_all_pods_go() {
    let network = task(FencingKind::NetworkFence, &[&["switch"]]);
    let mut world = in_cluster(vec![storage(), network], 6);
    world.site.lands_ms = 1_900;
    world.fence().unwrap();
    let network = claims(&mut world, FencingKind::NetworkFence);
    world.work_off();
    goes_on(&mut world, 3);
    world.site.crash(false);
    acts(&mut world, network);
    world.evacuate().unwrap();
    world.work_off();
    assert_eq!(movable(&world), Some(Movable::OnFencedStorage));
    assert_eq!((world.cloud.started.len(), world.cloud.forced_down), (1, false));
    goes_on(&mut world, 7);
    assert_eq!(movable(&world), Some(Movable::All));
    assert_eq!((world.cloud.started.len(), world.cloud.forced_down), (3, true));
    assert_eq!(world.violation, None);
}
