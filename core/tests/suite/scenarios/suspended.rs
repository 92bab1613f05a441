//! Hosts that are suspended, themselves, by their segment, or with all hosts.

use chrono::TimeDelta;
use ringfence_core::*;

use super::on_nova::{automatic, fenced, manual};
use super::weaker::in_cluster;
use super::{comes_back, lost, lost_under};
use ringfence_world::World;
use ringfence_world::plans::*;

const REASON: &str = "by anna: the switch is replaced";

fn by_itself() -> SegmentPolicy {
    SegmentPolicy {
        fencing: FencingPolicy {
            automatic: true,
            ..FencingPolicy::default()
        },
        ..ringfence_world::plans::policy()
    }
}

fn in_s(world: &World, seconds: i64) -> Option<Timestamp> {
    Some(world.now + TimeDelta::seconds(seconds))
}

fn status(world: &World) -> OperationStatus {
    world.state.operation.as_ref().unwrap().status
}

#[test]
fn a_silent_host_is_not_fenced_by_itself_before_the_end_of_its_suspension() {
    for scope in SuspensionScope::ALL {
        let mut world = lost_under(power_plan(), by_itself());
        let until = in_s(&world, 100);
        world.suspend(*scope, until);
        world.take_log();
        world.pass(99_000);
        let held = world.state.operation.clone().unwrap();
        assert_eq!((held.status, world.sent.len()), (OperationStatus::Held, 0));
        assert!(held.detail.contains(REASON), "{}", held.detail);
        assert_eq!(held.held().unwrap().by[0].safeguard, Safeguard::Suspension);
        world.pass(10_000);
        world.work_off();
        assert!(world.is_fenced(), "{scope}");
    }
}

