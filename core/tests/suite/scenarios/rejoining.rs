//! Rejoins.

use ringfence_core::*;

use super::{boot, comes_back, lost, lost_under, old_boot, reboots};
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::*;

/// A host that is FENCED by power.
fn off() -> World {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.take_log();
    world
}

/// A host that is FENCED by storage and network, and runs on in the boot that was cut off.
fn cut_off() -> World {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work_off();
    world.take_log();
    world
}

#[test]
fn a_rejoin_after_a_fence_by_power_switches_on_and_waits_for_the_host() {
    let mut world = off();
    world.pass(60_000);
    world.rejoin(false).unwrap();
    assert!(
        !world.gates().evacuate.allowed,
        "the host may come back from now on"
    );
    world.work(1);
    world.pass(90_000);
    comes_back(&mut world);
    world.expect(&[
        "60.0 operation.started rejoin 2",
        "60.0 send 1 power.on bmc",
        "60.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "150.0 host.failure_state UP",
        "150.0 host.unfenced 2",
        "150.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.gates().schedule.allowed);
}

#[test]
fn a_heartbeat_from_before_the_fence_does_not_take_the_host_back() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass(5_000);
    world.work(0);
    world.say("slow monitor", FailureState::Up, 2_000, None).unwrap();
    world.rejoin(false).unwrap();
    world.work(1);
    world.pass(6_000);
    assert!(world.is_fenced());
    comes_back(&mut world);
    assert!(!world.is_fenced());
}

#[test]
fn a_heartbeat_from_before_the_confirmation_does_not_take_the_host_back() {
    let mut world = lost(plan(Vec::new()));
    world.fence().unwrap();
    world.pass(5_000);
    world.site.plug(false);
    world.pass(5_000);
    world.confirm(1, person("anna"), false).unwrap();
    world.rejoin(false).unwrap();
    world.say("slow monitor", FailureState::Up, 9_000, None).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Up);
    assert!(
        world.is_fenced(),
        "the host was heard a second after the fence began"
    );
    assert_eq!(world.violation, None);
}

#[test]
fn an_off_that_does_not_suffice_shows_no_newer_boot() {
    let mut not_alone = plan(vec![
        vec![
            task(FencingKind::StorageFence, &[&["ceph"]]),
            task(FencingKind::NetworkFence, &[&["switch"]]),
        ],
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
    ]);
    not_alone.sufficient_sets = vec![[ProofKind::StorageFence, ProofKind::NetworkFence].into()];
    let mut world = lost(not_alone);
    // The BMC reads off, and the host runs on.
    world.site.manners.insert("bmc".to_owned(), Manner::Ghost);
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    world.pass(5_000);
    world.work(2);
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(30_000);
    world.see(FailureState::Up).unwrap();
    world.work_off();
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    assert_eq!(world.violation, None);
}

