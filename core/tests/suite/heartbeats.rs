//! What is concluded from heartbeats on a shared storage.

use chrono::TimeDelta;
use ringfence_core::*;
use ringfence_world::plans::start;

fn at(seconds: i64) -> Timestamp {
    start() + TimeDelta::seconds(seconds)
}

fn watch() -> HeartbeatWatch {
    HeartbeatWatch::new(TimeDelta::seconds(60), start())
}

fn written(writer: &str, mark: i64) -> Heartbeat {
    Heartbeat::Written {
        writer: writer.to_owned(),
        mark: mark.to_string(),
    }
}

fn heard(within_s: u32) -> Heartbeat {
    Heartbeat::Heard {
        by: "client.1".to_owned(),
        within_s,
    }
}

fn unclear() -> Heartbeat {
    Heartbeat::Unclear {
        why: "the storage did not answer".to_owned(),
    }
}

/// A reading that takes a second, of a host that was heard before.
fn take(watch: &mut HeartbeatWatch, worker: &str, heartbeat: &Heartbeat, asked_s: i64) -> Option<Sighting> {
    let reading = HeartbeatReading {
        heartbeat,
        worker,
        asked_at: at(asked_s),
        answered_at: at(asked_s + 1),
    };
    watch.take(reading, true)
}

fn said(sighting: Option<Sighting>) -> Option<(FailureState, i64)> {
    sighting.map(|sighting| (sighting.state, (sighting.observed_at - start()).num_seconds()))
}

#[test]
fn a_heartbeat_is_dated_to_the_reading_before_it() {
    let mut watch = watch();
    assert_eq!(said(take(&mut watch, "w1", &written("h1", 1), 0)), None);
    assert_eq!(said(take(&mut watch, "w1", &written("h1", 1), 5)), None);
    let sighting = take(&mut watch, "w1", &written("h1", 2), 10);
    assert_eq!(said(sighting), Some((FailureState::Up, 5)));
}

#[test]
fn the_first_reading_of_each_worker_is_no_heartbeat() {
    let mut watch = watch();
    let _ = take(&mut watch, "w1", &written("h1", 7), 0);
    // Another worker reads an old copy, and each of them its own again.
    assert_eq!(said(take(&mut watch, "w2", &written("h1", 3), 5)), None);
    assert_eq!(said(take(&mut watch, "w1", &written("h1", 7), 10)), None);
    assert_eq!(said(take(&mut watch, "w2", &written("h1", 3), 15)), None);
}

#[test]
fn another_writer_in_the_place_of_a_host_is_no_heartbeat_of_it() {
    let mut watch = watch();
    let _ = take(&mut watch, "w1", &written("h1", 1), 0);
    assert_eq!(said(take(&mut watch, "w1", &written("h2", 9), 5)), None);
}

#[test]
fn what_stands_still_is_silence_from_the_first_reading_of_it() {
    let mut watch = watch();
    let _ = take(&mut watch, "w1", &written("h1", 1), 0);
    let _ = take(&mut watch, "w1", &written("h1", 2), 5);
    let mut silent = None;
    for seconds in (10..=70).step_by(5) {
        silent = take(&mut watch, "w1", &written("h1", 2), seconds);
        assert_eq!(silent.is_some(), seconds >= 70, "{seconds}");
    }
    let silent = silent.unwrap();
    assert_eq!(said(Some(silent)), Some((FailureState::Unreachable, 70)));
    assert_eq!(
        (silent.last_seen_at, silent.silent_since),
        (Some(at(0)), Some(at(6)))
    );
}

#[test]
fn a_storage_that_cannot_be_read_is_never_silence() {
    let mut watch = watch();
    for seconds in (0..=50).step_by(5) {
        let _ = take(&mut watch, "w1", &written("h1", 1), seconds);
    }
    assert_eq!(said(take(&mut watch, "w1", &unclear(), 55)), None);
    // It counts anew from the next reading on.
    for seconds in (60..=115).step_by(5) {
        assert_eq!(
            said(take(&mut watch, "w1", &written("h1", 1), seconds)),
            None,
            "{seconds}"
        );
    }
    assert!(take(&mut watch, "w1", &written("h1", 1), 125).is_some());
    for seconds in (130..=150).step_by(5) {
        assert_eq!(said(take(&mut watch, "w1", &unclear(), seconds)), None);
    }
    let lost = take(&mut watch, "w1", &unclear(), 155);
    assert_eq!(said(lost), Some((FailureState::Unknown, 155)));
}

#[test]
fn a_gap_between_two_readings_counts_as_no_silence() {
    let mut watch = watch();
    let _ = take(&mut watch, "w1", &written("h1", 1), 0);
    assert_eq!(said(take(&mut watch, "w1", &written("h1", 1), 100)), None);
    assert_eq!(said(take(&mut watch, "w1", &written("h1", 1), 130)), None);
    assert!(take(&mut watch, "w1", &written("h1", 1), 160).is_none());
    assert!(take(&mut watch, "w1", &written("h1", 1), 161).is_some());
}

#[test]
fn what_a_host_left_behind_before_it_was_ever_heard_is_no_silence() {
    let mut watch = watch();
    for seconds in (0..=200).step_by(5) {
        let heartbeat = written("h1", 1);
        let reading = HeartbeatReading {
            heartbeat: &heartbeat,
            worker: "w1",
            asked_at: at(seconds),
            answered_at: at(seconds),
        };
        assert_eq!(watch.take(reading, false), None);
    }
}

#[test]
fn what_a_storage_has_heard_is_dated_as_long_ago_as_it_may_be_and_needs_no_reading_before() {
    let mut watch = watch();
    let sighting = take(&mut watch, "w1", &heard(40), 100);
    assert_eq!(said(sighting), Some((FailureState::Up, 60)));
    // Another worker is told of a moment before that.
    let sighting = take(&mut watch, "w2", &heard(50), 101);
    assert_eq!(said(sighting), Some((FailureState::Up, 51)));
    let mut silent = None;
    for seconds in (105..=170).step_by(5) {
        assert_eq!(silent, None);
        silent = take(&mut watch, "w1", &Heartbeat::Unheard, seconds);
    }
    // From the first reading in which it was not heard.
    let silent = silent.unwrap();
    assert_eq!(said(Some(silent)), Some((FailureState::Unreachable, 170)));
    assert_eq!(
        (silent.last_seen_at, silent.silent_since),
        (Some(at(60)), Some(at(106)))
    );
}

#[test]
fn a_host_that_a_storage_has_never_heard_is_not_silent() {
    let mut watch = watch();
    for seconds in (0..=200).step_by(5) {
        let reading = HeartbeatReading {
            heartbeat: &Heartbeat::Unheard,
            worker: "w1",
            asked_at: at(seconds),
            answered_at: at(seconds),
        };
        assert_eq!(watch.take(reading, false), None);
    }
}
