//! What comes of hosts that fall silent, under one policy each.

use ringfence_core::{ConditionStatus, FailureState};
use ringfence_simulation::{Assumptions, Seen, Wait, What, Word};
use serde_json::json;

use crate::site::{back, begin, facts, of, policy, s, silent, simulated, site, then};

fn waits(
    outcome: &ringfence_simulation::Outcome,
    host: &str,
) -> Vec<(Wait, Vec<&'static str>, i64, Option<i64>)> {
    let waits = of(outcome, host).waits.iter();
    waits
        .map(|wait| (wait.waits_for, wait.by.clone(), s(wait.since), wait.until.map(s)))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_host_is_fenced_after_its_time_and_not_before() {
    let site = site(6, policy(json!({}), json!({ "settle_s": 2 })));
    let outcome = simulated(&site, 10, vec![silent(10, 1)], Assumptions::default()).await;
    let h1 = of(&outcome, "h1");
    assert_eq!(
        h1.fenced_at.iter().map(|at| s(*at)).collect::<Vec<_>>(),
        [10 + 30 + 5 + 2],
        "{outcome:#?}"
    );
    assert_eq!((h1.silent_at.map(s), h1.end.word), (Some(10), Word::Fenced));
    assert_eq!(outcome.hosts.len(), 1);
    let told: Vec<_> = outcome
        .timeline
        .iter()
        .map(|entry| (s(entry.at), entry.kind))
        .collect();
    assert_eq!(
        told,
        [
            (10, "host.failure_state"),
            (40, "operation.started"),
            (45, "operation.proof"),
            (47, "host.fenced"),
            (47, "operation.succeeded")
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_fences_nothing_by_itself_says_so() {
    let site = site(3, policy(json!({ "automatic": false }), json!({})));
    let outcome = simulated(&site, 10, vec![silent(0, 1)], Assumptions::default()).await;
    let end = &of(&outcome, "h1").end;
    assert_eq!(
        (end.word, end.detail.as_str()),
        (Word::Unfenced, "its segment fences no host by itself")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_storm_brake_asks_from_the_host_on_that_is_too_much() {
    let site = site(10, policy(json!({ "at_most": 2 }), json!({})));
    let happenings = (1..=4)
        .map(|nth| silent(i64::try_from(nth).unwrap() * 40, nth))
        .collect();
    let outcome = simulated(&site, 30, happenings, Assumptions::default()).await;
    for host in ["h1", "h2"] {
        assert_eq!(of(&outcome, host).end.word, Word::Fenced, "{host}");
    }
    for (host, at) in [("h3", 150), ("h4", 190)] {
        assert_eq!(waits(&outcome, host), [(Wait::StormBrake, vec![], at, None)]);
        let detail = &of(&outcome, host).end.detail;
        assert!(
            detail.contains("and at most 2 are fenced without being asked"),
            "{detail}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_fence_at_a_time_and_the_first_that_fell_silent_comes_first() {
    let site = site(10, policy(json!({ "at_once": 1 }), json!({ "settle_s": 0 })));
    let happenings = vec![silent(2, 3), silent(1, 2), silent(0, 5)];
    let outcome = simulated(&site, 10, happenings, Assumptions::default()).await;
    let fenced = |host: &str| s(of(&outcome, host).fenced_at[0]);
    assert!(
        fenced("h5") < fenced("h2") && fenced("h2") < fenced("h3"),
        "{outcome:#?}"
    );
    assert_eq!(waits(&outcome, "h5"), []);
    let [(Wait::Held, by, 31, Some(until))] = &waits(&outcome, "h2")[..] else {
        panic!("{outcome:#?}");
    };
    assert_eq!(by, &["at_once"]);
    assert!(*until >= fenced("h5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_loses_most_of_its_hosts_has_the_dead_one_fenced_once_it_hears_the_others() {
    let sight = json!({ "sight": { "at_most_percent": 50, "quiet_s": 60 } });
    let site = site(6, policy(sight, json!({ "settle_s": 0 })));
    let mut happenings: Vec<_> = (1..=5).map(|nth| silent(10, nth)).collect();
    happenings.extend((2..=5).map(|nth| back(600 + i64::try_from(nth).unwrap(), nth)));
    let outcome = simulated(&site, 30, happenings, Assumptions::default()).await;
    for nth in 2..=5 {
        let host = format!("h{nth}");
        assert!(of(&outcome, &host).fenced_at.is_empty(), "{outcome:#?}");
    }
    let [(Wait::Held, by, 40, Some(until))] = &waits(&outcome, "h1")[..] else {
        panic!("{outcome:#?}");
    };
    assert_eq!(by, &["sight"]);
    // Heard again for the quiet time, by then a look comes every 5 s.
    assert!((605 + 60..=605 + 70).contains(until), "{until}");
    assert_eq!(of(&outcome, "h1").end.word, Word::Fenced);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_members_one_is_fenced_and_the_next_waits_until_the_first_is_back() {
    let rules = json!({ "groups": [{ "label": "etcd", "majority": true }] });
    let mut site = site(0, policy(rules, json!({ "auto_rejoin": true })));
    for nth in 1..=5 {
        let mut host = facts(nth);
        if nth <= 3 {
            host.labels.insert("etcd".to_owned(), "main".to_owned());
        }
        site.add(host);
    }
    let happenings = vec![silent(0, 1), silent(60, 2), silent(60, 4), back(600, 1)];
    let outcome = simulated(&site, 60, happenings, Assumptions::default()).await;
    assert_eq!(
        of(&outcome, "h4").end.word,
        Word::Fenced,
        "a host that is no member waits for none of that"
    );
    let h1 = of(&outcome, "h1");
    assert_eq!(
        (h1.fenced_at.len(), h1.end.word),
        (1, Word::Unfenced),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .timeline
            .iter()
            .any(|entry| entry.host == "h1" && entry.kind == "host.unfenced")
    );
    let [(Wait::Held, by, 90, Some(until))] = &waits(&outcome, "h2")[..] else {
        panic!("{outcome:#?}");
    };
    assert_eq!(by, &["quorum"]);
    assert!((600..700).contains(until), "{until}");
    assert_eq!(of(&outcome, "h2").end.word, Word::Fenced);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_holds_until_it_ends() {
    let mut site = site(4, policy(json!({}), json!({})));
    site.copy.suspensions.insert(
        crate::site::segment_id(),
        ringfence_core::Suspension {
            since: begin() - chrono::TimeDelta::minutes(5),
            until: Some(begin() + chrono::TimeDelta::minutes(20)),
            by: "alice".to_owned(),
            reason: "a switch is replaced".to_owned(),
        },
    );
    let outcome = simulated(&site, 30, vec![silent(0, 1)], Assumptions::default()).await;
    let [(Wait::Held, by, 30, Some(until))] = &waits(&outcome, "h1")[..] else {
        panic!("{outcome:#?}");
    };
    assert_eq!(by, &["suspension"]);
    assert!((1200..1210).contains(until), "{until}");
    assert_eq!(of(&outcome, "h1").end.word, Word::Fenced);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_spares_one_host_and_has_another_one_fenced_although_it_answers() {
    let rules = json!([{ "condition": "Disabled", "action": "spare" }, { "condition": "KernelDeadlock", "action": "fence", "for_s": 60 }]);
    let site = site(4, policy(json!({}), json!({ "conditions": rules })));
    let condition = |name: &str| What::Condition {
        source: None,
        name: name.to_owned(),
        status: ConditionStatus::True,
    };
    let happenings = vec![
        then(0, 1, condition("Disabled")),
        silent(10, 1),
        then(0, 2, condition("KernelDeadlock")),
        silent(70, 2),
    ];
    let outcome = simulated(&site, 10, happenings, Assumptions::default()).await;
    assert_eq!(waits(&outcome, "h1"), [(Wait::Held, vec!["condition"], 40, None)]);
    assert_eq!(of(&outcome, "h1").end.word, Word::Held);
    let started = outcome
        .timeline
        .iter()
        .find(|entry| entry.host == "h2" && entry.kind == "operation.started");
    assert_eq!(started.map(|entry| s(entry.at)), Some(60), "{outcome:#?}");
    assert_eq!(of(&outcome, "h2").end.word, Word::Fenced);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_storm_the_segment_has_to_be_quiet() {
    let site = site(
        10,
        policy(json!({ "at_most": 1, "within_s": 60, "quiet_s": 300 }), json!({})),
    );
    let happenings = vec![silent(0, 1), silent(0, 2), silent(200, 3)];
    let outcome = simulated(&site, 30, happenings, Assumptions::default()).await;
    for host in ["h1", "h2"] {
        assert_eq!(waits(&outcome, host), [(Wait::StormBrake, vec![], 30, None)]);
    }
    let [(Wait::Held, by, 230, Some(until))] = &waits(&outcome, "h3")[..] else {
        panic!("{outcome:#?}");
    };
    assert_eq!(by, &["cool_down"]);
    assert!((330..340).contains(until), "{until}");
    assert_eq!(of(&outcome, "h3").end.word, Word::Fenced);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_fenced_again_and_again_is_taken_back_no_more() {
    let rest = json!({ "auto_rejoin": true, "quarantine": { "fences": 2, "within_s": 3600 } });
    let site = site(4, policy(json!({}), rest));
    let happenings = vec![silent(0, 1), back(120, 1), silent(300, 1), back(420, 1)];
    let outcome = simulated(&site, 30, happenings, Assumptions::default()).await;
    let h1 = of(&outcome, "h1");
    assert_eq!(
        (h1.fenced_at.len(), h1.end.word),
        (2, Word::Fenced),
        "{outcome:#?}"
    );
    assert_eq!(h1.end.failure_state, FailureState::Up);
    assert!(
        outcome
            .timeline
            .iter()
            .any(|entry| entry.kind == "host.quarantined")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_fails_gives_way_to_the_next_and_what_fails_altogether_needs_an_operator() {
    let site = site(4, policy(json!({}), json!({ "settle_s": 0, "restarts": 0 })));
    let failing = |names: &[&str]| Assumptions {
        failing: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Assumptions::default()
    };
    let outcome = simulated(&site, 10, vec![silent(0, 1)], failing(&["bmc"])).await;
    let h1 = of(&outcome, "h1");
    assert!(
        h1.end.word == Word::Fenced && h1.end.detail.contains("pdu"),
        "{outcome:#?}"
    );
    assert!(s(h1.fenced_at[0]) > 40, "{outcome:#?}");
    let outcome = simulated(&site, 10, vec![silent(0, 1)], failing(&["bmc", "pdu"])).await;
    assert_eq!(of(&outcome, "h1").end.word, Word::NeedsOperator, "{outcome:#?}");
    assert_eq!(of(&outcome, "h1").waits[0].waits_for, Wait::Operator);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_a_device_fences_itself_while_it_is_watched() {
    let rest = json!({ "self_fencing_timeout_s": 90, "settle_s": 0 });
    let mut site = site(4, policy(json!({}), rest));
    site.copy.plans.clear();
    let outcome = simulated(&site, 10, vec![silent(0, 1)], Assumptions::default()).await;
    let h1 = of(&outcome, "h1");
    assert!(
        h1.end.word == Word::Fenced && h1.end.detail.contains("self-fencing"),
        "{outcome:#?}"
    );
    assert!((90..130).contains(&s(h1.fenced_at[0])), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_are_silent_or_fenced_already_count() {
    let mut site = site(0, policy(json!({ "at_most": 2, "within_s": 3600 }), json!({})));
    let minutes = |count| begin() - chrono::TimeDelta::minutes(count);
    for nth in 1..=8 {
        let mut host = facts(nth);
        if nth == 1 {
            host.seen = Seen {
                state: FailureState::Unreachable,
                since: Some(minutes(20)),
                ..Seen::default()
            };
            host.is_silence_answered = true;
        }
        if nth == 2 {
            host.seen.state = FailureState::Unreachable;
            host.seen.since = Some(minutes(10));
            host.generation = ringfence_core::Generation(1);
            let proof = ringfence_core::Proof {
                kind: ringfence_core::ProofKind::PowerOff,
                source: "bmc".to_owned(),
                observed_at: minutes(9),
                read_at: minutes(9) - chrono::TimeDelta::seconds(20),
                claimed_at: None,
                settle_s: 20,
                operation_id: ringfence_core::OperationId(uuid::Uuid::from_u128(7)),
                generation: ringfence_core::Generation(1),
                detail: String::new(),
                ended: None,
            };
            host.fenced = Some((minutes(9), vec![proof]));
        }
        site.add(host);
    }
    let outcome = simulated(&site, 10, vec![silent(0, 3)], Assumptions::default()).await;
    assert_eq!(waits(&outcome, "h3"), [(Wait::StormBrake, vec![], 30, None)]);
    let detail = &of(&outcome, "h3").end.detail;
    assert!(
        detail.starts_with("3 hosts of the segment fell silent or were fenced within 3600 s"),
        "{detail}"
    );
    assert_eq!(outcome.hosts.len(), 1, "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_simulations_of_one_story_come_to_one_outcome() {
    let site = site(12, policy(json!({ "at_once": 2, "per_minute": 3 }), json!({})));
    let happenings: Vec<_> = (1..=12)
        .map(|nth| silent(i64::try_from(nth).unwrap() / 3, nth))
        .collect();
    let told = |outcome: &ringfence_simulation::Outcome| {
        let entries = outcome.timeline.iter();
        let entries = entries
            .map(|entry| (entry.at, entry.host.clone(), entry.kind))
            .collect::<Vec<_>>();
        (
            entries,
            outcome
                .hosts
                .iter()
                .map(|host| (host.host.clone(), host.waits.len()))
                .collect::<Vec<_>>(),
        )
    };
    let first = simulated(&site, 30, happenings.clone(), Assumptions::default()).await;
    let second = simulated(&site, 30, happenings, Assumptions::default()).await;
    assert_eq!(told(&first), told(&second));
    assert!(
        first.hosts.iter().all(|host| host.end.word == Word::Fenced),
        "{first:#?}"
    );
}
