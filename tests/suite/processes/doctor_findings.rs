//! What `ringfence doctor` finds when no operator has looked at the services for a while.

use ringfence_tests::{
    Client, Ground, Machine, Site, eventually, post_until_taken, set_up, start_api, start_engine,
};
use serde_json::{Value, json};

use super::dead_letters::forge;

/// Every finding as `part: state: found -> remedy`.
async fn findings(machine: &Machine, more: &[(&str, &str)]) -> String {
    let asked = machine.run_with(&["doctor", "-o", "json"], more).await;
    let report: Value = serde_json::from_str(&asked.out).unwrap_or_else(|_| panic!("{asked:?}"));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let lines = report["findings"].as_array().unwrap().iter().map(|finding| {
        let [part, state, found, remedy] = ["part", "state", "found", "remedy"].map(|key| text(finding, key));
        format!("{part}: {state}: {found} -> {remedy}\n")
    });
    lines.collect()
}

#[track_caller]
fn says(report: &str, begin: &str, words: &[&str]) {
    let is_it = |line: &str| line.starts_with(begin) && words.iter().all(|word| line.contains(word));
    assert!(
        report.lines().any(is_it),
        "no {begin:?} with {words:?} in\n{report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_everything_that_waits_for_an_operator() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let machine = machine.set("RINGFENCE_CHECKS_INTERVAL_S", "10");
    let (mut api, engine) = (start_api(&machine), start_engine(&machine, "engine-1"));
    let url = api.until_it_listens("the API listens").await;
    let client = Client::new(&url, Some(&token));
    // No worker serves the zone, so that every check of the method ends at once with `worker_missing`.
    let method =
        json!({ "name": "far", "driver": "simulated", "zone": "moon", "parameters": { "device": "h1" } });
    post_until_taken(&client, "/methods", method).await;
    let plan = json!({ "name": "by-hand", "stages": [] });
    client.post("/plans", plan).await.ok(201);
    client.post("/hosts", json!({ "name": "h1" })).await.ok(201);
    client.seen("h1", "UNREACHABLE").await.ok(200);
    client
        .until("/methods/far", |far| far["checks"]["answered"] == 1)
        .await;
    let report = findings(&machine, &[]).await;
    says(&report, "engine: ok: nothing is overdue", &[]);
    says(&report, "operations: ok: no operation waits for a person", &[]);
    says(&report, "dead letters: ok: there are none", &[]);
    says(&report, "clock: ok: ", &[]);
    assert!(!report.contains("no newer one has come"), "{report}");

    let fence = client.fence("h1").await;
    client.until_settled(&fence).await;
    forge(&site, 2).await;
    eventually(async || {
        findings(&machine, &[])
            .await
            .contains("dead letters: warning: 2 messages")
    })
    .await;
    // The engine stops, and no alert reports it.
    engine.stop().await;
    site.past(
        "UPDATE hosts SET wake_at = now() - interval '1 minute';
         UPDATE method_checks SET checked_at = now() - interval '1 day', failing_since = now() - interval '1 day'",
    )
    .await;
    let report = findings(&machine, &[]).await;
    says(
        &report,
        "engine: failed: 1 hosts have waited",
        &["ringfence engine"],
    );
    says(
        &report,
        "operations: warning: 1 wait for a person",
        &[
            "fence the host by hand",
            "ringfence operation list --status needs_operator",
        ],
    );
    says(
        &report,
        "dead letters: warning: 2",
        &["ringfence dead-letter list"],
    );
    says(
        &report,
        "devices: warning: far: an answer is from",
        &["no newer one has come", "check whether an engine runs"],
    );
    says(
        &report,
        "devices: warning: far: worker_missing",
        &["no plan uses it"],
    );
    says(&report, "queues: failed: ringfence.claims", &["start an engine"]);

    let never = [("RINGFENCE_CHECKS_INTERVAL_S", "0")];
    let report = findings(&machine, &never).await;
    says(
        &report,
        "devices: warning: checks.interval_s is 0",
        &["ringfence doctor --devices"],
    );
    assert!(!report.contains("no newer one has come"), "{report}");
    drop(api);
}

/// Sets the database's clock: its time is from now on this far from the real time.
async fn set_clock(site: &Site, difference: &str) {
    let url = url::Url::parse(&site.database_url).unwrap();
    let name = url.path().trim_start_matches('/');
    site.past(&format!(
        "CREATE SCHEMA IF NOT EXISTS wrong;
         CREATE OR REPLACE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql
             AS 'SELECT pg_catalog.clock_timestamp() + interval ''{difference}''';
         ALTER DATABASE {name} SET search_path = public, wrong, pg_catalog"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_a_database_with_a_wrong_clock() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, _) = set_up(&site).await;
    for (difference, words) in [
        ("1 hour", "ahead of this machine"),
        ("-1 hour", "behind this machine"),
    ] {
        set_clock(&site, difference).await;
        let report = findings(&machine, &[]).await;
        says(
            &report,
            "clock: warning: the database is 3",
            &[words, "time servers"],
        );
    }
}
