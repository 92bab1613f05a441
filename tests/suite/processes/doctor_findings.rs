//! What `ringfence doctor` finds where services were left to themselves.

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
async fn what_waits_for_somebody_is_found_with_what_to_do() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let machine = machine.set("RINGFENCE_CHECKS_INTERVAL_S", "10");
    let (mut api, engine) = (start_api(&machine), start_engine(&machine, "engine-1"));
    let url = api.until_it_listens("the API listens").await;
    let client = Client::new(&url, Some(&token));
    // Nobody serves the zone, so that every question is answered: by nobody.
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
    // The engine goes, and nobody notices.
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

/// What the database takes for the time, from here on.
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
async fn a_database_whose_clock_goes_wrong_is_told() {
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
