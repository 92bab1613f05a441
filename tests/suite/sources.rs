//! The sources of a host's failure state, each by itself and together.

use ringfence_api::Role;
use ringfence_tests::{Answer, Ground, Stack, now, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_host_shows_the_report_of_each_source_and_a_source_can_be_removed,
    a_host_has_a_bounded_number_of_sources,
    the_identity_of_a_fenced_host_cannot_be_changed,
);

const PROBER: &str = "prober/rack 1";
/// `PROBER`, escaped for a path.
const PROBER_IN_A_PATH: &str = "prober%2Frack%201";

async fn seen_by(stack: &Stack, source: &str, state: &str) -> Answer {
    let body = json!({ "failure_state": state, "source": source, "observed_at": now() });
    stack.client.put("/hosts/h1/failure-state", body).await
}

fn states(host: &Value) -> Vec<(&str, &str)> {
    let sources = host["sources"].as_array().unwrap().iter();
    sources
        .map(|source| {
            (
                source["name"].as_str().unwrap(),
                source["state"].as_str().unwrap(),
            )
        })
        .collect()
}

async fn a_host_shows_the_report_of_each_source_and_a_source_can_be_removed(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    client.seen_with_boot("h1", "UP", Some("boot-1")).await.ok(200);
    let host = seen_by(&stack, PROBER, "UNREACHABLE").await.ok(200);
    assert_eq!(host["failure_state"], "UNREACHABLE");
    assert_eq!(host["failure_source"], PROBER);
    assert_eq!(states(&host), [(PROBER, "UNREACHABLE"), ("test", "UP")]);
    let heard = &host["sources"][1];
    assert_eq!(heard["boot_id"], "boot-1");
    assert_eq!(heard["alive_at"], heard["observed_at"]);
    assert_eq!(host["sources"][0]["alive_at"], Value::Null);

    // A source that heard the host later than another missed it prevails.
    client.seen("h1", "UP").await.ok(200);
    assert_eq!(client.host("h1").await["failure_state"], "UP");

    let path = format!("/hosts/h1/sources/{PROBER_IN_A_PATH}");
    let reader = stack.as_role(Role::Reader);
    reader.delete_because(&path, "it was taken down").await.ok(403);
    assert_eq!(
        client.delete(&path).await.status,
        415,
        "the request needs a reason"
    );
    let host = client.delete_because(&path, "it was taken down").await.ok(200);
    assert_eq!(states(&host), [("test", "UP")]);
    let again = client.delete_because(&path, "it was taken down").await;
    assert_eq!((again.status, again.code()), (404, "fencing.source.unknown"));
    let audit = stack.audit("h1").await;
    let entry = audit.iter().find(|e| e.action == "source.forgotten").unwrap();
    assert_eq!(entry.detail["reason"], "it was taken down");
    stack.stop().await;
}

async fn a_host_has_a_bounded_number_of_sources(ground: Ground) {
    let stack = Stack::start(ground).await;
    for number in 1..=16 {
        seen_by(&stack, &format!("prober-{number}"), "UP").await.ok(200);
    }
    let refused = seen_by(&stack, "prober-17", "UP").await;
    assert_eq!((refused.status, refused.code()), (409, "fencing.source.too_many"));
    seen_by(&stack, "prober-1", "UNREACHABLE").await.ok(200);
    stack.stop().await;
}

async fn the_identity_of_a_fenced_host_cannot_be_changed(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    client.fence("h1").await;
    client.until_fenced("h1").await;
    for change in [
        json!({ "name": "h2" }),
        json!({ "zone": "elsewhere" }),
        json!({ "backend": "nova", "cloud": "east" }),
        json!({ "parameters": { "power": { "device": "another" } } }),
    ] {
        let refused = client.patch("/hosts/h1", change.clone()).await;
        assert_eq!(
            (refused.status, refused.code()),
            (409, "fencing.host.identity_in_use"),
            "{change}: {}",
            refused.body
        );
    }
    // The type only decides on the plan of the next fence.
    let host = client
        .patch("/hosts/h1", json!({ "type": "blade" }))
        .await
        .ok(200);
    assert_eq!(
        (&host["type"], &host["fencing_state"]),
        (&json!("blade"), &json!("FENCED"))
    );
    stack.stop().await;
}