#[test]
fn a_rejoin_after_a_fence_by_storage_and_network_needs_a_newer_boot() {
    let mut world = cut_off();
    world.pass(10_000);
    comes_back(&mut world);
    world.rejoin(false).unwrap();
    world.pass(20_000);
    world.expect(&["10.0 host.failure_state UP", "10.0 operation.started rejoin 2"]);
    reboots(&mut world);
    world.work_off();
    world.expect(&[
        "35.0 send 1 storage.unfence ceph",
        "35.0 note fence.proof_ended: a worker was allowed to carry out a storage.unfence of generation 2",
        "35.0 send 2 network.unfence switch",
        "35.0 note fence.proof_ended: a worker was allowed to carry out a network.unfence of generation 2",
        "35.0 host.unfenced 2",
        "35.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.gates().schedule.allowed);
    assert_eq!(world.violation, None);
}

#[test]
fn a_rejoin_without_a_newer_boot_waits_for_a_persons_confirmation() {
    let mut world = cut_off();
    world.pass(1_000);
    comes_back(&mut world);
    world.rejoin(false).unwrap();
    world.pass(600_000);
    world.expect_last("601.0 operation.needs_operator: the host was cut off from storage or network and has shown no boot that began after \
         that");
    let id = world.live_id();
    assert_eq!(world.rejoin(true), Ok(Reply::Joined(id)));
    world.retry().unwrap();
    world.work_off();
    assert!(!world.is_fenced());
}

fn is_given_back(world: &World) -> bool {
    world
        .sent
        .iter()
        .any(|sent| sent.job.kind() == FencingKind::StorageUnfence)
}

#[test]
fn a_boot_that_began_before_the_fence_or_close_to_it_is_not_newer() {
    let mut world = cut_off();
    world.pass(20_000);
    let fenced_at = world.state.host.fence.as_ref().unwrap().at;
    let up = |world: &mut World, booted_at: Timestamp| {
        let said = world.say("monitor", FailureState::Up, 0, Some(boot("b", booted_at)));
        said.unwrap();
    };
    up(&mut world, fenced_at - chrono::TimeDelta::minutes(5));
    world.rejoin(false).unwrap();
    assert!(!is_given_back(&world));
    let ahead = world.now + chrono::TimeDelta::hours(1);
    up(&mut world, ahead);
    assert!(!is_given_back(&world), "the host's clock is wrong");
    up(&mut world, fenced_at + BOOT_CLOCK_MARGIN);
    assert!(
        !is_given_back(&world),
        "the host's clock may be behind by this much"
    );
    up(
        &mut world,
        fenced_at + BOOT_CLOCK_MARGIN + chrono::TimeDelta::milliseconds(1),
    );
    assert!(is_given_back(&world));
}

#[test]
fn the_first_undated_boot_after_the_fence_may_be_the_one_that_was_cut_off() {
    let mut world = cut_off();
    world.pass(1_000);
    world.see_boot(FailureState::Up, Some("a")).unwrap();
    world.rejoin(false).unwrap();
    world.pass(10_000);
    world.see_boot(FailureState::Up, Some("a")).unwrap();
    assert!(!is_given_back(&world));
    world.site.crash(true);
    world.pass(10_000);
    world.see_boot(FailureState::Up, Some("b")).unwrap();
    assert!(is_given_back(&world), "one boot has replaced another since");
    assert_eq!(world.violation, None);
}

#[test]
fn a_source_with_a_fast_clock_may_have_seen_a_boot_that_was_replaced_before_the_fence() {
    let mut world = World::new(cut_off_plan(), policy());
    world.see(FailureState::Up).unwrap();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    // The other source sees this boot now, by a clock that is 2.5 s ahead.
    let seen_at = world.now + chrono::TimeDelta::milliseconds(2_500);
    world.pass(1_000);
    world.site.crash(true);
    world.pass(1_000);
    // The boot that is cut off has started.
    world.fence().unwrap();
    world.work_off();
    world.pass(1_000);
    let age_ms = (world.now - seen_at).num_milliseconds();
    let first = Boot {
        id: Some("a".to_owned()),
        booted_at: None,
    };
    world.say("ahead", FailureState::Up, age_ms, Some(first)).unwrap();
    world.pass(20_000);
    world.site.link("ahead", true);
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    let second = Boot {
        id: Some("b".to_owned()),
        booted_at: None,
    };
    world.say("ahead", FailureState::Up, 0, Some(second)).unwrap();
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    assert_eq!(world.violation, None);
}

#[test]
fn the_network_waits_for_storage_and_unfenced_waits_for_both() {
    let mut world = cut_off();
    world.pass(15_000);
    reboots(&mut world);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.rejoin(false).unwrap();
    world.work_off();
    world.expect(&[
        "20.0 host.failure_state UP",
        "20.0 operation.started rejoin 2",
        "20.0 send 1 storage.unfence ceph",
        "20.0 note fence.proof_ended: a worker was allowed to carry out a storage.unfence of generation 2",
        "20.0 operation.needs_operator: storage.unfence failed: every level failed; last ceph: refused",
    ]);
    assert!(world.is_fenced());
    world.site.manners.clear();
    world.retry().unwrap();
    world.work_off();
    assert!(!world.is_fenced());
}

#[test]
fn a_host_that_falls_silent_again_is_not_taken_back() {
    let mut world = cut_off();
    world.pass(15_000);
    reboots(&mut world);
    world.rejoin(false).unwrap();
    world.take_log();
    world.work(2);
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    assert!(world.is_fenced());
    world.pass(600_000);
    world.expect(&[
        "20.0 note fence.proof_ended: a worker was allowed to carry out a storage.unfence of generation 2",
        "20.0 send 2 network.unfence switch",
        "21.0 host.failure_state UNREACHABLE",
        "21.0 note fence.proof_ended: a worker was allowed to carry out a network.unfence of generation 2",
        "621.0 operation.needs_operator: the host is UNREACHABLE, not UP",
    ]);
    assert!(!world.gates().evacuate.allowed, "it has its storage again");
    assert!(matches!(world.fence(), Ok(Reply::Started(_))));
}

#[test]
fn a_rejoin_waits_for_the_watchdog_unless_the_host_has_a_new_boot() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(120),
        ..ringfence_world::plans::policy()
    };
    let fenced = || {
        let mut world = lost_under(power_plan(), policy.clone());
        world.fence().unwrap();
        world.work(0);
        world.take_log();
        world.pass(15_000);
        world
    };
    let mut world = fenced();
    world.rejoin(false).unwrap();
    world.work(1);
    world.pass(5_000);
    world.see_boot(FailureState::Up, None).unwrap();
    world.pass(200_000);
    world.expect(&[
        "15.0 operation.started rejoin 2",
        "15.0 send 1 power.on bmc",
        "15.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "20.0 host.failure_state UP",
        "120.0 host.unfenced 2",
        "120.0 operation.succeeded: the host was taken back",
    ]);
    let mut world = fenced();
    world.rejoin(false).unwrap();
    world.work(1);
    world.pass(5_000);
    comes_back(&mut world);
    assert!(!world.is_fenced());
}

