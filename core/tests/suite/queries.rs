//! What queries say of a fence that begins by itself.

use chrono::TimeDelta;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::{self, power_plan, start};

fn policy(queries: &[&str]) -> SegmentPolicy {
    SegmentPolicy {
        fencing: FencingPolicy {
            automatic: true,
            after_s: 0,
            queries: queries.iter().copied().map(str::to_owned).collect(),
            ..FencingPolicy::default()
        },
        ..plans::policy()
    }
}

fn answer(is_allowed: bool, reason: &str) -> Result<Answer, String> {
    Ok(Answer {
        is_allowed,
        reason: reason.to_owned(),
    })
}

/// What is ruled of a silent host whose queries gave these answers.
fn rulings_of(answers: &[(&str, Result<Answer, String>)], age_s: i64) -> Vec<(Verdict, String)> {
    let mut world = World::new(power_plan(), policy(&["prometheus", "cmdb"]));
    let _ = world.see(FailureState::Unreachable);
    let opinions = Opinions {
        asked_at: Some(start()),
        queries: answers
            .iter()
            .map(|(name, answer)| ((*name).to_owned(), answer.clone()))
            .collect(),
        ..Opinions::default()
    };
    let all = rulings(
        &world.state,
        Cause::Silence,
        FailureState::Unreachable,
        &Neighbourhood::default(),
        &opinions,
        start() + TimeDelta::seconds(age_s),
    );
    all.into_iter()
        .filter(|ruling| ruling.safeguard == Safeguard::Query)
        .map(|ruling| (ruling.verdict, ruling.reason))
        .collect()
}

#[test]
fn every_query_has_to_allow_it_and_what_is_not_known_holds() {
    let allowed = rulings_of(
        &[
            ("prometheus", answer(true, "its expression returns nothing")),
            ("cmdb", answer(false, "h1 is being moved")),
        ],
        30,
    );
    assert_eq!(
        allowed,
        [
            (
                Verdict::Allow,
                "query prometheus allows it: its expression returns nothing".to_owned()
            ),
            (Verdict::Hold, "query cmdb holds it: h1 is being moved".to_owned()),
        ]
    );
    let unknown = rulings_of(
        &[
            ("prometheus", Err("it did not answer in time".to_owned())),
            ("another", answer(true, "")),
        ],
        0,
    );
    assert_eq!(
        unknown,
        [
            (
                Verdict::Unknown,
                "query prometheus could not be asked: it did not answer in time".to_owned()
            ),
            (Verdict::Unknown, "query cmdb was not asked".to_owned()),
        ]
    );
}

#[test]
fn an_answer_counts_for_thirty_seconds() {
    let all = rulings_of(
        &[("prometheus", answer(true, "")), ("cmdb", answer(true, ""))],
        31,
    );
    let old = |name: &str| {
        (
            Verdict::Unknown,
            format!("query {name} was not asked within 30 s"),
        )
    };
    assert_eq!(all, [old("prometheus"), old("cmdb")]);
}

#[test]
fn a_fence_that_a_query_holds_goes_on_when_it_allows_it() {
    let mut world = World::new(power_plan(), policy(&["cmdb"]));
    let say = |world: &mut World, answer| {
        world.opinions = Opinions {
            asked_at: Some(world.now),
            queries: [("cmdb".to_owned(), answer)].into(),
            ..Opinions::default()
        };
    };
    let _ = world.see(FailureState::Unreachable);
    say(&mut world, answer(false, "it is being moved"));
    world.pass(6_000);
    let live = world.state.operation.clone().unwrap();
    assert_eq!(live.status, OperationStatus::Held);
    assert_eq!(
        live.detail,
        "held by query: query cmdb holds it: it is being moved (released by: an answer that allows it)"
    );
    say(&mut world, answer(true, "it stands still"));
    world.pass(6_000);
    world.work_off();
    assert!(world.is_fenced());
}
