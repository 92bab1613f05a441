//! Old records are removed, and a listener that missed removed events gets 410.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ringfence_engine::{ClockSource, Exposition, RetentionConfig};
use ringfence_tests::{Ground, Numbers, Site, Stack, StackOptions, eventually, power_plan};
use serde_json::{Value, json};

use crate::subscriptions::event_sinks::exchange_at;

/// The address of a broker that does not run.
const NO_BROKER: &str = "amqp://guest:guest@127.0.0.1:9/%2f";

crate::on_both_grounds!(
    old_records_are_archived_and_removed_and_a_fenced_host_keeps_its_proofs,
    a_listener_that_missed_removed_events_gets_410,
    records_that_cannot_be_archived_are_not_removed,
    an_event_sink_that_is_turned_off_keeps_events_for_a_week_and_then_starts_at_the_newest,
);

fn start() -> DateTime<Utc> {
    DateTime::parse_from_rfc3339("2026-01-31T12:00:00Z")
        .unwrap()
        .to_utc()
}

/// Records are kept for a day, and old ones are removed all the time.
fn retention() -> RetentionConfig {
    let day = Some(TimeDelta::days(1));
    RetentionConfig {
        events: day,
        operations: day,
        audit: day,
        deliveries: day,
        event_sinks: Some(TimeDelta::days(7)),
        archive_dir: None,
        look_every: Duration::from_millis(100),
        at_once: 3,
    }
}

async fn stack(site: Site, retention: RetentionConfig) -> Stack {
    let options = StackOptions {
        clock: ClockSource::Manual(start()),
        engines: 2,
        retention,
        ..StackOptions::default()
    };
    Stack::start_with(site, options).await
}

fn advance(stack: &Stack, by: TimeDelta) {
    stack.api.clock().advance(by);
    for (engine, _) in &stack.engines {
        engine.clock().advance(by);
    }
}

async fn seen(stack: &Stack, state: &str) {
    let body = json!({ "failure_state": state, "source": "test", "observed_at": stack.api.clock().now() });
    stack.client.put("/hosts/h1/failure-state", body).await.ok(200);
}

async fn fenced(stack: &Stack) -> Value {
    stack.plan(power_plan()).await;
    stack
        .simulators
        .set_condition("h1", ringfence_simulators::Condition::Hung)
        .unwrap();
    seen(stack, "UNREACHABLE").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await
}

/// All events, once the operation's end is among them: events get their numbers shortly after their commit.
async fn events(stack: &Stack) -> Value {
    let is_last = |list: &Value| {
        let events = list["events"].as_array().unwrap();
        events
            .last()
            .is_some_and(|event| event["type"] == "operation.succeeded")
    };
    stack.client.until("/events?limit=1000", is_last).await
}

/// The archived records of one kind.
fn archived(dir: &std::path::Path, kind: &str) -> Vec<Value> {
    let Ok(files) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let paths = files.map(|file| file.unwrap().path());
    let mine = paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(kind));
    let text: String = mine.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn old_records_are_archived_and_removed_and_a_fenced_host_keeps_its_proofs(ground: Ground) {
    let site = Site::new(ground).await;
    let dir = site.dir.path().join("archive");
    let retention = RetentionConfig {
        archive_dir: Some(dir.clone()),
        ..retention()
    };
    let stack = stack(site, retention).await;
    let operation = fenced(&stack).await;
    let before = events(&stack).await;
    let told = before["events"].as_array().unwrap().len();
    assert!(told > 4 && before["removed_up_to"] == 0, "{before}");
    let host = stack.client.host("h1").await;

    advance(&stack, TimeDelta::days(30));
    let gone = stack
        .client
        .until("/audit", |list| list["audit"].as_array().unwrap().is_empty())
        .await;
    assert_eq!(gone["audit"], json!([]));
    let after = stack
        .client
        .until("/events", |list| {
            list["removed_up_to"].as_u64() >= Some(told as u64 - 1)
        })
        .await;
    // The newest event stays; the host is still FENCED, with its proofs and their operation.
    assert_eq!(after["events"].as_array().unwrap().len(), 1, "{after}");
    assert_eq!(stack.client.host("h1").await, host);
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], true);
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    assert_eq!(stack.client.get(&path).await.ok(200)["status"], "succeeded");

    let gone = archived(&dir, "events-2026-03-02");
    assert_eq!(gone.len(), told - 1);
    assert_eq!(gone[0]["type"], before["events"][0]["type"]);
    let audit = archived(&dir, "audit");
    assert!(
        audit.iter().any(|line| line["action"] == "operation.started"),
        "{audit:?}"
    );
    assert!(archived(&dir, "operations").is_empty());
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(dir.join("events-2026-03-02.jsonl"))
            .unwrap()
            .permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);

    // New events continue the numbers.
    seen(&stack, "UP").await;
    let next = stack
        .client
        .until(&format!("/events?after={told}"), |list| {
            list["events"][0].is_object()
        })
        .await;
    assert_eq!(next["events"][0]["sequence"], told as u64 + 1);
    stack.stop().await;
}

