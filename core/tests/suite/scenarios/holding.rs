//! Fences that were not asked for, and that safeguards hold.

use ringfence_core::{
    Cause, Effect, FailureState, FencingPolicy, OperationStatus, Permit, Reply, Safeguard, SegmentPolicy,
    Verdict, rulings,
};

use super::{comes_back, lost_under};
use ringfence_world::World;
use ringfence_world::plans::*;

/// One fence of the segment's hosts may be under way.
fn one_at_a_time() -> SegmentPolicy {
    SegmentPolicy {
        fencing: FencingPolicy {
            automatic: true,
            at_once: Some(1),
            ..FencingPolicy::default()
        },
        ..ringfence_world::plans::policy()
    }
}

/// The fence of another host is under way when this one is due.
fn held_under(policy: SegmentPolicy) -> World {
    let mut world = lost_under(power_plan(), policy);
    world.others.under_way = 1;
    world.pass(15_000);
    world
}

fn held() -> World {
    held_under(one_at_a_time())
}

fn permits(world: &World) -> &[Permit] {
    world
        .state
        .operation
        .as_ref()
        .map_or(&[], |operation| operation.permits())
}

const HELD: &str = "held by at_once: 1 fence of the segment's hosts is under way; at most 1 may be (released by: the end of a fence of the \
                    segment)";

#[test]
fn a_fence_beyond_those_that_may_be_under_way_is_held_and_begins_by_itself() {
    let mut world = held();
    world.pass(60_000);
    world.expect(&[
        "15.0 operation.started fence 1",
        &format!("15.0 operation.held: {HELD}"),
    ]);
    assert!(world.sent.is_empty() && permits(&world).is_empty());
    world.others.under_way = 0;
    world.pass(5_000);
    world.expect(&[
        "80.0 operation.released: no safeguard holds it any more",
        "80.0 send 1 power.off bmc",
    ]);
    let segment_id = world.state.host.segment_id;
    assert_eq!(permits(&world), [Permit::of_segment(segment_id, 1)]);
    world.work_off();
    assert!(world.is_fenced() && permits(&world).is_empty());
}

#[test]
fn a_fence_that_nothing_holds_begins_at_once_with_its_permit() {
    let mut world = lost_under(power_plan(), one_at_a_time());
    world.pass(15_000);
    world.expect(&["15.0 operation.started fence 1", "15.0 send 1 power.off bmc"]);
    assert_eq!(permits(&world).len(), 1);
}

