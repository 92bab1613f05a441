//! The metrics follow the state of hosts, operations and messages.

mod behind;
pub mod rules;

use ringfence_api::Role;
use ringfence_bus::{Audience, ClaimReply, Key, Keys, Queue};
use ringfence_core::Resource;
use ringfence_engine::Exposition;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Ground, Numbers, Site, Stack, StackOptions, eventually, keys, power_plan};
use serde_json::json;
use uuid::Uuid;

use crate::api::refused;

crate::on_both_grounds!(
    a_fence_and_a_rejoin_change_the_metrics,
    a_fence_without_a_worker_is_counted_as_waiting,
    an_operation_that_needs_an_operator_is_counted,
    a_worker_that_falls_silent_is_counted,
    messages_with_bad_signatures_are_counted_and_found_among_the_dead_letters,
    metrics_need_a_reader_unless_they_are_public,
    listeners_and_requests_are_counted,
);

/// All metrics except the API's: those of a process with an engine and a worker.
pub async fn numbers_of(stack: &Stack) -> Numbers {
    let mut exposition = Exposition::new(Some(stack.engines[0].0.clone()));
    if let Some(worker) = stack.workers.first() {
        worker.register_metrics(exposition.registry());
    }
    Numbers::new(exposition.text().await.unwrap())
}

/// Waits for a metric of the API's process.
async fn until(stack: &Stack, is_so: impl Fn(&Numbers) -> bool) -> Numbers {
    eventually(async || is_so(&Numbers::of(&stack.client).await)).await;
    Numbers::of(&stack.client).await
}

/// Publishes a message that is signed with a key of the forger's own.
async fn forge(stack: &Stack, queue: Queue) {
    let forger = Keys::new(vec![Key::new("test", &[8; 32]).unwrap()]).unwrap();
    let bus = stack.site.bus("forger").await;
    let payload = ClaimReply::Busy { retry_after_ms: 1 };
    let audience = Audience::Queue(queue.clone());
    let message = forger.seal(Uuid::new_v4(), &audience, &payload).unwrap();
    eventually(async || bus.publish(&queue, &message).await.is_ok()).await;
}

const OFF: [&str; 3] = [
    "driver=\"simulated\"",
    "task=\"power.off\"",
    "outcome=\"confirmed\"",
];

async fn a_fence_and_a_rejoin_change_the_metrics(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.client.seen("h1", "UP").await.ok(200);
    let before = numbers_of(&stack).await;
    assert_eq!(before.sum("ringfence_attempts_total", &OFF), 0.0);
    assert!(before.has("ringfence_build_info"));
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    // A reading that is too close to the last sign of life is repeated with another attempt.
    let attempts = operation["stages"][0]["tasks"][0]["attempts"].as_array().unwrap();
    let attempts = f64::from(u32::try_from(attempts.len()).unwrap());

    let api = until(&stack, |numbers| {
        let labels = ["failure_state=\"UNREACHABLE\"", "fencing_state=\"FENCED\""];
        numbers.sum("ringfence_hosts", &labels) == 1.0
    })
    .await;
    assert_eq!(api.sum("ringfence_hosts", &[]), 1.0);
    assert_eq!(api.sum("ringfence_live_operations", &[]), 0.0);
    assert!(api.has("ringfence_live_operations"));
    assert_eq!(api.sum("ringfence_oldest_unproven_fence_age_seconds", &[]), 0.0);
    let started = ["input=\"fence\"", "outcome=\"started\""];
    assert_eq!(api.sum("ringfence_decisions_total", &started), 1.0);
    assert_eq!(
        api.sum(
            "ringfence_failure_state_duration_seconds_count",
            &["state=\"UP\""]
        ),
        1.0
    );

    // The engine's process took the claims and results, and counts them; the API's process has counted none.
    let engine = numbers_of(&stack).await;
    assert_eq!(engine.sum("ringfence_attempts_total", &OFF), attempts);
    assert_eq!(api.sum("ringfence_attempts_total", &[]), 0.0);
    assert_eq!(
        engine.sum("ringfence_attempt_duration_seconds_count", &OFF[..2]),
        attempts
    );
    let granted = ["question=\"claim\"", "answer=\"granted\""];
    assert_eq!(engine.sum("ringfence_claims_total", &granted), attempts);
    assert_eq!(
        engine.sum("ringfence_proof_latency_seconds_count", &["kind=\"power.off\""]),
        1.0
    );
    assert_eq!(engine.sum("ringfence_fence_duration_seconds_count", &[]), 1.0);
    let fence = ["kind=\"fence\"", "status=\"succeeded\""];
    assert_eq!(
        engine.sum("ringfence_operation_duration_seconds_count", &fence),
        1.0
    );
    assert_eq!(
        engine.sum("ringfence_decision_duration_seconds_count", &["input=\"result\""]),
        attempts
    );
    assert_eq!(
        engine.sum("ringfence_worker_attempts_total", &["outcome=\"confirmed\""]),
        attempts
    );

    let asked = stack.client.post("/hosts/h1/rejoin", json!({ "reason": "test" }));
    let rejoin = asked.await.ok(202);
    eventually(async || {
        stack.observe().await;
        let path = format!("/operations/{}", rejoin["id"].as_str().unwrap());
        stack.client.get(&path).await.ok(200)["status"] == "succeeded"
    })
    .await;
    let (api, engine) = (Numbers::of(&stack.client).await, numbers_of(&stack).await);
    let both = |name: &str, labels: &[&str]| api.sum(name, labels) + engine.sum(name, labels);
    let rejoined = ["kind=\"rejoin\"", "status=\"succeeded\""];
    assert_eq!(both("ringfence_operation_duration_seconds_count", &rejoined), 1.0);
    let fenced = ["state=\"FENCED\""];
    assert_eq!(
        both("ringfence_fencing_state_duration_seconds_count", &fenced),
        1.0
    );
    assert_eq!(both("ringfence_fence_duration_seconds_count", &[]), 1.0);
    stack.stop().await;
}

