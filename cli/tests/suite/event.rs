//! The stream of events.

use serde_json::{Value, json};

use crate::rig::Machine;
use crate::service::{Reply, Service};

fn event(number: u64) -> String {
    let event = json!({
        "sequence": number, "id": "e", "type": "host.fenced", "host": "c1", "host_id": "h", "generation": 1,
        "occurred_at": "2026-01-31T12:00:00Z", "data": {},
    });
    format!("id: {number}\nevent: host.fenced\ndata: {event}\n\n")
}

#[test]
fn a_broken_event_stream_is_resumed_after_its_last_event() {
    let service = Service::start(|number, _| match number {
        0 => Reply::stream(&format!(
            ": hello\n\n{}{}id: 9\ndata: {{\"half",
            event(7),
            event(8)
        )),
        1 => Reply::error(503, "fencing.database.unavailable", "away"),
        _ => Reply::stream(&event(9)),
    });
    let run = Machine::with(&service).run(&["event", "tail", "--after", "6", "--count", "3", "-o", "json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let numbers = run
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["sequence"].clone());
    assert_eq!(numbers.collect::<Vec<_>>(), [json!(7), json!(8), json!(9)]);
    let resumed: Vec<_> = service
        .asked()
        .iter()
        .map(|asked| asked.header("last-event-id").map(str::to_owned))
        .collect();
    assert_eq!(
        resumed,
        [Some("6".to_owned()), Some("8".to_owned()), Some("8".to_owned())]
    );
}

#[test]
fn events_of_a_host_are_printed_as_lines() {
    let service = Service::start(|_, _| Reply::stream(&event(7)));
    let run = Machine::with(&service).run(&["event", "tail", "--host", "c1", "--count", "1"]);
    assert_eq!(
        run.out,
        "     7  2026-01-31 12:00:00Z  host.fenced            c1  generation 1\n"
    );
    assert_eq!(service.lines(), ["GET /events/stream?host=c1"]);
}

#[test]
fn a_refused_event_stream_is_not_requested_again() {
    let service = Service::start(|_, _| Reply::error(404, "fencing.host.not_found", "there is no host c9"));
    assert_eq!(
        Machine::with(&service)
            .run(&["event", "tail", "--host", "c9"])
            .code,
        4
    );
    assert_eq!(service.lines().len(), 1);
}

fn listed(number: u64) -> Value {
    json!({
        "sequence": number, "id": "e", "type": "host.fenced", "host": "c1", "host_id": "h", "generation": 1,
        "occurred_at": "2026-01-31T12:00:00Z", "data": {},
    })
}

#[test]
fn the_newest_events_are_listed_in_the_order_in_which_they_happened() {
    let service = Service::start(|_, asked| {
        let is_newest = asked.line.contains("sort=sequence");
        let events = if is_newest {
            [listed(8), listed(7)]
        } else {
            [listed(7), listed(8)]
        };
        Reply::json(200, &json!({"events": events, "removed_up_to": 0, "links": []}))
    });
    let machine = Machine::with(&service);
    let newest = machine.run(&["event", "list", "--host", "c1", "--limit", "2"]);
    let expected = "\
NUMBER  AT                    TYPE         HOST  GENERATION  DATA
7       2026-01-31 12:00:00Z  host.fenced  c1    1
8       2026-01-31 12:00:00Z  host.fenced  c1    1
";
    assert_eq!(
        (newest.code, newest.out.as_str()),
        (0, expected),
        "{}",
        newest.err
    );
    assert_eq!(machine.run(&["event", "list", "--after", "6"]).out, expected);
    assert_eq!(
        service.lines(),
        [
            "GET /events?host=c1&limit=2&sort=sequence%3Adesc",
            "GET /events?after=6&limit=50"
        ]
    );
}