async fn a_listener_that_missed_removed_events_gets_410(ground: Ground) {
    let stack = stack(Site::new(ground).await, retention()).await;
    fenced(&stack).await;
    let last = events(&stack).await["events"].as_array().unwrap().len();
    advance(&stack, TimeDelta::days(2));
    eventually(async || stack.client.get("/events").await.ok(200)["removed_up_to"] == last as u64 - 1).await;
    for path in [
        "/events?after=1",
        "/events?after=0",
        "/events/stream?after=1",
        "/events?after=1&host=h1",
    ] {
        let answer = stack.client.get(path).await;
        assert_eq!(
            (answer.status, answer.code()),
            (410, "fencing.events.gone"),
            "{path}"
        );
        assert!(
            answer.details().contains(&format!("go on after {}", last - 1)),
            "{}",
            answer.details()
        );
    }
    let list = stack
        .client
        .get(&format!("/events?after={}", last - 1))
        .await
        .ok(200);
    assert_eq!(list["events"].as_array().unwrap().len(), 1);
    // A list without `after` begins at the oldest event that is left, and has pages.
    let list = stack.client.get("/events?limit=1").await.ok(200);
    let next = list["links"][0]["href"].as_str().unwrap();
    assert_eq!(stack.client.get(next).await.ok(200)["events"], json!([]));
    // A subscription cannot begin at a removed event.
    let body = json!({ "name": "late", "url": "http://127.0.0.1:9/", "after": 1 });
    let refused = stack.client.post("/subscriptions", body).await;
    assert_eq!((refused.status, refused.code()), (400, "fencing.request.invalid"));
    assert!(
        refused.details().contains("have been removed"),
        "{}",
        refused.details()
    );
    stack.stop().await;
}

async fn records_that_cannot_be_archived_are_not_removed(ground: Ground) {
    let site = Site::new(ground).await;
    let blocked = site.dir.path().join("archive");
    std::fs::write(&blocked, "not a directory").unwrap();
    let retention = RetentionConfig {
        archive_dir: Some(blocked.clone()),
        ..retention()
    };
    let stack = stack(site, retention).await;
    fenced(&stack).await;
    let before = events(&stack).await;
    let audit = stack.client.get("/audit?limit=1000").await.ok(200);
    advance(&stack, TimeDelta::days(2));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stack.client.get("/events?limit=1000").await.ok(200), before);
    assert_eq!(stack.client.get("/audit?limit=1000").await.ok(200), audit);
    assert_eq!(age(&stack, "events").await, TimeDelta::days(2).as_seconds_f64());
    // No delivery is old, so that nothing must be archived.
    eventually(async || age(&stack, "deliveries").await == 0.0).await;
    std::fs::remove_file(&blocked).unwrap();
    eventually(async || stack.client.get("/events").await.ok(200)["removed_up_to"] != 0).await;
    eventually(async || age(&stack, "events").await == 0.0).await;
    stack.stop().await;
}