#[test]
fn a_rejoin_overtaken_by_a_fence_holds_the_off_until_the_on_is_over() {
    let mut world = off();
    world.pass(10_000);
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.fence().unwrap();
    assert!(world.is_fenced(), "FENCED is not dropped");
    assert!(
        !world.gates().evacuate.allowed,
        "the fence is of an older generation"
    );
    world.pass(5_000);
    world.command(on);
    assert!(world.site.is_powered());
    world.complete(on);
    world.expect(&[
        "10.0 operation.started rejoin 2",
        "10.0 send 1 power.on bmc",
        "10.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "10.0 operation.cancelled: superseded by a fence of generation 3",
        "10.0 operation.started fence 3",
        "15.0 note result.ignored: it is of another operation or generation",
        "15.0 send 1 power.off bmc",
    ]);
    world.work(2);
    assert!(!world.site.is_powered());
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn an_off_waits_until_the_on_of_a_silent_worker_has_no_effect_any_more() {
    let mut world = off();
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.fence().unwrap();
    world.pass(19_999);
    world.command(on);
    world.pass(13_000);
    assert!(!world.command(on), "its time is up");
    // Its deadline, and the ten seconds that a simulated device lingers.
    world.expect(&[
        "0.0 operation.started rejoin 2",
        "0.0 send 1 power.on bmc",
        "0.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "0.0 operation.cancelled: superseded by a fence of generation 3",
        "0.0 operation.started fence 3",
        "32.0 send 1 power.off bmc",
    ]);
    world.work(2);
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn an_off_waits_for_the_effect_of_an_on_that_was_given_up() {
    let mut world = off();
    world.site.manners.insert("bmc".to_owned(), Manner::Slow(8_000));
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.command(on);
    world.complete(on);
    world.site.manners.clear();
    world.fence().unwrap();
    world.take_log();
    world.pass(9_999);
    assert!(world.site.is_powered(), "it came eight seconds late");
    world.expect(&[]);
    world.pass(1);
    world.expect(&["10.0 send 1 power.off bmc"]);
    world.work_off();
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.violation, None);
}

#[test]
fn a_rejoin_that_is_cancelled_leaves_the_host_fenced_and_the_gate_shut() {
    let mut world = off();
    world.rejoin(false).unwrap();
    world.work(1);
    world.cancel().unwrap();
    assert!(world.is_fenced());
    assert!(!world.gates().evacuate.allowed);
    assert!(
        matches!(world.fence(), Ok(Reply::Started(_))),
        "the host can be fenced again"
    );
}

#[test]
fn a_host_is_taken_back_automatically_if_the_segment_says_so() {
    let policy = SegmentPolicy {
        auto_rejoin: true,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(reboot_plan(), policy);
    world.fence().unwrap();
    world.work(0);
    let on = world.deliver(1, "worker-1").unwrap();
    world.command(on);
    world.pass(6_000);
    // The host is UP before the worker has reported; no second report comes.
    comes_back(&mut world);
    world.take_log();
    world.complete(on);
    world.expect(&[
        "6.0 operation.succeeded: FENCED, proven by power.off",
        "6.0 operation.started rejoin 2",
        "6.0 host.unfenced 2",
        "6.0 operation.succeeded: the host was taken back",
    ]);
}

#[test]
fn a_cancelled_rejoin_does_not_begin_again_automatically() {
    let policy = SegmentPolicy {
        auto_rejoin: true,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(cut_off_plan(), policy);
    world.fence().unwrap();
    world.work_off();
    world.pass(1_000);
    comes_back(&mut world);
    world.cancel().unwrap();
    world.take_log();
    world.pass(1_000);
    comes_back(&mut world);
    world.expect(&[]);
}

#[test]
fn a_method_that_was_edited_between_two_fences_is_given_back_in_both_forms() {
    let mut world = lost(plan(vec![vec![task(FencingKind::StorageFence, &[&["ceph"]])]]));
    world.fence().unwrap();
    world.work(0);
    world.cancel().unwrap();
    let edited = &mut world.plan.stages[0].tasks[0].levels[0][0];
    edited
        .parameters
        .insert("device".to_owned(), "another".to_owned());
    world.fence().unwrap();
    world.work(1);
    assert_eq!(world.state.host.applied.fencing.len(), 2);
    world.cancel().unwrap();
    world.pass(15_000);
    reboots(&mut world);
    world.rejoin(false).unwrap();
    let devices: Vec<_> = world.sent[2..]
        .iter()
        .map(|d| d.job.method().unwrap().parameters["device"].as_str())
        .collect();
    assert_eq!(devices, ["ceph", "another"]);
    world.work(2);
    assert!(
        !world.gates().schedule.allowed,
        "one of the two cuts still stands"
    );
    world.work(3);
    assert!(world.state.host.applied.fencing.is_empty());
}

#[test]
fn a_host_from_which_nothing_was_taken_is_not_rejoined() {
    let mut world = lost(power_plan());
    assert_eq!(world.rejoin(false), Ok(Reply::AlreadySo));
    world.fence().unwrap();
    assert_eq!(world.rejoin(false).unwrap_err().code(), "operation.live");
}

#[test]
fn a_device_that_refused_has_taken_nothing() {
    let mut world = lost(cut_off_plan());
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    let standing: Vec<_> = world.state.host.applied.fencing.iter().map(|s| s.kind).collect();
    assert_eq!(standing, [FencingKind::NetworkFence]);
}

#[test]
fn a_refusal_after_an_attempt_with_an_unknown_outcome_proves_nothing() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world.pass(11_000);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    let again = world
        .sent
        .iter()
        .rposition(|d| d.job.kind() == FencingKind::StorageFence)
        .unwrap();
    world.work(again);
    assert_eq!(
        world.state.host.applied.fencing.len(),
        1,
        "the first attempt may have cut the host off"
    );
}

#[test]
fn a_rejoin_does_not_wait_for_tasks_that_the_fence_still_tries() {
    let mut world = lost(plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]]));
    world.fence().unwrap();
    world.work(0);
    let storage = world.deliver(1, "worker-1").unwrap();
    world.take_log();
    world.rejoin(false).unwrap();
    world.work(2);
    world.pass(5_000);
    comes_back(&mut world);
    world.expect(&[
        "0.0 operation.succeeded: FENCED, proven by power.off",
        "0.0 operation.started rejoin 2",
        "0.0 send 1 power.on bmc",
        "0.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "5.0 host.failure_state UP",
    ]);
    world.pass(14_000);
    assert!(
        world.command(storage),
        "the old worker's attempt is still under way"
    );
    world.pass(28_000);
    // It has cut off a boot that had begun since.
    world.expect(&[]);
    reboots(&mut world);
    world.work_off();
    world.expect(&[
        "52.0 send 2 storage.unfence ceph",
        "52.0 host.unfenced 2",
        "52.0 operation.succeeded: the host was taken back",
    ]);
    assert_eq!(world.violation, None);
}