async fn a_fence_without_a_worker_is_counted_as_waiting(ground: Ground) {
    let stack = Stack::start_without_workers(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    stack.client.fence("h1").await;
    let numbers = until(&stack, |numbers| {
        numbers.sum("ringfence_outbox_oldest_age_seconds", &[]) > 0.0
    })
    .await;
    assert!(numbers.sum("ringfence_oldest_unproven_fence_age_seconds", &[]) > 2.0);
    assert_eq!(numbers.sum("ringfence_outbox_messages", &[]), 1.0);
    let running = ["kind=\"fence\"", "status=\"running\""];
    assert_eq!(numbers.sum("ringfence_live_operations", &running), 1.0);
    assert_eq!(numbers.sum("ringfence_database_up", &[]), 1.0);
    stack.stop().await;
}

async fn an_operation_that_needs_an_operator_is_counted(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack
        .method_on("power", Resource::Power, "not-there-${host.name}")
        .await;
    let plan = json!({ "name": "default", "stages": power_plan() });
    stack.client.post("/plans", plan).await.ok(201);
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await;
    let numbers = until(&stack, |numbers| {
        let waits = ["kind=\"fence\"", "status=\"needs_operator\""];
        numbers.sum("ringfence_live_operations", &waits) == 1.0
    })
    .await;
    // The operation's fence still counts as unproven.
    assert!(numbers.sum("ringfence_oldest_unproven_fence_age_seconds", &[]) > 0.0);
    let engine = numbers_of(&stack).await;
    let refused = ["task=\"power.off\"", "outcome=\"refused\""];
    assert!(engine.sum("ringfence_attempts_total", &refused) >= 1.0);
    stack.stop().await;
}

async fn a_worker_that_falls_silent_is_counted(ground: Ground) {
    let mut stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let silent = Some(Fault::forever(FaultKind::Silent));
    stack.set_fault("h1", Resource::Power, silent);
    stack.hang("h1").await;
    stack.client.fence("h1").await;
    stack
        .client
        .until("/operations?host=h1", |list| {
            list["operations"][0]["stages"][0]["tasks"][0]["attempts"][0]["claimed_at"].is_string()
        })
        .await;
    assert_eq!(numbers_of(&stack).await.sum("ringfence_worker_acting", &[]), 1.0);
    stack.workers.remove(0).abandon();
    eventually(async || {
        numbers_of(&stack)
            .await
            .sum("ringfence_lease_expiries_total", &[])
            == 1.0
    })
    .await;
    stack.stop().await;
}

async fn messages_with_bad_signatures_are_counted_and_found_among_the_dead_letters(ground: Ground) {
    let stack = Stack::start(ground).await;
    let bad = ["reason=\"bad_signature\""];
    let numbers = numbers_of(&stack).await;
    for name in [
        "ringfence_engine_refused_messages_total",
        "ringfence_worker_refused_messages_total",
    ] {
        assert!(numbers.has(name));
        assert_eq!(numbers.sum(name, &bad), 0.0);
    }
    let tasks = Queue::Tasks {
        resource: Resource::Power,
        zone: "default".to_owned(),
    };
    for queue in [Queue::Results, tasks] {
        forge(&stack, queue).await;
    }
    eventually(async || {
        let numbers = numbers_of(&stack).await;
        numbers.sum("ringfence_engine_refused_messages_total", &bad) == 1.0
            && numbers.sum("ringfence_worker_refused_messages_total", &bad) == 1.0
    })
    .await;
    // A signed message of the wrong kind is counted under another reason.
    let bus = stack.site.bus("confused").await;
    let message = keys()
        .seal(
            Uuid::new_v4(),
            &Audience::Queue(Queue::Results),
            &ClaimReply::Busy { retry_after_ms: 1 },
        )
        .unwrap();
    bus.publish(&Queue::Results, &message).await.unwrap();
    eventually(async || {
        let unreadable = ["reason=\"unreadable\""];
        numbers_of(&stack)
            .await
            .sum("ringfence_engine_refused_messages_total", &unreadable)
            == 1.0
    })
    .await;
    let results = if ground == Ground::Distributed {
        format!("queue=\"{}.results\"", stack.site.prefix)
    } else {
        "queue=\"ringfence.results\"".to_owned()
    };
    until(&stack, |numbers| {
        numbers.sum("ringfence_dead_letters", &[&results]) == 2.0
            && numbers.sum("ringfence_dead_letters", &[]) == 3.0
    })
    .await;
    stack.stop().await;
}

async fn metrics_need_a_reader_unless_they_are_public(ground: Ground) {
    let stack = Stack::start(ground).await;
    let without_token = stack.client.with_token(None);
    refused(
        &without_token.get("/metrics").await,
        401,
        "fencing.unauthorized",
        &["X-Auth-Token"],
    );
    let answer = stack.as_role(Role::Reader).get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .header("content-type")
            .starts_with("application/openmetrics-text")
    );
    stack.stop().await;
    let options = StackOptions {
        are_metrics_public: true,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    Numbers::of(&stack.client.with_token(None)).await;
    stack.stop().await;
}

async fn listeners_and_requests_are_counted(ground: Ground) {
    let stack = Stack::start(ground).await;
    let stream = stack
        .client
        .request(reqwest::Method::GET, "/events/stream")
        .send()
        .await
        .unwrap();
    until(&stack, |numbers| {
        numbers.sum("ringfence_event_listeners", &[]) == 1.0
    })
    .await;
    drop(stream);
    stack.client.get("/hosts/h1").await.ok(200);
    stack.client.get("/hosts/unknown").await.ok(404);
    stack.client.get("/no/such/path").await.ok(404);
    let word = reqwest::Method::from_bytes(b"BREW").unwrap();
    stack
        .client
        .send(stack.client.request(word, "/hosts/h1"))
        .await
        .ok(405);
    let numbers = until(&stack, |numbers| {
        numbers.has("ringfence_event_feed_lag_events")
            && numbers.sum("ringfence_event_feed_lag_events", &[]) == 0.0
    })
    .await;
    let host = "path=\"/hosts/{id}\"";
    let requests = |method: &str, path: &str, class: &str| {
        numbers.sum("ringfence_api_requests_total", &[method, path, class])
    };
    let get = "method=\"GET\"";
    assert_eq!(requests(get, host, "status=\"2xx\""), 1.0);
    assert_eq!(requests(get, host, "status=\"4xx\""), 1.0);
    assert_eq!(requests(get, "path=\"(none)\"", "status=\"4xx\""), 1.0);
    assert_eq!(requests("method=\"other\"", host, "status=\"4xx\""), 1.0);
    let took = numbers.sum("ringfence_api_request_duration_seconds_count", &[get, host]);
    assert_eq!(took, 2.0);
    stack.stop().await;
}
