//! The conclusions of an observer.

use chrono::TimeDelta;
use ringfence_core::*;

use ringfence_world::plans::start;

fn at(seconds: i64) -> Timestamp {
    start() + TimeDelta::seconds(seconds)
}

/// A time by the backend's clock, which is an hour ahead.
fn theirs(seconds: i64) -> Timestamp {
    at(3_600 + seconds)
}

fn sign(host: &str, last: i64) -> Sign {
    Sign {
        host: host.to_owned(),
        last: Some(theirs(last)),
        is_up: true,
        is_marked_down: false,
        settings: String::new(),
        boot: None,
        host_type: None,
        labels: None,
        is_on_record: false,
        is_kept_off: false,
        conditions: [].into(),
    }
}

fn watch() -> Watch {
    Watch::new(TimeDelta::seconds(60))
}

fn poll(own: i64, hosts: Vec<Sign>) -> Poll {
    Poll {
        hosts,
        own: Some(theirs(own)),
    }
}

fn state(watch: &mut Watch, poll: &Poll, now: i64) -> Option<(FailureState, i64)> {
    let found = watch.look(Some(poll), &["c1"], at(now));
    let sighting = found.get("c1")?;
    Some((sighting.state, (sighting.observed_at - start()).num_seconds()))
}

#[test]
fn a_host_with_new_signs_is_up_since_the_look_before_its_last_sign() {
    let mut watch = watch();
    // The sign's age is unknown: between a second and a minute.
    assert_eq!(
        state(&mut watch, &poll(0, vec![sign("c1", 0)]), 0),
        Some((FailureState::Up, -60))
    );
    assert_eq!(
        state(&mut watch, &poll(5, vec![sign("c1", 0)]), 5),
        Some((FailureState::Up, -60))
    );
    // The sign came after the look before. Reports of other sources may be newer.
    assert_eq!(
        state(&mut watch, &poll(10, vec![sign("c1", 6)]), 10),
        Some((FailureState::Up, 5))
    );
    assert_eq!(
        state(&mut watch, &poll(15, vec![sign("c1", 6)]), 15),
        Some((FailureState::Up, 5))
    );
}

#[test]
fn the_age_of_a_sign_after_an_outage_of_the_backend_comes_from_the_backends_clock() {
    let mut watch = watch();
    for now in [0, 5] {
        state(&mut watch, &poll(now, vec![sign("c1", now)]), now);
    }
    // No answer for a minute. The clock is ahead by an hour and five seconds at most.
    assert_eq!(silence(&mut watch, 60), Some(FailureState::Unknown));
    assert_eq!(
        state(&mut watch, &poll(63, vec![sign("c1", 62)]), 65),
        Some((FailureState::Up, 57))
    );
    // After it was set back, the backend's clock tells no more than the look before.
    assert_eq!(
        state(&mut watch, &poll(-40, vec![sign("c1", -38)]), 70),
        Some((FailureState::Up, 65))
    );
}

#[test]
fn a_silent_host_among_signs_of_the_backend_is_unreachable() {
    let mut watch = watch();
    let mut last = None;
    for now in (0..=60).step_by(5) {
        last = state(&mut watch, &poll(now, vec![sign("c1", 0)]), now);
    }
    assert_eq!(last, Some((FailureState::Unreachable, 60)));
}

#[test]
fn an_observer_limits_the_time_of_a_silent_hosts_last_sign() {
    let mut watch = watch();
    for now in [0, 5] {
        state(&mut watch, &poll(now, vec![sign("c1", now)]), now);
    }
    // The sign came after the look at 5 s, and before the one at 10 s.
    let mut found = None;
    for now in (10..=70).step_by(5) {
        let answer = poll(now, vec![sign("c1", 8)]);
        found = watch.look(Some(&answer), &["c1"], at(now)).remove("c1");
    }
    let found = found.unwrap();
    assert_eq!(found.state, FailureState::Unreachable);
    assert_eq!(
        (found.last_seen_at, found.silent_since),
        (Some(at(5)), Some(at(10)))
    );
}

#[test]
fn an_observer_that_begins_invents_no_sign_of_life_of_a_host_that_has_been_silent_for_long() {
    let mut watch = watch();
    for now in (0..=120).step_by(5) {
        // The backend's own sign is 3 s old, and the host's 200 s.
        let answer = poll(now - 3, vec![sign("c1", -200)]);
        let found = watch.look(Some(&answer), &["c1"], at(now)).remove("c1").unwrap();
        assert_eq!(found.state, FailureState::Unreachable);
        assert_eq!(found.last_seen_at, Some(at(-197)), "after {now} s");
    }
}

