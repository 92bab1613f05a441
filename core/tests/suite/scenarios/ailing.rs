//! Hosts that answer, and of which sources say that something is wrong with them.

use chrono::TimeDelta;
use ringfence_core::{
    Cause, ConditionAction, ConditionRule, ConditionStatus, FailureState, FencingPolicy, Input,
    OperationStatus, Refusal, Reply, Report, ReportedCondition, SegmentPolicy, gates,
};

use super::{comes_back, falls_silent};
use ringfence_world::plans::*;
use ringfence_world::{Manner, World};

fn rule(action: ConditionAction) -> ConditionRule {
    ConditionRule {
        condition: "KernelDeadlock".to_owned(),
        status: ConditionStatus::True,
        for_s: 60,
        action,
    }
}

/// A host that is UP, in a segment that does this about a deadlock of the kernel after a minute.
fn up_under(action: ConditionAction) -> World {
    let policy = SegmentPolicy {
        fencing: FencingPolicy {
            automatic: true,
            ..FencingPolicy::default()
        },
        conditions: vec![rule(action)],
        ..ringfence_world::plans::policy()
    };
    let mut world = World::new(power_plan(), policy);
    comes_back(&mut world);
    world.take_log();
    world
}

fn condition(name: &str, status: ConditionStatus) -> ReportedCondition {
    ReportedCondition {
        name: name.to_owned(),
        status,
        reason: "DockerHung".to_owned(),
    }
}

fn says(world: &mut World, conditions: Vec<ReportedCondition>) -> Reply {
    let input = Input::Conditions {
        source: "npd".to_owned(),
        conditions,
        over: None,
    };
    world.give(input).unwrap()
}

fn deadlocks(world: &mut World) {
    let said = says(world, vec![condition("KernelDeadlock", ConditionStatus::True)]);
    assert_eq!(said, Reply::Done);
}

fn recovers(world: &mut World) {
    says(world, vec![condition("KernelDeadlock", ConditionStatus::False)]);
}

fn is_scheduled(world: &World) -> bool {
    gates(&world.state, world.now).schedule.allowed
}

/// A minute in which the host goes on answering.
fn a_minute_passes(world: &mut World) {
    for _ in 0..6 {
        world.pass(10_000);
        comes_back(world);
    }
}

#[test]
fn a_condition_that_stands_for_long_enough_is_told_and_no_more() {
    let mut world = up_under(ConditionAction::Report);
    deadlocks(&mut world);
    world.pass(59_000);
    world.expect(&[]);
    a_minute_passes(&mut world);
    world.expect(&["60.0 host.condition KernelDeadlock True: report"]);
    assert!(is_scheduled(&world) && world.state.operation.is_none());
    recovers(&mut world);
    world.expect_last("119.0 host.condition KernelDeadlock True: over");
}

#[test]
fn a_condition_without_a_rule_changes_nothing() {
    let mut world = up_under(ConditionAction::Fence);
    says(&mut world, vec![condition("NTPProblem", ConditionStatus::True)]);
    a_minute_passes(&mut world);
    world.expect(&[]);
    assert!(is_scheduled(&world));
}

#[test]
fn nothing_is_scheduled_on_a_host_while_a_condition_stands_for_which_its_segment_says_so() {
    let mut world = up_under(ConditionAction::HoldScheduling);
    deadlocks(&mut world);
    assert!(is_scheduled(&world));
    a_minute_passes(&mut world);
    assert!(!is_scheduled(&world) && world.state.operation.is_none());
    recovers(&mut world);
    assert!(is_scheduled(&world));
}

