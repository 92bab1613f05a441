//! What an observer concludes.

use chrono::TimeDelta;
use ringfence_core::*;

use ringfence_world::plans::start;

fn at(seconds: i64) -> Timestamp {
    start() + TimeDelta::seconds(seconds)
}

/// The backend's clock is an hour ahead.
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
fn a_host_whose_signs_come_is_up_since_it_was_looked_at_before_the_last_one_came() {
    let mut watch = watch();
    // Whether it is a second old or nearly a minute, nobody knows.
    assert_eq!(
        state(&mut watch, &poll(0, vec![sign("c1", 0)]), 0),
        Some((FailureState::Up, -60))
    );
    assert_eq!(
        state(&mut watch, &poll(5, vec![sign("c1", 0)]), 5),
        Some((FailureState::Up, -60))
    );
    // It came after the look before. What somebody has seen since may be newer.
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
fn what_a_sign_says_after_a_long_silence_of_the_backend_is_told_by_the_backends_clock() {
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
    // Set back, it tells nothing that the look before does not.
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
fn an_observer_says_between_which_moments_a_silent_host_gave_its_last_sign() {
    let mut watch = watch();
    for now in [0, 5] {
        state(&mut watch, &poll(now, vec![sign("c1", now)]), now);
    }
    // It came after the look at 5 s, and was there at the one at 10 s.
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
fn a_host_that_the_backend_takes_for_down_is_unreachable_at_once() {
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
fn when_the_backend_itself_falls_silent_its_hosts_are_unknown_and_not_lost() {
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
fn a_backend_without_services_of_its_own_says_nothing() {
    let mut watch = watch();
    let nobody = Poll {
        own: None,
        ..poll(0, vec![sign("c1", 0)])
    };
    assert_eq!(state(&mut watch, &nobody, 0), Some((FailureState::Unknown, 0)));
}

#[test]
fn a_host_that_was_forced_down_is_up_when_its_signs_are_seen_to_come() {
    let mut watch = watch();
    let forced = |last| Sign {
        is_up: false,
        is_marked_down: true,
        ..sign("c1", last)
    };
    // The sign may be from before it died.
    assert_eq!(state(&mut watch, &poll(0, vec![forced(0)]), 0), None);
    assert_eq!(state(&mut watch, &poll(20, vec![forced(0)]), 20), None);
    assert_eq!(
        state(&mut watch, &poll(60, vec![forced(0)]), 60),
        Some((FailureState::Unreachable, 60))
    );
    // One could come from elsewhere: it is not enough to call the host UP, and enough to call it UNREACHABLE no more.
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
fn what_an_administrator_sets_is_no_sign_of_life() {
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
    // Its last sign is the one before anything was set: a fence that was proven in between holds. Silent for certain it is since then only.
    assert_eq!(
        (silent.last_seen_at, silent.silent_since),
        (Some(at(0)), Some(at(25)))
    );
}

/// How `c1` is after an answer of which nothing came.
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
fn a_host_that_the_backend_names_no_more_is_unknown_after_a_while_and_never_unreachable() {
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
    // Named again, the time counts anew.
    state(&mut watch, &poll(905, vec![sign("c1", 905)]), 905);
    assert_eq!(state(&mut watch, &without(910), 910), None);
}

#[test]
fn nothing_is_said_of_hosts_that_are_not_on_record() {
    let mut watch = watch();
    let found = watch.look(Some(&poll(0, vec![sign("c1", 0), sign("c2", 0)])), &["c1"], at(0));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["c1"]);
}

/// What a source has on record.
fn on_record(state: FailureState, observed: i64) -> Source {
    Source {
        state,
        observed_at: at(observed),
        reported_at: at(observed),
        late_ms: 0,
        alive_by: None,
        alive_at: None,
        alive_reported_at: None,
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
fn what_its_source_has_on_record_already_is_no_news_until_it_is_old() {
    let is = |seen, own: &Source| is_news(seen, Some(own), REFRESH);
    let up = on_record(FailureState::Up, 100);
    assert!(!is(sighting(FailureState::Up, 110), &up));
    assert!(is(sighting(FailureState::Up, 160), &up));
    assert!(is(sighting(FailureState::Unreachable, 101), &up));
    assert!(is(sighting(FailureState::Unknown, 101), &up));
    assert!(
        !is(sighting(FailureState::Unreachable, 99), &up),
        "it has heard the host since"
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
fn a_sign_of_life_is_news_however_old_it_is() {
    let silent = on_record(FailureState::Unreachable, 100);
    assert!(is_news(sighting(FailureState::Up, 40), Some(&silent), REFRESH));
    assert!(!is_news(
        sighting(FailureState::Unknown, 40),
        Some(&silent),
        REFRESH
    ));
}

#[test]
fn the_first_word_of_a_source_is_news_unless_it_says_that_nothing_is_known() {
    assert!(is_news(sighting(FailureState::Up, 0), None, REFRESH));
    assert!(is_news(sighting(FailureState::Unreachable, 0), None, REFRESH));
    assert!(!is_news(sighting(FailureState::Unknown, 0), None, REFRESH));
}
