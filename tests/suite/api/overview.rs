//! All hosts at once.

use ringfence_tests::{Ground, Stack, power_plan};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(an_overview_shows_every_host_and_where_the_stream_goes_on,);

async fn an_overview_shows_every_host_and_where_the_stream_goes_on(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    client
        .post("/segments", json!({ "name": "rack-2" }))
        .await
        .ok(201);
    client
        .post("/hosts", json!({ "name": "h0", "segment": "rack-2" }))
        .await
        .ok(201);
    let before = client.get("/overview").await.ok(200);
    let of = |overview: &Value, segment: &str| {
        let segments = overview["segments"].as_array().unwrap();
        let found = segments.iter().find(|one| one["name"] == segment);
        found.unwrap()["hosts"].as_array().unwrap().clone()
    };
    let [h0] = &of(&before, "rack-2")[..] else {
        panic!("{before}");
    };
    assert_eq!(
        *h0,
        json!({ "name": "h0", "failure_state": "UNKNOWN", "failure_since": h0["failure_since"], "fencing_state": "UNFENCED" })
    );

    client.seen("h1", "UNREACHABLE").await.ok(200);
    client.fence("h1").await;
    client.until_fenced("h1").await;
    let suspension = json!({ "for_s": 60, "reason": "x" });
    client
        .put("/hosts/h0/suspension", suspension.clone())
        .await
        .ok(200);
    client
        .put("/segments/rack-2/suspension", suspension)
        .await
        .ok(200);
    let after = client.get("/overview").await.ok(200);
    let h1 = after["segments"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["hosts"].as_array().unwrap());
    let h1 = h1.clone().find(|host| host["name"] == "h1").unwrap();
    assert_eq!(
        (&h1["failure_state"], &h1["fencing_state"]),
        (&json!("UNREACHABLE"), &json!("FENCED"))
    );
    assert_eq!(of(&after, "rack-2")[0]["marks"], json!(["suspended"]));
    let is_suspended = |one: &&Value| one["is_suspended"] == true;
    let suspended: Vec<&Value> = after["segments"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_suspended)
        .collect();
    assert_eq!(suspended.len(), 1, "{after}");
    assert_eq!(suspended[0]["name"], "rack-2");

    let path = format!("/events?after={}", before["sequence"]);
    let events = client.get(&path).await.ok(200);
    let kinds = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].clone());
    assert!(kinds.clone().any(|kind| kind == "host.fenced"), "{events}");
    refused(
        &client.with_token(None).get("/overview").await,
        401,
        "fencing.unauthorized",
        &["X-Auth-Token"],
    );
    stack.stop().await;
}
