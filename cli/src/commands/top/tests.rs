//! Pictures of the screen.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ringfence_core::Timestamp;
use serde_json::{Value, from_value, json};

use super::feed::{Reading, Wanted};
use super::model::Site;
use super::state::{Shown, State};
use super::{draw, text};
use crate::client::view::Operation;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn fence(host: &str, status: &str) -> Operation {
    let attempt = json!({
        "number": 1, "method": "bmc", "worker": "worker-1", "status": "ended", "outcome": "unknown",
        "observation": { "state": "unknown" }, "detail": "no answer within 5 s",
    });
    let power = json!({ "kind": "power.off", "status": "failed", "detail": "every level failed", "attempts": [attempt] });
    let storage = json!({ "kind": "storage.fence", "status": "confirmed" });
    from_value(json!({
        "id": format!("fence-of-{host}"), "host_id": "h", "host": host, "kind": "fence", "status": status,
        "detail": "no sufficient set was completed", "generation": 1, "reason": "silent", "requested_by": "ringfence",
        "stages": [{ "tasks": [power] }, { "tasks": [storage] }], "created_at": at(0),
    }))
    .unwrap()
}

fn site() -> Site {
    let host = |name: &str, failure: &str, fencing: &str, more: Value| {
        let mut host = json!({ "name": name, "failure_state": failure, "fencing_state": fencing });
        host.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        host
    };
    let live = |status: &str| json!({ "operation": { "id": "o", "kind": "fence", "status": status } });
    let rack = json!({
        "name": "rack-1", "is_automatic": false, "is_suspended": false,
        "hosts": [
            host("n1", "UP", "UNFENCED", json!({})),
            host("n2", "UNREACHABLE", "UNFENCED", json!({})),
            host("n3", "UNREACHABLE", "FENCED", json!({})),
            host("n4", "UP", "FENCED", json!({})),
            host("n5", "UNREACHABLE", "UNFENCED", live("needs_operator")),
            host("n6", "UNREACHABLE", "UNFENCED", live("running")),
        ],
    });
    let quiet = json!({
        "name": "rack-2", "is_suspended": true,
        "hosts": [host("m1", "UNREACHABLE", "UNFENCED", json!({}))],
    });
    Site {
        overview: from_value(json!({ "segments": [rack, quiet] })).unwrap(),
        waiting: vec![fence("n5", "needs_operator")],
        running: vec![fence("n6", "running")],
        held: Vec::new(),
    }
}

fn picture(state: &mut State) -> String {
    let mut terminal = Terminal::new(TestBackend::new(90, 30)).unwrap();
    terminal.draw(|frame| draw::draw(frame, state, at(65))).unwrap();
    text(terminal.backend())
}

#[test]
fn what_needs_a_person_stands_first_and_every_host_has_a_sign() {
    let mut state = State::new(Wanted::Overview);
    state.take(Reading::Site(Box::new(site()))).unwrap();
    let expected = "\
3 things need you. 1 of 7 hosts are UP and UNFENCED
NEEDS A PERSON
> n5: its fence waits for you
    no sufficient set was completed
    mend the device and retry; or see by hand that it is off, and confirm it
  n2: UNREACHABLE, and no fence begins by itself
    look whether it is dead; if so, fence it
  n4: FENCED, and UP again
    look why it was fenced; if that is mended, rejoin it

UNDER WAY
  n6                       fence      1/2   65 s  no sufficient set was completed

HOSTS   . UP   ? UNKNOWN   ! UNREACHABLE   F FENCED   * operation   n needs a person
rack-1 (6)
  .!FFn*
rack-2 (1)  suspended
  !
";
    let shown = picture(&mut state);
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.trim_end().ends_with("q quit"), "{shown}");
}

#[test]
fn the_chosen_operation_is_opened_and_closed() {
    let mut state = State::new(Wanted::Overview);
    assert_eq!(state.open(), None);
    state.take(Reading::Site(Box::new(site()))).unwrap();
    let opened = state.open();
    assert_eq!(opened, Some(Wanted::Operation("fence-of-n5".to_owned())));
    // One that was read before is not shown in its place.
    state
        .take(Reading::Operation(Box::new(fence("n6", "running"))))
        .unwrap();
    assert!(picture(&mut state).contains("reading"));
    let read = fence("n5", "needs_operator");
    state.take(Reading::Operation(Box::new(read))).unwrap();
    let shown = picture(&mut state);
    for part in [
        "fence of n5: needs_operator   generation 1   65 s",
        "  power.off failed  every level failed",
        "    attempt 1 bmc by worker-1: unknown, seen unknown: no answer within 5 s",
        "  storage.fence confirmed",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert_eq!(state.close(), Some(Wanted::Overview));
    assert_eq!(state.shown(), Shown::Overview);
    state.step(isize::MAX);
    picture(&mut state);
    assert_eq!(state.chosen, 3);
    assert_eq!(state.open(), Some(Wanted::Operation("fence-of-n6".to_owned())));
}