#[test]
fn a_fence_beyond_those_that_may_begin_in_a_minute_begins_in_the_next_one() {
    let mut policy = one_at_a_time();
    policy.fencing.at_once = None;
    policy.fencing.per_minute = Some(2);
    let mut world = lost_under(power_plan(), policy);
    world.others.begun = 2;
    world.pass(30_000);
    world.expect(&[
        "15.0 operation.started fence 1",
        "15.0 operation.held: held by per_minute: 2 fences of the segment's hosts have begun without being asked in this minute; at most 2 may \
         (released by: the next minute)",
    ]);
    assert!(world.state.operation.as_ref().unwrap().is_in_line());
    // The engine counts those of the next minute.
    world.others.begun = 0;
    world.pass(5_000);
    let segment_id = world.state.host.segment_id;
    assert_eq!(permits(&world), [Permit::of_minute(segment_id, world.now, 2)]);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn those_that_fell_silent_earlier_come_first() {
    let mut world = lost_under(power_plan(), one_at_a_time());
    world.others.before_it = 2;
    world.pass(15_000);
    let operation = world.state.operation.clone().unwrap();
    assert_eq!(operation.status, OperationStatus::Held);
    assert!(
        operation
            .detail
            .contains("0 fences of the segment's hosts are under way; at most 1 may be; 2 hosts fell silent earlier and come first"),
        "{}",
        operation.detail
    );
}

/// What a person has overridden by the last request, as the audit trail tells it.
fn overridden(world: &World) -> Vec<&str> {
    let decision = world.trace.last().unwrap().said.as_ref().unwrap();
    let notes = decision.effects.iter().filter_map(|effect| match effect {
        Effect::Note(note) => note.detail["overrides"].as_array(),
        Effect::Event(_) | Effect::Dispatch(_) => None,
    });
    notes.flatten().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn a_request_to_fence_the_host_and_a_retry_let_a_held_fence_begin() {
    let mut asked = held();
    let id = asked.live_id();
    assert_eq!(asked.fence(), Ok(Reply::Joined(id)));
    let mut retried = held();
    assert_eq!(retried.retry(), Ok(Reply::Done));
    for mut world in [asked, retried] {
        assert_eq!(overridden(&world), [HELD], "what it overrides is on record");
        assert!(
            permits(&world).is_empty(),
            "what a person asks for needs no permit"
        );
        world.work_off();
        assert!(world.is_fenced());
    }
}

#[test]
fn a_held_fence_ends_when_its_host_answers_or_a_person_cancels_it() {
    let mut back = held();
    comes_back(&mut back);
    let mut cancelled = held();
    cancelled.cancel().unwrap();
    for mut world in [back, cancelled] {
        world.others.under_way = 0;
        world.pass(600_000);
        assert!(world.sent.is_empty());
        let told = world.take_log();
        let ends = told
            .iter()
            .any(|line| line.starts_with("15.0 operation.cancelled"));
        assert!(ends, "{told:?}");
    }
}

#[test]
fn a_host_of_which_nothing_is_known_any_more_stays_held() {
    let mut world = held();
    world.see(FailureState::Unknown).unwrap();
    world.others.under_way = 0;
    world.pass(60_000);
    let operation = world.state.operation.clone().unwrap();
    assert_eq!(
        operation.detail,
        "held by silence: it is UNKNOWN whether the host is silent (released by: a source that sees the host as UNREACHABLE)"
    );
    assert!(world.sent.is_empty());
    world.see(FailureState::Unreachable).unwrap();
    world.pass(5_000);
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_storm_that_came_while_a_fence_was_held_is_asked_about() {
    let mut world = held();
    world.others.under_way = 0;
    world.others.lately = 5;
    world.others.out_of_service = 5;
    world.pass(5_000);
    let operation = world.state.operation.clone().unwrap();
    assert_eq!(operation.status, OperationStatus::NeedsOperator);
    assert!(operation.is_held_by_brake() && world.sent.is_empty());
}

#[test]
fn a_segment_that_fences_no_host_by_itself_any_more_ends_a_held_fence_and_may_begin_it_anew() {
    let mut world = held();
    world.others.under_way = 0;
    world.state.policy.fencing.automatic = false;
    world.take_log();
    world.pass(5_000);
    world.expect(&["20.0 operation.cancelled: the segment fences no host by itself any more"]);
    world.state.policy.fencing.automatic = true;
    world.tick();
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_persons_confirmation_counts_while_safeguards_hold() {
    let mut world = held();
    world.site.plug(false);
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::Done));
    assert!(world.is_fenced() && world.gates().evacuate.allowed);
}

#[test]
fn a_held_fence_is_not_proven_by_the_hosts_watchdog() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(30),
        ..one_at_a_time()
    };
    let mut world = held_under(policy);
    world.stays_silent(600);
    world.tick();
    assert!(!world.is_fenced() && world.sent.is_empty());
}

#[test]
fn a_fence_that_waits_for_a_person_alone_gives_its_permit_back() {
    for restarts in [0, 1] {
        let policy = SegmentPolicy {
            restarts,
            ..one_at_a_time()
        };
        let mut world = lost_under(power_plan(), policy);
        world
            .site
            .manners
            .insert("bmc".to_owned(), ringfence_world::Manner::Refuses);
        world.pass(15_000);
        world.work_off();
        world.pass(10_000);
        world.work_off();
        let operation = world.state.operation.clone().unwrap();
        assert_eq!(
            operation.status,
            OperationStatus::NeedsOperator,
            "{}",
            operation.detail
        );
        let is_tried_again = operation.restart_at.is_some();
        assert_eq!(
            permits(&world).len(),
            usize::from(is_tried_again),
            "{restarts} restarts"
        );
        assert_eq!(is_tried_again, restarts == 1);
    }
}

#[test]
fn a_safeguard_says_what_it_would_say_beforehand() {
    let world = lost_under(power_plan(), one_at_a_time());
    let said = rulings(
        &world.state,
        Cause::Silence,
        FailureState::Unreachable,
        &world.others,
        &world.opinions,
        world.now,
    );
    let [ruling] = said.as_slice() else {
        panic!("{said:?}")
    };
    assert_eq!(
        (ruling.safeguard, ruling.verdict),
        (Safeguard::AtOnce, Verdict::Allow)
    );
    let unbounded = lost_under(power_plan(), ringfence_world::plans::policy());
    let said = rulings(
        &unbounded.state,
        Cause::Silence,
        FailureState::Unreachable,
        &unbounded.others,
        &unbounded.opinions,
        unbounded.now,
    );
    assert!(said.is_empty(), "{said:?}");
}

/// A health check asks for fences, in a segment that fences nothing by itself.
fn asked_by_program(under_way: u64) -> World {
    let mut policy = one_at_a_time();
    policy.fencing.automatic = false;
    let mut world = lost_under(power_plan(), policy);
    world.others.under_way = under_way;
    assert!(matches!(world.fence_for_program(), Ok(Reply::Started(_))));
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 operation.held: its safeguards are looked at before it begins",
    ]);
    assert!(world.sent.is_empty(), "it has begun before a look");
    world.pass(1);
    world
}