/// A plan by power and storage.
fn off_and_cut_plan() -> FrozenPlan {
    plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]])
}

/// The host boots and is heard, without the date of its boot.
fn boots_undated(world: &mut World) {
    world.pass(5_000);
    world.site.link("monitor", true);
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    let boot = Boot {
        id: Some(format!("boot-{}", world.site.boot)),
        booted_at: None,
    };
    world.say("monitor", FailureState::Up, 0, Some(boot)).unwrap();
}

#[test]
fn a_boot_after_a_confirmed_cut_is_newer_despite_a_late_repeated_command() {
    let mut world = lost(off_and_cut_plan());
    world.fence().unwrap();
    world.work(0);
    // This worker is killed, and the result of its command is unknown.
    world.deliver(1, "worker-1").unwrap();
    world.pass(11_000);
    world.work(2);
    world.pass(1);
    world.rejoin(false).unwrap();
    world.work(3);
    world.take_log();
    boots_undated(&mut world);
    // Until then the killed worker's command may take effect.
    world.pass(16_000);
    world.work_off();
    world.expect(&[
        "16.0 host.failure_state UP",
        "32.0 send 2 storage.unfence ceph",
        "32.0 note fence.proof_ended: a worker was allowed to carry out a storage.unfence of generation 2",
        "32.0 host.unfenced 2",
        "32.0 operation.succeeded: the host was taken back",
    ]);
}