#[test]
fn a_host_that_the_backend_sees_down_is_unreachable_at_once() {
    let mut watch = watch();
    let down = Sign {
        is_up: false,
        ..sign("c1", -300)
    };
    assert_eq!(
        state(&mut watch, &poll(0, vec![down]), 0),
        Some((FailureState::Unreachable, 0))
    );
}

#[test]
fn hosts_of_a_backend_that_falls_silent_are_unknown_and_not_unreachable() {
    let mut watch = watch();
    state(&mut watch, &poll(0, vec![sign("c1", 0)]), 0);
    state(&mut watch, &poll(5, vec![sign("c1", 5)]), 5);
    let dead = poll(
        5,
        vec![Sign {
            is_up: false,
            ..sign("c1", 5)
        }],
    );
    assert_eq!(state(&mut watch, &dead, 40), Some((FailureState::Unknown, 40)));
    assert_eq!(state(&mut watch, &dead, 300), Some((FailureState::Unknown, 300)));
}

#[test]
fn a_backend_whose_own_services_are_silent_says_nothing_about_hosts() {
    let mut watch = watch();
    let unserved = Poll {
        own: None,
        ..poll(0, vec![sign("c1", 0)])
    };
    assert_eq!(state(&mut watch, &unserved, 0), Some((FailureState::Unknown, 0)));
}

#[test]
fn a_host_that_was_forced_down_is_up_after_two_new_signs() {
    let mut watch = watch();
    let forced = |last| Sign {
        is_up: false,
        is_marked_down: true,
        ..sign("c1", last)
    };
    // The sign may be from before the host died.
    assert_eq!(state(&mut watch, &poll(0, vec![forced(0)]), 0), None);
    assert_eq!(state(&mut watch, &poll(20, vec![forced(0)]), 20), None);
    assert_eq!(
        state(&mut watch, &poll(60, vec![forced(0)]), 60),
        Some((FailureState::Unreachable, 60))
    );
    // One sign may be from elsewhere: it does not suffice for UP, and suffices against UNREACHABLE.
    let found = watch.look(Some(&poll(90, vec![forced(88)])), &["c1"], at(90));
    let stirs = Sighting {
        state: FailureState::Unknown,
        // The backend's clock is ahead by an hour and twenty seconds at most.
        observed_at: at(68),
        last_seen_at: None,
        silent_since: None,
        stirs: true,
    };
    assert_eq!(found.get("c1"), Some(&stirs));
    assert_eq!(
        state(&mut watch, &poll(95, vec![forced(93)]), 95),
        Some((FailureState::Up, 90))
    );
}

#[test]
fn a_setting_by_an_administrator_is_no_sign_of_life() {
    let mut watch = watch();
    state(&mut watch, &poll(0, vec![sign("c1", 0)]), 0);
    state(&mut watch, &poll(5, vec![sign("c1", 5)]), 5);
    let set = |last, settings: &str| Sign {
        is_up: false,
        is_marked_down: true,
        settings: settings.to_owned(),
        ..sign("c1", last)
    };
    assert_eq!(
        state(&mut watch, &poll(20, vec![set(18, "forced down")]), 20),
        None
    );
    assert_eq!(
        state(&mut watch, &poll(25, vec![set(23, "forced down, disabled")]), 25),
        None
    );
    assert_eq!(
        state(&mut watch, &poll(30, vec![set(23, "forced down, disabled")]), 30),
        None
    );
    let answer = poll(83, vec![set(23, "forced down, disabled")]);
    let silent = watch.look(Some(&answer), &["c1"], at(83)).remove("c1").unwrap();
    assert_eq!(
        (silent.state, silent.observed_at),
        (FailureState::Unreachable, at(83))
    );
    // The last sign is the one before any setting, so that a proven fence in between holds. The silence is certain only since the last change.
    assert_eq!(
        (silent.last_seen_at, silent.silent_since),
        (Some(at(0)), Some(at(25)))
    );
}

/// The state of `c1` after a poll without an answer.
fn silence(watch: &mut Watch, now: i64) -> Option<FailureState> {
    let found = watch.look(None, &["c1"], at(now));
    found.get("c1").map(|sighting| sighting.state)
}