#[test]
fn one_without_an_end_holds_until_a_person_ends_it() {
    let mut world = lost_under(power_plan(), by_itself());
    world.suspend(SuspensionScope::Segment, None);
    world.pass(86_400_000);
    assert_eq!((status(&world), world.sent.len()), (OperationStatus::Held, 0));
    world.resume(SuspensionScope::Segment);
    world.pass(5_000);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn while_one_of_two_lasts_the_host_is_suspended() {
    let mut world = lost_under(power_plan(), by_itself());
    let until = in_s(&world, 20);
    world.suspend(SuspensionScope::Host, until);
    world.suspend(SuspensionScope::Everything, None);
    world.pass(600_000);
    assert_eq!(status(&world), OperationStatus::Held);
    world.resume(SuspensionScope::Everything);
    world.pass(5_000);
    assert_eq!(status(&world), OperationStatus::Running);
}

#[test]
fn a_fence_that_has_begun_stands_still_between_two_steps_and_goes_on_where_it_stood() {
    let two = plan(vec![
        vec![task(FencingKind::StorageFence, &[&["array"]])],
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
    ]);
    let mut world = lost(two);
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    let until = in_s(&world, 3_600);
    world.suspend(SuspensionScope::Host, until);
    // The worker that is at it ends its step.
    assert!(world.command(job));
    world.complete(job);
    world.pass(3_599_000);
    assert_eq!((status(&world), world.sent.len()), (OperationStatus::Held, 1));
    world.take_log();
    world.pass(1_000);
    world.expect(&[
        "3600.0 host.resumed by ringfence",
        "3600.0 operation.released: no suspension holds it any more",
        "3600.0 operation.proof storage.fence",
        "3600.0 send 2 power.off bmc",
    ]);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn what_no_worker_has_claimed_is_not_claimed_any_more_and_is_sent_again_later() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.suspend(SuspensionScope::Host, None);
    let refused = world.deliver(0, "worker-1").unwrap_err();
    assert_eq!(refused.code(), "attempt.refused");
    world.pass(3_600_000);
    assert_eq!(world.sent.len(), 1);
    world.resume(SuspensionScope::Host);
    assert_eq!(world.sent.len(), 2);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn a_step_that_ends_during_a_suspension_does_not_make_the_host_fenced_before_its_end() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.suspend(SuspensionScope::Host, None);
    assert!(world.command(job));
    world.complete(job);
    world.pass(60_000);
    assert!(!world.is_fenced() && !world.gates().evacuate.allowed);
    world.resume(SuspensionScope::Host);
    assert!(world.is_fenced());
}

#[test]
fn what_a_person_asks_for_during_a_suspension_is_done() {
    let mut world = lost_under(power_plan(), by_itself());
    world.suspend(SuspensionScope::Everything, None);
    assert!(matches!(world.fence(), Ok(Reply::Started(_))));
    world.work_off();
    assert!(world.is_fenced());

    let mut held = lost_under(power_plan(), by_itself());
    held.suspend(SuspensionScope::Everything, None);
    held.pass(60_000);
    assert_eq!(status(&held), OperationStatus::Held);
    held.retry().unwrap();
    held.work_off();
    assert!(held.is_fenced());

    let mut joined = lost(power_plan());
    joined.fence().unwrap();
    joined.suspend(SuspensionScope::Everything, None);
    assert!(matches!(joined.fence(), Ok(Reply::Joined(_))));
    joined.work_off();
    assert!(joined.is_fenced());

    let mut said = lost(power_plan());
    said.fence().unwrap();
    said.suspend(SuspensionScope::Host, None);
    assert_eq!(said.confirm(1, person("anna"), false), Ok(Reply::Done));
    assert!(said.is_fenced());
}

#[test]
fn a_newer_suspension_holds_what_was_asked_for_during_an_older_one() {
    let mut world = lost(power_plan());
    world.suspend(SuspensionScope::Segment, None);
    world.fence().unwrap();
    assert_eq!(status(&world), OperationStatus::Running);
    world.pass(1_000);
    world.suspend(SuspensionScope::Host, None);
    assert_eq!(status(&world), OperationStatus::Held);
    world.resume(SuspensionScope::Host);
    assert_eq!(status(&world), OperationStatus::Running);
}

#[test]
fn the_storm_brake_asks_when_the_suspension_is_over_and_not_before() {
    let mut world = lost_under(power_plan(), by_itself());
    let until = in_s(&world, 600);
    world.suspend(SuspensionScope::Everything, until);
    world.others.lately = 8;
    world.others.out_of_service = 8;
    world.pass(590_000);
    assert_eq!(status(&world), OperationStatus::Held);
    world.pass(15_000);
    assert_eq!(status(&world), OperationStatus::NeedsOperator);
    assert!(world.sent.is_empty());
}

#[test]
fn workloads_are_not_moved_and_hosts_not_taken_back_by_themselves() {
    let mut world = fenced(1, automatic());
    world.suspend(SuspensionScope::Host, None);
    world.pass(60_000);
    assert!(
        world
            .state
            .operation
            .as_ref()
            .is_none_or(|live| !live.status.is_live())
    );
    world.resume(SuspensionScope::Host);
    world.pass(5_000);
    let kind = world.state.operation.as_ref().map(Operation::kind);
    assert_eq!(kind, Some(OperationKind::Evacuation));

    let rejoins = SegmentPolicy {
        auto_rejoin: true,
        ..ringfence_world::plans::policy()
    };
    let mut back = lost_under(cut_off_plan(), rejoins);
    back.fence().unwrap();
    back.work_off();
    back.suspend(SuspensionScope::Segment, None);
    back.pass(6_000);
    comes_back(&mut back);
    back.pass(60_000);
    let is_rejoin = |world: &World| {
        let live = world.state.operation.as_ref();
        live.is_some_and(|live| live.kind() == OperationKind::Rejoin)
    };
    assert!(!is_rejoin(&back));
    back.resume(SuspensionScope::Segment);
    back.pass(1_000);
    assert!(is_rejoin(&back));
}

#[test]
fn an_evacuation_stands_still_and_goes_on() {
    let mut world = fenced(2, manual());
    world.evacuate().unwrap();
    world.suspend(SuspensionScope::Host, None);
    assert_eq!(status(&world), OperationStatus::Held);
    let sent = world.sent.len();
    world.pass(7_200_000);
    assert_eq!(world.sent.len(), sent);
    world.resume(SuspensionScope::Host);
    world.work_off();
    let log = world.take_log();
    assert!(log.last().unwrap().contains("operation.succeeded"), "{log:#?}");
}

/// One that stands still is not let go on for a program either.
#[test]
fn a_program_evacuates_no_suspended_host_and_a_person_does() {
    let mut world = fenced(2, manual());
    world.suspend(SuspensionScope::Segment, None);
    let Err(Refusal::Suspended { why }) = world.evacuate_for_program() else {
        panic!("evacuated although its segment is suspended");
    };
    assert!(why.contains(REASON), "{why}");
    world.resume(SuspensionScope::Segment);
    assert!(matches!(world.evacuate_for_program(), Ok(Reply::Started(_))));
    world.suspend(SuspensionScope::Host, None);
    assert!(world.evacuate_for_program().is_err());
    assert_eq!(status(&world), OperationStatus::Held);
    assert!(matches!(world.evacuate(), Ok(Reply::Joined(_))));
    assert_eq!(status(&world), OperationStatus::Running);
}

#[test]
fn a_suspension_that_is_asked_for_again_changes_nothing_and_its_end_can_be_put_off() {
    let mut world = lost(power_plan());
    let until = in_s(&world, 60);
    world.suspend(SuspensionScope::Host, until);
    world.pass(30_000);
    let known = world.state.host.suspension.clone();
    world.take_log();
    world.suspend(SuspensionScope::Host, until);
    assert_eq!(world.state.host.suspension, known);
    world.expect(&[]);
    let later = in_s(&world, 300);
    world.suspend(SuspensionScope::Host, later);
    world.pass(299_000);
    assert_eq!(world.state.host.suspension.as_ref().unwrap().until, later);
    world.pass(1_000);
    assert!(world.state.host.suspension.is_none());
}

#[test]
fn an_engine_that_begins_with_the_record_alone_knows_the_suspension_and_what_stands_still_for_it() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.suspend(SuspensionScope::Host, None);
    world.forget();
    world.see(FailureState::Unreachable).unwrap();
    world.pass(60_000);
    assert_eq!((status(&world), world.sent.len()), (OperationStatus::Held, 0));
    world.resume(SuspensionScope::Host);
    world.work_off();
    assert!(world.is_fenced());

    let mut wanted = lost(power_plan());
    wanted.suspend(SuspensionScope::Host, None);
    wanted.fence().unwrap();
    wanted.forget();
    assert_eq!(status(&wanted), OperationStatus::Running);
}