#[test]
fn a_host_that_answers_is_fenced_for_a_condition_where_its_segment_says_so_and_its_gate_waits_for_its_end() {
    let mut world = up_under(ConditionAction::Fence);
    deadlocks(&mut world);
    a_minute_passes(&mut world);
    let fence = world.state.operation.clone().unwrap();
    assert_eq!(fence.fence().unwrap().cause, Cause::Condition);
    assert!(
        fence
            .reason
            .starts_with("the condition KernelDeadlock of the host has been True since"),
        "{}",
        fence.reason
    );
    assert!(!world.gates().evacuate.allowed);
    world.pass(1_000);
    world.work_off();
    assert!(!world.is_fenced(), "it is seen UP");
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    assert!(
        world.is_fenced() && world.gates().evacuate.allowed,
        "{:#?}",
        world.state.operation
    );
}

#[test]
fn power_that_is_read_as_off_proves_nothing_while_the_host_answers() {
    let mut world = up_under(ConditionAction::Fence);
    world.site.manners.insert("bmc".to_owned(), Manner::Lies);
    deadlocks(&mut world);
    a_minute_passes(&mut world);
    world.pass(1_000);
    world.work_off();
    assert!(!world.is_fenced());
    for _ in 0..4 {
        a_minute_passes(&mut world);
        world.work_off();
    }
    let fence = world.state.operation.clone().unwrap();
    assert_eq!(fence.status, OperationStatus::NeedsOperator, "{}", fence.detail);
    assert!(!world.is_fenced() && !world.gates().evacuate.allowed);
}

#[test]
fn power_is_read_again_where_the_last_sign_of_life_may_have_come_after_it_was_read() {
    let mut world = up_under(ConditionAction::Fence);
    deadlocks(&mut world);
    a_minute_passes(&mut world);
    world.pass(1_000);
    world.work_off();
    // By its clock the source heard the host for the last time a moment after that.
    let last_seen_at = Some(world.now + TimeDelta::milliseconds(200));
    world.pass(8_000);
    let report = Report {
        state: FailureState::Unreachable,
        source: "monitor".to_owned(),
        observed_at: world.now,
        last_seen_at,
        silent_since: None,
        boot: None,
    };
    world.report(report).unwrap();
    assert!(!world.is_fenced());
    world.work_off();
    world.pass(10_000);
    world.work_off();
    assert!(
        world.is_fenced() && world.gates().evacuate.allowed,
        "{:#?}",
        world.state.operation
    );
}

#[test]
fn a_sign_of_life_does_not_end_a_fence_for_a_condition() {
    let mut world = up_under(ConditionAction::Fence);
    deadlocks(&mut world);
    a_minute_passes(&mut world);
    world.see(FailureState::Unknown).unwrap();
    comes_back(&mut world);
    assert_eq!(
        world.state.operation.as_ref().unwrap().status,
        OperationStatus::Running
    );
}

#[test]
fn a_fence_for_a_condition_that_is_no_more_ends_before_a_worker_has_acted() {
    let mut world = up_under(ConditionAction::Fence);
    deadlocks(&mut world);
    a_minute_passes(&mut world);
    world.take_log();
    recovers(&mut world);
    world.expect(&[
        "60.0 host.condition KernelDeadlock True: over",
        "60.0 operation.cancelled: no condition for which the segment fences the host stands any more",
    ]);
}

#[test]
fn a_condition_begins_one_fence_until_it_comes_anew() {
    let mut world = up_under(ConditionAction::Fence);
    deadlocks(&mut world);
    a_minute_passes(&mut world);
    world.pass(1_000);
    world.work_off();
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    assert!(world.is_fenced());
    // The node's problem detector says nothing until it runs again.
    world.pass(10_000);
    world.site.restore_power();
    world.pass(5_000);
    comes_back(&mut world);
    world.rejoin(false).unwrap();
    world.pass(1_000);
    world.work_off();
    world.pass(1_000);
    comes_back(&mut world);
    world.pass(60_000);
    assert!(!world.is_fenced(), "{:?}", world.state.operation);
    comes_back(&mut world);
    a_minute_passes(&mut world);
    assert!(world.state.operation.is_none() && !is_scheduled(&world));
    recovers(&mut world);
    assert!(is_scheduled(&world));
    deadlocks(&mut world);
    a_minute_passes(&mut world);
    assert!(world.state.operation.is_some());
}