#[test]
fn the_hosts_of_a_backend_that_does_not_answer_are_unknown_after_a_while() {
    let mut watch = watch();
    watch.look(Some(&poll(0, vec![sign("c1", 0)])), &["c1"], at(0));
    assert_eq!(silence(&mut watch, 29), None);
    assert_eq!(silence(&mut watch, 30), Some(FailureState::Unknown));
    assert_eq!(silence(&mut watch, 3_600), Some(FailureState::Unknown));
    watch.look(Some(&poll(3_601, vec![sign("c1", 3_600)])), &["c1"], at(3_601));
    assert_eq!(silence(&mut watch, 3_602), None);
    let mut never = Watch::new(TimeDelta::seconds(60));
    assert_eq!(silence(&mut never, 0), None);
    assert_eq!(silence(&mut never, 30), Some(FailureState::Unknown));
}

#[test]
fn a_host_that_the_backend_no_longer_names_becomes_unknown_and_never_unreachable() {
    let mut watch = watch();
    let without = |now| poll(now, vec![sign("c2", now)]);
    state(&mut watch, &poll(0, vec![sign("c1", 0), sign("c2", 0)]), 0);
    assert_eq!(state(&mut watch, &without(5), 5), None);
    assert_eq!(state(&mut watch, &without(34), 34), None);
    assert_eq!(
        state(&mut watch, &without(35), 35),
        Some((FailureState::Unknown, 35))
    );
    assert_eq!(
        state(&mut watch, &without(900), 900),
        Some((FailureState::Unknown, 900))
    );
    // Named again, the host gets the whole time again.
    state(&mut watch, &poll(905, vec![sign("c1", 905)]), 905);
    assert_eq!(state(&mut watch, &without(910), 910), None);
}

#[test]
fn an_observer_reports_only_known_hosts() {
    let mut watch = watch();
    let found = watch.look(Some(&poll(0, vec![sign("c1", 0), sign("c2", 0)])), &["c1"], at(0));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["c1"]);
}

/// A recorded source.
fn on_record(state: FailureState, observed: i64) -> Source {
    Source {
        state,
        observed_at: at(observed),
        reported_at: at(observed),
        late_ms: 0,
        alive_by: None,
        alive_at: None,
        alive_reported_at: None,
        up_since: None,
        silence: None,
        boots: Boots::default(),
    }
}

fn sighting(state: FailureState, seconds: i64) -> Sighting {
    Sighting {
        state,
        observed_at: at(seconds),
        last_seen_at: None,
        silent_since: None,
        stirs: false,
    }
}

const REFRESH: Refresh = Refresh {
    up: TimeDelta::seconds(60),
    silence: TimeDelta::seconds(10),
};

#[test]
fn an_unchanged_sighting_is_reported_again_only_when_the_record_is_old() {
    let is = |seen, own: &Source| is_news(seen, Some(own), REFRESH);
    let up = on_record(FailureState::Up, 100);
    assert!(!is(sighting(FailureState::Up, 110), &up));
    assert!(is(sighting(FailureState::Up, 160), &up));
    assert!(is(sighting(FailureState::Unreachable, 101), &up));
    assert!(is(sighting(FailureState::Unknown, 101), &up));
    assert!(
        !is(sighting(FailureState::Unreachable, 99), &up),
        "the source has heard the host since"
    );
    let silent = on_record(FailureState::Unreachable, 100);
    assert!(!is(sighting(FailureState::Unreachable, 109), &silent));
    assert!(
        is(sighting(FailureState::Unreachable, 110), &silent),
        "silence counts only while it is watched"
    );
    let unknown = on_record(FailureState::Unknown, 100);
    assert!(!is(sighting(FailureState::Unknown, 900), &unknown));
}

#[test]
fn a_sign_of_life_is_always_reported() {
    let silent = on_record(FailureState::Unreachable, 100);
    assert!(is_news(sighting(FailureState::Up, 40), Some(&silent), REFRESH));
    assert!(!is_news(
        sighting(FailureState::Unknown, 40),
        Some(&silent),
        REFRESH
    ));
}

#[test]
fn the_first_sighting_of_a_source_is_reported_unless_it_is_unknown() {
    assert!(is_news(sighting(FailureState::Up, 0), None, REFRESH));
    assert!(is_news(sighting(FailureState::Unreachable, 0), None, REFRESH));
    assert!(!is_news(sighting(FailureState::Unknown, 0), None, REFRESH));
}