#[test]
fn an_end_is_within_the_bounds_of_who_asks() {
    let now = start();
    let days = |days| Some(now + TimeDelta::days(days));
    let wrong = |until, is_admin| {
        validate_suspension_end(until, is_admin, now)
            .err()
            .map(|p| p.to_string())
    };
    for (until, is_admin) in [(days(30), false), (days(366), true), (None, true)] {
        assert_eq!(wrong(until, is_admin), None);
    }
    let told = [
        (
            days(31),
            false,
            "an end within 30 days is allowed, and a later one to admins",
        ),
        (days(367), true, "an end within 366 days is allowed"),
        (None, false, "only an admin can suspend without an end"),
        (Some(now), true, "is not in the future"),
    ];
    for (until, is_admin, part) in told {
        let why = wrong(until, is_admin).unwrap();
        assert!(why.starts_with("until") && why.contains(part), "{why}");
    }
}

/// The storm brake and other safeguards hold a fence in the way in which a suspension does.
#[test]
fn a_persons_word_settles_and_counts_although_the_fence_is_held() {
    let settling = || SegmentPolicy {
        settle_s: 5,
        ..by_itself()
    };
    let mut paused = lost_under(power_plan(), settling());
    paused.fence().unwrap();
    paused.suspend(SuspensionScope::Host, None);

    let mut held = lost_under(power_plan(), settling());
    held.suspend(SuspensionScope::Segment, None);
    held.pass(60_000);
    assert_eq!(status(&held), OperationStatus::Held);

    let mut asking = lost_under(plan(Vec::new()), settling());
    asking.fence().unwrap();
    asking.pass(10_000);
    assert_eq!(status(&asking), OperationStatus::NeedsOperator);
    asking.suspend(SuspensionScope::Everything, None);

    let mut braked = lost_under(power_plan(), settling());
    braked.others.lately = 8;
    braked.pass(20_000);
    assert!(braked.state.operation.as_ref().unwrap().is_held_by_brake());

    for mut world in [paused, held, asking, braked] {
        assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::Done));
        assert!(!world.is_fenced());
        world.pass(10_000);
        assert!(world.is_fenced(), "{:#?}", world.state.operation);
    }
}

#[test]
fn what_a_word_has_won_in_a_held_fence_waits_for_the_end_of_a_later_suspension() {
    let mut world = lost(power_plan());
    world.state.policy.settle_s = 5;
    world.fence_for_program().unwrap();
    assert_eq!(status(&world), OperationStatus::Held);
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::Done));
    let until = in_s(&world, 60);
    world.suspend(SuspensionScope::Host, until);
    world.pass(59_000);
    assert_eq!(
        (status(&world), world.is_fenced()),
        (OperationStatus::Held, false)
    );
    world.pass(1_000);
    assert!(world.is_fenced(), "{:#?}", world.state.operation);
}

#[test]
fn no_worker_keeps_workloads_off_a_host_that_is_suspended_while_a_person_is_asked_about_it() {
    let mut world = in_cluster(Vec::new(), 0);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    assert_eq!(status(&world), OperationStatus::NeedsOperator);
    let isolations = |world: &World| -> Vec<usize> {
        let sent = world.sent.iter().enumerate();
        let isolations = sent.filter(|(_, sent)| sent.job.kind() == StepKind::Isolate);
        isolations.map(|(at, _)| at).collect()
    };
    let [first] = isolations(&world)[..] else {
        panic!("{:?}", world.sent);
    };
    world.suspend(SuspensionScope::Host, None);
    let refused = world.deliver(first, "worker-1").unwrap_err();
    assert!(
        refused.to_string().contains("its operation stands still"),
        "{refused}"
    );
    world.pass(60_000);
    assert_eq!(isolations(&world).len(), 1);
    world.resume(SuspensionScope::Host);
    world.pass(20_000);
    let last = *isolations(&world).last().unwrap();
    assert!(last != first);
    world.deliver(last, "worker-1").unwrap();
}
