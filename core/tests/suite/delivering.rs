//! Deliveries: when they are tried again and given up, and which events pass a filter.

use chrono::TimeDelta;
use ringfence_core::{
    EventFilter, EventKind, NextTry, SecretVersions, Timestamp, Tried, after_try, validate_subscription,
};

fn at(s: i64) -> Timestamp {
    Timestamp::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::seconds(s)
}

fn failed() -> Tried {
    Tried::Failed { retry_after_s: None }
}

#[test]
fn pauses_double_up_to_an_hour_with_a_jitter_of_half_at_most() {
    for (tries, full_s) in [
        (1, 5),
        (2, 10),
        (3, 20),
        (10, 2560),
        (11, 3600),
        (4_000_000_000, 3600),
    ] {
        for (jitter, expected_ms) in [(0, full_s * 500), (u16::MAX, full_s * 1000)] {
            let next = after_try(failed(), tries, at(0), at(0), jitter);
            assert_eq!(
                next,
                NextTry::At(at(0) + TimeDelta::milliseconds(expected_ms)),
                "{tries} {jitter}"
            );
        }
    }
}

#[test]
fn a_receiver_that_asks_for_a_longer_pause_gets_it_up_to_an_hour() {
    let asks = |retry_after_s| {
        after_try(
            Tried::Failed {
                retry_after_s: Some(retry_after_s),
            },
            1,
            at(0),
            at(0),
            0,
        )
    };
    assert_eq!(asks(1), NextTry::At(at(0) + TimeDelta::milliseconds(2500)));
    assert_eq!(asks(120), NextTry::At(at(120)));
    assert_eq!(asks(u32::MAX), NextTry::At(at(3600)));
}

#[test]
fn a_delivery_is_given_up_after_a_last_try_one_day_after_the_first() {
    let day = 86_400;
    assert_eq!(
        after_try(failed(), 30, at(0), at(day - 60), u16::MAX),
        NextTry::At(at(day))
    );
    assert_eq!(
        after_try(failed(), 31, at(0), at(day), 0),
        NextTry::DisableFailing
    );
    assert_eq!(after_try(Tried::Delivered, 31, at(0), at(day), 0), NextTry::Done);
    assert_eq!(after_try(Tried::Gone, 1, at(0), at(0), 0), NextTry::DisableGone);
}

#[test]
fn an_event_must_pass_every_list_of_a_filter() {
    let filter = |types: &[&str], segments: &[&str], hosts: &[&str]| {
        let owned = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        EventFilter {
            types: owned(types),
            segments: owned(segments),
            hosts: owned(hosts),
        }
    };
    let passes = |filter: &EventFilter| filter.matches(EventKind::HostFenced, Some("rack"), Some("c1"));
    assert!(passes(&filter(&[], &[], &[])));
    assert!(passes(&filter(
        &["operation.*", "host.*"],
        &["rack"],
        &["c1", "c2"]
    )));
    assert!(!passes(&filter(&["host.fence"], &[], &[])));
    assert!(!passes(&filter(&["hos.*"], &[], &[])));
    assert!(!passes(&filter(&["host.fenced"], &["rack-2"], &[])));
    assert!(!passes(&filter(&["host.fenced"], &["rack"], &["c2"])));
    let ours = |filter: &EventFilter| filter.matches(EventKind::SubscriptionDisabled, None, None);
    assert!(ours(&filter(&["subscription.*"], &[], &[])));
    assert!(!ours(&filter(&[], &[], &["c1"])));
    assert!(!ours(&filter(&[], &["rack"], &[])));
}

#[test]
fn a_filter_that_no_event_can_pass_is_refused() {
    let filter = EventFilter {
        types: vec!["host.*".to_owned(), "hosts.*".to_owned(), "fenced".to_owned()],
        hosts: vec!["a b".to_owned()],
        ..EventFilter::default()
    };
    let told = validate_subscription("x", &"d".repeat(1001), &filter)
        .unwrap_err()
        .to_string();
    for part in [
        "description: has 1001",
        "types[1]: is \"hosts.*\"",
        "types[2]: is \"fenced\"",
        "hosts[0]",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(!told.contains("types[0]"));
}

#[test]
fn the_former_secret_signs_until_it_expires() {
    let first = SecretVersions::first("k1");
    let second = first.rotate("k2", at(100));
    let numbers =
        |versions: &SecretVersions, now| versions.signing(now).map(|v| v.number).collect::<Vec<_>>();
    assert_eq!(numbers(&first, at(0)), [1]);
    assert_eq!(numbers(&second, at(99)), [2, 1]);
    assert_eq!(numbers(&second, at(100)), [2]);
    let third = second.rotate("k2", at(200));
    assert_eq!(numbers(&third, at(99)), [3, 2]);
}
