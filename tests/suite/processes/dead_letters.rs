//! An operator lists dead letters, and removes them.

use ringfence_bus::{Audience, Key, Keys, Queue};
use ringfence_core::{AttemptId, Claim, FencingKind, Generation, HostId, OperationId, Outcome, TaskResult};
use ringfence_tests::{Ground, Machine, Run, Site, set_up, start_engine};
use serde_json::{Value, json};
use uuid::Uuid;

fn forged() -> TaskResult {
    TaskResult {
        claim: Claim {
            host_id: HostId(Uuid::from_u128(7)),
            attempt: AttemptId {
                operation_id: OperationId(Uuid::from_u128(8)),
                number: 3,
            },
            generation: Generation(1),
            kind: FencingKind::PowerOff.into(),
            worker: "stranger".to_owned(),
            claim_id: Uuid::from_u128(9),
        },
        outcome: Outcome::Confirmed,
        observation: None,
        finding: None,
        detail: String::new(),
    }
}

/// Publishes results with the broker's password and a foreign signing key.
pub(super) async fn forge(site: &Site, count: u32) {
    let stranger = Keys::new(vec![Key::new("k1", &[9; 32]).unwrap()]).unwrap();
    let bus = site.bus("stranger").await;
    for _ in 0..count {
        let audience = Audience::Queue(Queue::Results);
        let message = stranger.seal(Uuid::new_v4(), &audience, &forged()).unwrap();
        ringfence_tests::eventually(async || bus.publish(&Queue::Results, &message).await.is_ok()).await;
    }
}

async fn list(machine: &Machine) -> Value {
    let run = machine.run(&["dead-letter", "list", "-o", "json"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    run.json()
}

#[track_caller]
fn says(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    for word in words {
        let said = if code == 0 { &run.out } else { &run.err };
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_results_are_found_among_the_dead_letters_and_removed() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, _) = set_up(&site).await;
    let none = machine.run(&["dead-letter", "list"]).await;
    says(&none, 0, &["there are no dead letters"]);

    let mut engine = start_engine(&machine, "engine-1");
    engine.until_says(&["the engine runs"]).await;
    forge(&site, 2).await;
    let queue = format!("{}.results", site.prefix);
    ringfence_tests::eventually(async || {
        list(&machine).await["queues"] == json!([{ "queue": queue, "count": 2 }])
    })
    .await;

    // Listing removes no dead letter.
    let listed = list(&machine).await;
    assert_eq!(listed["queues"], json!([{ "queue": queue, "count": 2 }]));
    let letter = &listed["dead_letters"][1];
    assert_eq!(letter["queue"], queue);
    assert_eq!(letter["type"], "result.v1");
    assert_eq!(letter["host"], Uuid::from_u128(7).to_string());
    assert_eq!(letter["attempt"], format!("{}/3", Uuid::from_u128(8)));
    assert_eq!(letter["reason"], "rejected");
    assert!(letter["died_at"].is_string(), "{letter}");
    let table = machine.run(&["dead-letter", "list", "--limit", "1"]).await;
    says(&table, 0, &["DEAD LETTERS", &queue, "result.v1", "rejected"]);
    assert_eq!(table.out.matches("rejected").count(), 1, "{table:?}");

    let purge = |words: &'static [&'static str]| machine.run(words);
    says(&purge(&["dead-letter", "purge"]).await, 2, &["--queue", "--all"]);
    let other = purge(&["dead-letter", "purge", "--queue", "elsewhere"]).await;
    says(&other, 0, &["0 dead letters of elsewhere were removed"]);
    let words = ["dead-letter", "purge", "--queue", &queue];
    let purged = machine.run(&words).await;
    says(&purged, 0, &[&format!("2 dead letters of {queue} were removed")]);
    says(
        &machine.run(&["dead-letter", "list"]).await,
        0,
        &["there are no dead letters"],
    );
    engine.stop().await;
}

#[tokio::test]
async fn without_a_broker_the_error_says_where_dead_letters_are() {
    let run = Machine::new().run(&["dead-letter", "list"]).await;
    says(&run, 2, &["bus.url", "standalone", "log"]);
    let away = Machine::new().set("RINGFENCE_BUS_URL", "amqp://guest:hush@127.0.0.1:1/%2F");
    let run = away.run(&["dead-letter", "list"]).await;
    says(&run, 1, &["127.0.0.1:1"]);
    assert!(!run.err.contains("hush"), "{run:?}");
}
