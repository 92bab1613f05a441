//! The API dies after it has committed a change and before it has answered.

use std::time::Duration;

use ringfence_tests::{Client, Ground, Site, set_up, start_api};
use serde_json::json;

/// Makes the statement that stores an answer wait for ten minutes.
const WAIT: &str = "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$;
    CREATE TRIGGER wait BEFORE UPDATE OF answer ON idempotency_keys
        FOR EACH ROW WHEN (NEW.answer IS NOT NULL) EXECUTE FUNCTION wait()";
/// Ends the waiting connection, whose process is gone, and removes the trigger.
const WAIT_NO_MORE: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'UPDATE idempotency_keys%' AND wait_event = 'PgSleep';
    DROP TRIGGER wait ON idempotency_keys";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_to_an_api_killed_between_commit_and_answer_gets_the_committed_operation() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let mut api = start_api(&machine);
    let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
    client
        .post("/plans", json!({ "name": "by-hand", "stages": [] }))
        .await
        .ok(201);
    client.post("/hosts", json!({ "name": "h1" })).await.ok(201);
    client.seen("h1", "UNREACHABLE").await.ok(200);
    site.past(WAIT).await;

    let fence = json!({ "reason": "no heartbeat" });
    let request = client
        .request(reqwest::Method::POST, "/hosts/h1/fence")
        .header("Idempotency-Key", "fence-h1")
        .json(&fence);
    let asked = tokio::spawn(request.send());
    let host = client
        .until("/hosts/h1", |host| !host["operation"].is_null())
        .await;
    // The fence is committed, and the caller waits for the answer.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!asked.is_finished());
    api.kill();
    assert!(asked.await.unwrap().is_err(), "a killed API has answered");
    site.past(WAIT_NO_MORE).await;

    let mut api = start_api(&machine);
    let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
    let path = format!("/operations/{}", host["operation"]["id"].as_str().unwrap());
    // The operation has ended meanwhile: a second request without the key would begin another fence.
    client
        .post(&format!("{path}/cancel"), json!({ "reason": "test" }))
        .await
        .ok(200);
    let again = client.post_once("/hosts/h1/fence", "fence-h1", fence).await;
    assert_eq!(again.header("Idempotent-Replayed"), "true");
    assert_eq!(again.header("Location"), path);
    assert_eq!(again.ok(202)["id"], host["operation"]["id"]);
    let all = client.get("/operations?host=h1").await.ok(200);
    assert_eq!(all["operations"].as_array().unwrap().len(), 1);
    api.stop().await;
}
