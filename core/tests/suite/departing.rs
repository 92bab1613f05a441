//! Hosts that their platform does not name any more.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::*;
use uuid::Uuid;

const HOUR: TimeDelta = TimeDelta::hours(1);

fn at(minutes: i64) -> Timestamp {
    start() + TimeDelta::minutes(minutes)
}

fn resident(number: u128, name: &str, left_at: Option<i64>) -> Resident<'_> {
    Resident {
        id: HostId(Uuid::from_u128(number)),
        known_as: name,
        is_adopted: true,
        left_at: left_at.map(at),
    }
}

fn numbers(ids: &[HostId]) -> Vec<u128> {
    ids.iter().map(|id| id.0.as_u128()).collect()
}

fn found(named: &[&str], on_record: &[Resident<'_>], minutes: i64) -> [Vec<u128>; 3] {
    let named: BTreeSet<&str> = named.iter().copied().collect();
    let Departures { left, back, due } = departures(&named, on_record, Some(HOUR), at(minutes), None);
    [&left, &back, &due].map(|ids| numbers(ids))
}

#[test]
fn a_host_is_due_once_its_platform_has_not_named_it_for_the_whole_time() {
    let here = resident(1, "n1", None);
    assert_eq!(found(&["n1", "n2"], &[here], 0), [vec![], vec![], vec![]]);
    assert_eq!(found(&["n2"], &[here], 0), [vec![1], vec![], vec![]]);
    let away = resident(1, "n1", Some(0));
    assert_eq!(found(&["n2"], &[away], 59), [vec![], vec![], vec![]]);
    assert_eq!(found(&["n2"], &[away], 60), [vec![], vec![], vec![1]]);
}

#[test]
fn a_host_that_is_named_again_begins_anew() {
    let away = resident(1, "n1", Some(0));
    assert_eq!(found(&["n1"], &[away], 600), [vec![], vec![1], vec![]]);
}

#[test]
fn a_list_that_names_no_host_at_all_says_nothing() {
    let all = [resident(1, "n1", None), resident(2, "n2", Some(0))];
    assert_eq!(found(&[], &all, 600), [vec![], vec![], vec![]]);
}

#[test]
fn the_host_that_left_first_is_due_first() {
    let all = [resident(1, "n1", Some(5)), resident(2, "n2", Some(3))];
    assert_eq!(found(&["n3"], &all, 600), [vec![], vec![], vec![2, 1]]);
}

#[test]
fn a_host_that_a_person_added_is_never_due_and_none_is_where_that_is_not_wanted() {
    let added = Resident {
        is_adopted: false,
        ..resident(1, "n1", Some(0))
    };
    assert_eq!(found(&["n2"], &[added], 6_000), [vec![], vec![], vec![]]);
    let named = BTreeSet::from(["n2"]);
    let away = [resident(1, "n1", Some(0))];
    assert!(departures(&named, &away, None, at(6_000), None).due.is_empty());
}

#[test]
fn by_a_clock_that_was_set_the_time_counts_from_then_on() {
    let named = BTreeSet::from(["n2"]);
    let away = [resident(1, "n1", Some(0))];
    let due = |minutes| departures(&named, &away, Some(HOUR), at(minutes), Some(at(500))).due;
    assert!(due(559).is_empty());
    assert_eq!(numbers(&due(560)), [1]);
}

/// A host of which nothing is known.
fn unknown() -> World {
    let mut world = World::new(power_plan(), policy());
    world.state.host.zone = DEFAULT_ZONE.to_owned();
    world
}

fn why_not(world: &World) -> Option<String> {
    let refusal = may_remove_departed(&world.state, world.now).err();
    refusal.map(|refusal| refusal.to_string())
}

#[test]
fn a_host_of_which_nothing_is_known_may_be_removed() {
    let mut world = unknown();
    assert_eq!(why_not(&world), None);
    world.see(FailureState::Up).unwrap();
    world.see(FailureState::Unknown).unwrap();
    assert_eq!(why_not(&world), None);
}

#[test]
fn a_host_that_any_source_sees_up_or_silent_stays() {
    for state in [FailureState::Up, FailureState::Unreachable] {
        let mut world = unknown();
        world.see(state).unwrap();
        assert_eq!(why_not(&world).unwrap(), "the host is seen by another source");
    }
}

#[test]
fn a_host_stays_from_the_first_moment_of_a_fence_until_it_is_taken_back() {
    let mut world = unknown();
    world.fence().unwrap();
    assert!(
        why_not(&world).unwrap().contains("is running"),
        "{:?}",
        why_not(&world)
    );
    world.work(0);
    assert!(world.state.host.fence.is_some());
    assert_eq!(
        why_not(&world).unwrap(),
        "the host is FENCED; rejoin it before it is removed"
    );
}

#[test]
fn a_host_on_which_a_worker_may_still_act_stays() {
    let mut world = unknown();
    world.state.host.in_flight.push(InFlight {
        attempt: AttemptId {
            operation_id: OperationId(Uuid::from_u128(7)),
            number: 1,
        },
        generation: Generation(1),
        kind: FencingKind::PowerOn.into(),
        method: None,
        claim_id: None,
        until: world.now + TimeDelta::seconds(5),
        only_looks: false,
        lasts_ms: None,
    });
    assert_eq!(
        why_not(&world).unwrap(),
        "the host is acted on by an attempt whose time is not over; remove it later"
    );
    let by_a_person = |seconds| may_remove(&world.state, world.now + TimeDelta::seconds(seconds));
    assert!(
        by_a_person(0).is_err(),
        "another host of its name would not know of it"
    );
    assert_eq!(by_a_person(5), Ok(()));
    world.pass(5_000);
    assert_eq!(why_not(&world), None);
}

#[test]
fn what_a_person_has_given_to_a_host_keeps_it() {
    let mut world = unknown();
    world.state.host.parameters = BTreeMap::from([("bmc".to_owned(), Parameters::new())]);
    assert!(why_not(&world).unwrap().contains("parameters or a zone"));
    let mut world = unknown();
    world.state.host.zone = "edge".to_owned();
    assert!(why_not(&world).unwrap().contains("parameters or a zone"));
}