#[test]
fn what_a_program_asks_for_begins_when_a_look_finds_that_nothing_holds_it() {
    let mut world = asked_by_program(0);
    world.expect(&[
        "0.0 operation.released: no safeguard holds it any more",
        "0.0 send 1 power.off bmc",
    ]);
    assert_eq!(permits(&world).len(), 1);
    let fence = world.state.operation.as_ref().unwrap().fence().unwrap();
    assert_eq!(fence.cause, Cause::Program);
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn what_a_program_asks_for_is_held_as_an_automatic_fence_is_and_by_no_other_program_released() {
    let mut world = asked_by_program(1);
    world.expect(&[&format!("0.0 operation.held: {HELD}")]);
    let id = world.live_id();
    assert_eq!(world.fence_for_program(), Ok(Reply::Joined(id)));
    world.pass(10_000);
    assert!(world.sent.is_empty());
    assert_eq!(world.fence(), Ok(Reply::Joined(id)));
    assert_eq!(world.sent.len(), 1, "a person wants it");
}

#[test]
fn the_storm_brake_asks_a_person_about_what_a_program_asks_for() {
    let mut world = asked_by_program(0);
    world.cancel().unwrap();
    world.others.out_of_service = 5;
    let before = world.sent.len();
    world.fence_for_program().unwrap();
    world.pass(1);
    let live = world.state.operation.clone().unwrap();
    assert!(live.is_held_by_brake() && live.status == OperationStatus::NeedsOperator);
    world.pass(60_000);
    assert_eq!(world.sent.len(), before);
}

/// What a program asked for is held, in a segment that fences by itself; the host fell silent this many seconds before.
fn held_for_program(silent_s: i64) -> World {
    let mut world = lost_under(power_plan(), one_at_a_time());
    world.others.under_way = 1;
    world.pass(silent_s * 1_000);
    world.fence_for_program().unwrap();
    world.pass(1);
    world.take_log();
    world
}

#[test]
fn what_a_program_takes_back_before_it_begins_leaves_the_silence_to_the_segment() {
    let mut world = held_for_program(5);
    world.pass(20_000);
    world.cancel_by_program().unwrap();
    world.tick();
    world.others.under_way = 0;
    world.pass(5_000);
    world.expect(&[
        "25.0 note operation.cancel",
        "25.0 operation.cancelled: cancelled by kubernetes: a mistake",
        "25.0 operation.started fence 2",
        &format!("25.0 operation.held: {HELD}"),
        "30.0 operation.released: no safeguard holds it any more",
        "30.0 send 1 power.off bmc",
    ]);
}

#[test]
fn what_a_program_takes_back_while_a_person_is_asked_about_a_storm_is_asked_about_again() {
    let mut world = held_for_program(5);
    world.others.under_way = 0;
    world.others.out_of_service = 5;
    world.pass(5_000);
    assert!(world.state.operation.as_ref().unwrap().is_held_by_brake());
    world.cancel_by_program().unwrap();
    world.pass(20_000);
    let live = world.state.operation.clone().unwrap();
    assert!(live.is_held_by_brake() && live.status == OperationStatus::NeedsOperator);
    assert_eq!(live.requested_by, "ringfence");
    // A person has looked, and wants none.
    world.cancel().unwrap();
    world.others.out_of_service = 0;
    world.pass(600_000);
    assert!(world.sent.is_empty());
}

#[test]
fn a_silence_for_which_a_person_wants_no_fence_stays_answered_whatever_programs_ask_for() {
    // A person cancels what the program asked for.
    let mut cancelled = held_for_program(5);
    cancelled.cancel().unwrap();
    // A person has cancelled the automatic fence before the program asked.
    let mut before = held_for_program(15);
    before.cancel().unwrap();
    before.fence_for_program().unwrap();
    before.pass(1);
    before.cancel_by_program().unwrap();
    for mut world in [cancelled, before] {
        world.others.under_way = 0;
        world.pass(600_000);
        assert!(world.sent.is_empty(), "{:?}", world.take_log());
    }
}

#[test]
fn what_a_program_stops_after_it_began_has_answered_the_silence() {
    let mut world = held_for_program(5);
    world.others.under_way = 0;
    world.pass(5_000);
    assert_eq!(world.sent.len(), 1);
    world.cancel_by_program().unwrap();
    world.work_off();
    world.pass(600_000);
    assert_eq!(world.sent.len(), 1, "{:?}", world.take_log());
}