/// Seconds since an engine last removed every old record of this kind.
async fn age(stack: &Stack, what: &str) -> f64 {
    let label = format!("what=\"{what}\"");
    let mut smallest = f64::INFINITY;
    for (engine, _) in &stack.engines {
        let text = Exposition::new(Some(engine.clone())).text().await.unwrap();
        let numbers = Numbers::new(text);
        assert!(numbers.has("ringfence_retention_age_seconds"));
        smallest = smallest.min(numbers.sum("ringfence_retention_age_seconds", &[&label]));
    }
    smallest
}

async fn event_sinks(stack: &Stack) -> Vec<(String, u64)> {
    ringfence_db::list_event_sinks(&mut stack.api.db().reader())
        .await
        .unwrap()
}

/// Makes the first engine publish events to a broker.
fn tell(stack: &mut Stack, url: &str) {
    let (engine, running) = &mut stack.engines[0];
    let event_sink = exchange_at(url, format!("{}.old.events", stack.site.prefix));
    running.as_mut().unwrap().tell(engine, event_sink);
}

async fn removed_up_to(stack: &Stack) -> u64 {
    let list = stack.client.get("/events").await.ok(200);
    list["removed_up_to"].as_u64().unwrap()
}

async fn happens(stack: &Stack) {
    for state in ["UP", "UNREACHABLE", "UP"] {
        seen(stack, state).await;
    }
}

/// Advances the clock by some days, and waits until old records are removed.
async fn days_pass(stack: &Stack, days: i64) {
    stack
        .client
        .patch("/hosts/h1", json!({ "type": format!("t{days}") }))
        .await
        .ok(200);
    advance(stack, TimeDelta::days(days));
    // Audit lines are removed after events.
    let is_empty = |list: &Value| list["audit"].as_array().unwrap().is_empty();
    stack.client.until("/audit", is_empty).await;
}

async fn an_event_sink_that_is_turned_off_keeps_events_for_a_week_and_then_starts_at_the_newest(
    ground: Ground,
) {
    let mut stack = stack(Site::new(ground).await, retention()).await;
    tell(&mut stack, NO_BROKER);
    eventually(async || !event_sinks(&stack).await.is_empty()).await;
    let told = event_sinks(&stack).await[0].1;
    happens(&stack).await;
    days_pass(&stack, 3).await;
    assert!(
        removed_up_to(&stack).await <= told,
        "events are removed that the event sink still has to publish"
    );
    // The engine of the event sink stops; another engine removes old records.
    let (_, running) = stack.engines.remove(0);
    running.unwrap().stop().await;
    days_pass(&stack, 5).await;
    assert_eq!(
        (
            removed_up_to(&stack).await <= told,
            event_sinks(&stack).await.len()
        ),
        (true, 1)
    );
    days_pass(&stack, 3).await;
    eventually(async || removed_up_to(&stack).await > told).await;
    assert!(event_sinks(&stack).await.is_empty());
    // The event sink is turned on again.
    tell(&mut stack, NO_BROKER);
    eventually(async || !event_sinks(&stack).await.is_empty()).await;
    let last = ringfence_db::last_sequence(&mut stack.api.db().reader())
        .await
        .unwrap();
    assert_eq!(event_sinks(&stack).await[0].1, last);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_sink_continues_after_events_that_were_removed_before_it_published_them() {
    let mut stack = stack(Site::new(Ground::Distributed).await, retention()).await;
    happens(&stack).await;
    days_pass(&stack, 3).await;
    eventually(async || removed_up_to(&stack).await > 0).await;
    let now = stack.api.clock().now();
    ringfence_db::insert_event_sink(&mut stack.api.db().reader(), "exchange", 0, now)
        .await
        .unwrap();
    let url = stack.site.amqp_url.clone().unwrap();
    tell(&mut stack, &url);
    let last = ringfence_db::last_sequence(&mut stack.api.db().reader())
        .await
        .unwrap();
    eventually(async || event_sinks(&stack).await[0].1 == last).await;
    stack.stop().await;
}