#[test]
fn no_host_is_fenced_for_a_condition_where_nothing_is_fenced_by_itself_or_it_is_not_seen_up() {
    let mut off = up_under(ConditionAction::Fence);
    off.state.policy.fencing.automatic = false;
    deadlocks(&mut off);
    a_minute_passes(&mut off);
    assert!(off.state.operation.is_none());
    let mut unknown = up_under(ConditionAction::Fence);
    deadlocks(&mut unknown);
    unknown.see(FailureState::Unknown).unwrap();
    unknown.pass(60_000);
    assert!(unknown.state.operation.is_none());
}

#[test]
fn what_a_dead_host_has_said_last_is_no_sign_of_life() {
    let mut world = up_under(ConditionAction::Report);
    falls_silent(&mut world);
    deadlocks(&mut world);
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
    world.pass(15_000);
    let fence = world.state.operation.clone().unwrap();
    assert_eq!(fence.fence().unwrap().cause, Cause::Silence);
    recovers(&mut world);
    assert_eq!(
        world.state.operation.as_ref().unwrap().status,
        OperationStatus::Running
    );
}

#[test]
fn a_source_that_says_what_is_over_lets_its_other_conditions_stay() {
    let mut world = up_under(ConditionAction::Report);
    let mut say = |names: &[&str], over: Option<&[&str]>| {
        let conditions = names.iter().map(|name| condition(name, ConditionStatus::True));
        let over = over.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let input = Input::Conditions {
            source: "alerts".to_owned(),
            conditions: conditions.collect(),
            over,
        };
        let reply = world.give(input);
        let known = world
            .state
            .host
            .conditions
            .iter()
            .map(|(_, name, _)| name.to_owned());
        reply.map(|reply| (reply, known.collect::<Vec<_>>()))
    };
    let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(say(&["A", "B"], Some(&[])), Ok((Reply::Done, known(&["A", "B"]))));
    assert_eq!(say(&["C"], Some(&["A"])), Ok((Reply::Done, known(&["B", "C"]))));
    assert_eq!(say(&[], Some(&["A"])), Ok((Reply::AlreadySo, known(&["B", "C"]))));
    let many: Vec<String> = (0..63).map(|number| format!("D{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let refused = say(&many, Some(&[]));
    assert!(
        matches!(refused, Err(Refusal::TooManyConditions { .. })),
        "{refused:?}"
    );
    assert_eq!(say(&["E"], None), Ok((Reply::Done, known(&["E"]))));
}

#[test]
fn too_many_sources_of_conditions_are_refused() {
    let mut world = up_under(ConditionAction::Report);
    for number in 0..8 {
        let input = Input::Conditions {
            source: format!("source-{number}"),
            conditions: vec![condition("KernelDeadlock", ConditionStatus::False)],
            over: None,
        };
        assert_eq!(world.give(input), Ok(Reply::Done));
    }
    let more = Input::Conditions {
        source: "one more".to_owned(),
        conditions: vec![condition("KernelDeadlock", ConditionStatus::False)],
        over: None,
    };
    assert!(world.give(more).is_err());
}

#[test]
fn a_condition_that_spares_a_host_holds_its_fence_until_it_is_over() {
    let mut world = up_under(ConditionAction::Spare);
    deadlocks(&mut world);
    world.pass(60_000);
    falls_silent(&mut world);
    // What a storm would ask is asked later.
    world.others.lately = 9;
    world.pass(600_000);
    let held = world.state.operation.clone().unwrap();
    assert_eq!((held.status, world.sent.len()), (OperationStatus::Held, 0));
    assert_eq!(
        held.detail,
        "held by condition: the condition KernelDeadlock of the host is True, and spares it as its segment says: DockerHung (released by: the \
         end of the condition)"
    );
    assert_eq!(world.state.host.conditions.holds_scheduling(), None);
    world.others.lately = 0;
    recovers(&mut world);
    world.pass(5_000);
    world.work_off();
    assert!(world.is_fenced());
}