#[test]
fn a_cut_confirmed_in_an_earlier_fence_may_be_taken_late_in_this_one() {
    let mut world = lost(off_and_cut_plan());
    world.fence().unwrap();
    world.work_off();
    world.pass(1);
    world.rejoin(false).unwrap();
    world.work(2);
    world.pass(15_000);
    comes_back(&mut world);
    // The storage is released, and the result is lost.
    let back = world.deliver(world.sent.len() - 1, "worker-1").unwrap();
    world.command(back);
    world.cancel().unwrap();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    let [off, cut] = [world.sent.len() - 2, world.sent.len() - 1];
    world.work(off);
    world.site.manners.insert("ceph".to_owned(), Manner::Slow(12_000));
    let late = world.deliver(cut, "worker-1").unwrap();
    world.command(late);
    world.pass(1);
    world.rejoin(false).unwrap();
    world.work(world.sent.len() - 1);
    boots_undated(&mut world);
    world.take_log();
    world.pass(60_000);
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    world.expect(&[]);
}

/// A host that is FENCED by storage and network, and whose switch no longer exists: its rejoin waits for a person.
fn without_its_switch() -> World {
    let mut world = cut_off();
    world.site.manners.insert("switch".to_owned(), Manner::Refuses);
    world.pass(15_000);
    reboots(&mut world);
    world.rejoin(false).unwrap();
    world.work_off();
    world.expect_last(
        "20.0 operation.needs_operator: network.unfence failed: every level failed; last switch: refused",
    );
    world
}

#[test]
fn an_admin_can_confirm_the_release_of_a_device_that_is_gone() {
    let mut world = without_its_switch();
    world.site.reconnect("switch");
    assert_eq!(world.released(2, &["switch"], admin("anna")), Ok(Reply::Done));
    world.expect(&[
        "20.0 note applied_fencing.released",
        "20.0 operation.restarted: released by hand, says anna: the switch was thrown away",
        "20.0 host.unfenced 2",
        "20.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.gates().schedule.allowed);
}

#[test]
fn a_confirmed_release_needs_an_admin_the_generation_and_the_methods_name() {
    let mut world = without_its_switch();
    let refusals = [
        world.released(2, &["switch"], person("otto")),
        world.released(1, &["switch"], admin("anna")),
        world.released(2, &["ceph"], admin("anna")),
        world.released(2, &["switch", "bmc"], admin("anna")),
    ];
    let codes = refusals.map(|refusal| refusal.unwrap_err().code());
    assert_eq!(
        codes,
        [
            "forbidden",
            "generation.stale",
            "applied_fencing.unknown",
            "applied_fencing.unknown"
        ]
    );
    assert!(world.is_fenced());
    world.expect(&[]);
}

#[test]
fn a_release_that_a_fence_rests_on_is_refused() {
    let mut world = cut_off();
    let refusal = world.released(1, &["switch"], admin("anna")).unwrap_err();
    assert!(refusal.to_string().contains("begin a rejoin first"), "{refusal}");
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work(0);
    let refusal = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(refusal.code(), "operation.live");
}

#[test]
fn a_release_is_refused_while_the_cut_may_still_be_made() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    let storage = world.deliver(0, "worker-1").unwrap();
    world.cancel().unwrap();
    let refusal = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(refusal.code(), "host.fencing");
    world.complete(storage);
    world.pass(31_999);
    let refusal = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(
        refusal.code(),
        "host.fencing",
        "the array may still cut the host off"
    );
    world.pass(1);
    assert_eq!(world.released(1, &["ceph"], admin("anna")), Ok(Reply::Done));
    comes_back(&mut world);
    assert!(world.gates().schedule.allowed, "no applied fencing is left");
}

#[test]
fn a_device_beside_one_that_is_gone_is_still_released_by_the_rejoin() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::StorageFence,
        &[&["array-a", "array-b"]],
    )]]));
    world.fence().unwrap();
    world.work_off();
    world.cancel().unwrap();
    world.pass(15_000);
    reboots(&mut world);
    world.rejoin(false).unwrap();
    world.take_log();
    world.site.reconnect("array-b");
    world.released(2, &["array-b"], admin("anna")).unwrap();
    assert!(
        !world.gates().schedule.allowed,
        "the cut of the other array still stands"
    );
    world.work_off();
    world.expect(&[
        "20.0 note applied_fencing.released",
        "20.0 operation.succeeded: the host was taken back",
    ]);
}
