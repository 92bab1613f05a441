//! Many hosts, and reports of many hosts, in one request.

use chrono::TimeDelta;
use futures_util::future::join_all;
use ringfence_api::{RateLimits, Role};
use ringfence_tests::{Answer, Client, Ground, Site, Stack, StackOptions, now, power_plan};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(
    many_hosts_are_added_in_one_request_and_each_refusal_has_its_reason,
    hosts_that_two_callers_add_at_the_same_time_are_added_once,
    a_repeated_request_with_many_hosts_adds_none_twice,
    a_request_holds_one_to_a_thousand_objects,
    each_of_many_reports_is_taken_or_refused_by_itself,
    a_report_among_many_counts_as_a_single_report_does,
    hosts_reported_silent_in_one_request_trigger_the_storm_brake,
);

async fn add(client: &Client, hosts: Value) -> Answer {
    client.post("/bulk/hosts", json!({ "hosts": hosts })).await
}

async fn report(client: &Client, reports: Value) -> Answer {
    let body = json!({ "source": "nagios", "reports": reports });
    client.put("/bulk/failure-states", body).await
}

/// Waits until the host's one event has its number, which it gets after the commit.
async fn until_told(client: &Client, host: &str) {
    let path = format!("/events?host={host}");
    let told = client.until(&path, |told| told["events"] != json!([])).await;
    let told = told["events"].as_array().unwrap();
    assert_eq!(
        (told.len(), &told[0]["type"]),
        (1, &json!("host.created")),
        "{told:?}"
    );
}

/// Name, status and error code of each thing of an answer.
fn outcomes<'a>(answer: &'a Value, things: &str, name: &str) -> Vec<(&'a str, u64, &'a str)> {
    let things = answer[things].as_array().unwrap();
    let outcome = |thing: &'a Value| {
        let code = thing["errors"][0]["code"].as_str().unwrap_or_default();
        let name = thing[name].as_str().unwrap_or_default();
        (name, thing["status"].as_u64().unwrap(), code)
    };
    things.iter().map(outcome).collect()
}

async fn many_hosts_are_added_in_one_request_and_each_refusal_has_its_reason(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    client
        .post("/segments", json!({ "name": "rack-1", "policy": {} }))
        .await
        .ok(201);
    let hosts = json!([
        { "name": "n1", "segment": "rack-1", "parameters": { "bmc": { "port": 623 } } },
        { "name": "h1" },
        { "name": "n2", "backend": "nova", "cloud": "east", "known_as": "compute1" },
        { "name": "n3", "backend": "nova", "cloud": "east", "known_as": "compute1" },
        { "name": "n1" },
        { "name": "n4", "segment": "nowhere" },
        { "name": "n5", "zone": "a b" },
        { "name": "n6", "colour": "red" },
        { "zone": "z" },
        { "name": "n7" },
    ]);
    let answer = add(client, hosts).await.ok(200);
    assert_eq!(
        outcomes(&answer, "hosts", "name"),
        [
            ("n1", 201, ""),
            ("h1", 409, "fencing.name.taken"),
            ("n2", 201, ""),
            ("n3", 409, "fencing.name.taken"),
            ("n1", 409, "fencing.name.taken"),
            ("n4", 404, "fencing.segment.not_found"),
            ("n5", 400, "fencing.request.invalid"),
            ("n6", 400, "fencing.request.invalid"),
            ("", 400, "fencing.request.invalid"),
            ("n7", 201, ""),
        ],
        "{answer}"
    );
    let detail = |at: usize| answer["hosts"][at]["errors"][0]["detail"].as_str().unwrap();
    assert!(
        detail(3).contains("knows as \"compute1\" is here already"),
        "{answer}"
    );
    assert!(detail(5).contains("nowhere"), "{answer}");
    assert!(detail(6).starts_with("zone: "), "{answer}");
    assert!(detail(7).starts_with("colour: "), "{answer}");
    assert!(detail(8).contains("name"), "{answer}");
    for (at, name) in [(0, "n1"), (2, "n2"), (9, "n7")] {
        let host = client.host(name).await;
        assert_eq!(host["id"], answer["hosts"][at]["id"]);
        until_told(client, name).await;
        let audit = stack.audit(name).await;
        assert_eq!(audit.len(), 1, "{audit:?}");
        assert_eq!(
            (audit[0].action.as_str(), audit[0].actor.as_str()),
            ("host.created", "a-admin")
        );
        assert!(
            audit[0].request_id.is_some() && audit[0].origin.is_some(),
            "{audit:?}"
        );
    }
    assert_eq!(client.host("n1").await["segment"], "rack-1");
    assert_eq!(client.host("n1").await["parameters"]["bmc"]["port"], "623");
    // A host of the cloud under another name, and a host of an existing name: the two refusals differ, also in the database.
    let again = json!([{ "name": "n8", "backend": "nova", "cloud": "east", "known_as": "compute1" }, { "name": "n7" }]);
    let again = add(client, again).await.ok(200);
    let detail = |at: usize| again["hosts"][at]["errors"][0]["detail"].as_str().unwrap();
    assert!(detail(0).contains("under another name"), "{again}");
    assert!(
        detail(1).contains("there is a host named \"n7\" already"),
        "{again}"
    );
    let all = client.get("/hosts").await.ok(200);
    assert_eq!(all["hosts"].as_array().unwrap().len(), 4, "{all}");
    for role in [Role::Reader, Role::Operator] {
        let answer = add(&stack.as_role(role), json!([{ "name": "n9" }])).await;
        refused(&answer, 403, "fencing.forbidden", &["admin"]);
    }
    stack.stop().await;
}

async fn hosts_that_two_callers_add_at_the_same_time_are_added_once(ground: Ground) {
    const HOSTS: usize = 200;
    let stack = Stack::start(ground).await;
    let names: Vec<Value> = (0..HOSTS).map(|n| json!({ "name": format!("n{n}") })).collect();
    let backwards: Vec<Value> = names.iter().rev().cloned().collect();
    let bodies = [names.clone(), backwards.clone(), names, backwards];
    let answers = join_all(bodies.map(|hosts| add(&stack.client, json!(hosts)))).await;
    let mut added = 0;
    for answer in answers {
        let answer = answer.ok(200);
        for (name, status, code) in outcomes(&answer, "hosts", "name") {
            assert!(
                (status == 201) != (code == "fencing.name.taken"),
                "{name}: {status} {code}"
            );
            added += usize::from(status == 201);
        }
    }
    assert_eq!(added, HOSTS);
    stack.stop().await;
}

async fn a_repeated_request_with_many_hosts_adds_none_twice(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    // The body is longer than any other request's may be.
    let hosts: Vec<Value> = (0..700)
        .map(|number| json!({ "name": format!("n{number}"), "parameters": { "bmc": { "note": "x".repeat(100) } } }))
        .collect();
    let body = json!({ "hosts": hosts });
    assert!(body.to_string().len() > 65_536);
    let first = client.post_once("/bulk/hosts", "all", body.clone()).await;
    assert_eq!(first.header("Idempotent-Replayed"), "");
    let again = client.post_once("/bulk/hosts", "all", body).await;
    assert_eq!(again.header("Idempotent-Replayed"), "true");
    let first = first.ok(200);
    assert_eq!(first, again.ok(200));
    assert!(
        outcomes(&first, "hosts", "name")
            .iter()
            .all(|(_, status, _)| *status == 201)
    );
    until_told(client, "n699").await;
    stack.stop().await;
}

async fn a_request_holds_one_to_a_thousand_objects(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let many: Vec<Value> = (0..1_001)
        .map(|number| json!({ "name": format!("n{number}") }))
        .collect();
    for (hosts, words) in [
        (json!([]), "hosts: holds 0; 1 to 1000 are allowed"),
        (json!(many), "hosts: holds 1001; 1 to 1000 are allowed"),
        (json!([{ "name": "n1" }, 7]), "hosts[1]: is no JSON object"),
        (json!(3), "hosts"),
    ] {
        refused(
            &add(client, hosts).await,
            400,
            "fencing.request.invalid",
            &[words],
        );
    }
    let answer = client
        .post("/bulk/hosts", json!({ "hosts": [{ "name": "n1" }], "dry": true }))
        .await;
    refused(&answer, 400, "fencing.request.invalid", &["dry"]);
    refused(
        &report(client, json!([])).await,
        400,
        "fencing.request.invalid",
        &["reports"],
    );
    let unnamed = json!({ "source": "", "reports": [{ "host": "h1" }] });
    let answer = client.put("/bulk/failure-states", unnamed).await;
    refused(
        &answer,
        400,
        "fencing.request.invalid",
        &["source: 1 to 255 characters"],
    );
    let long = json!([{ "name": "n1", "zone": "z".repeat(5 * 1024 * 1024) }]);
    refused(
        &add(client, long).await,
        413,
        "fencing.request.too_large",
        &["4194304"],
    );
    let all = client.get("/hosts").await.ok(200);
    assert_eq!(all["hosts"].as_array().unwrap().len(), 1, "{all}");
    add(client, json!(many[..1000])).await.ok(200);
    stack.stop().await;
}

async fn each_of_many_reports_is_taken_or_refused_by_itself(ground: Ground) {
    const HOSTS: usize = 100;
    let options = StackOptions {
        hosts: HOSTS,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let client = &stack.client;
    let (at, old) = (now(), now() - TimeDelta::seconds(60));
    let id = client.host("h2").await["id"].clone();
    let mut reports: Vec<Value> = (1..=HOSTS)
        .map(|number| json!({ "host": format!("h{number}"), "failure_state": "UP", "observed_at": at }))
        .collect();
    reports[1]["host"] = id.clone();
    reports[2]["failure_state"] = json!("DOWN");
    reports[3]["host"] = json!("h0");
    reports[4]["observed_at"] = json!(at + TimeDelta::hours(1));
    reports[5]["boot_id"] = json!("boot-1");
    reports.push(json!({ "host": "h6", "failure_state": "UNREACHABLE", "observed_at": old }));
    let answer = report(&stack.as_role(Role::Operator), json!(reports))
        .await
        .ok(200);
    let told = outcomes(&answer, "reports", "host");
    assert_eq!(told.len(), reports.len());
    for (number, (host, status, code)) in told.into_iter().enumerate() {
        let expected = match number {
            2 => (400, "fencing.request.invalid"),
            3 => (404, "fencing.host.not_found"),
            4 => (400, "fencing.request.invalid"),
            HOSTS => (409, "fencing.observation.stale"),
            _ => (200, ""),
        };
        assert_eq!((status, code), expected, "{host}: {}", answer["reports"][number]);
        assert_eq!(Value::from(host), reports[number]["host"]);
    }
    assert_eq!(answer["reports"][1]["failure_state"], "UP");
    for number in 1..=HOSTS {
        let host = client.host(&format!("h{number}")).await;
        let is_seen = !(3..=5).contains(&number);
        assert_eq!(host["failure_state"] == "UP", is_seen, "{host}");
        assert_eq!(host["failure_source"] == "nagios", is_seen, "{host}");
    }
    assert_eq!(client.host("h6").await["boot_id"], "boot-1");
    let answer = report(&stack.as_role(Role::Reader), json!(reports)).await;
    refused(&answer, 403, "fencing.forbidden", &["reader"]);
    stack.stop().await;
}

async fn a_report_among_many_counts_as_a_single_report_does(ground: Ground) {
    let options = StackOptions {
        hosts: 2,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let client = &stack.client;
    stack.plan(power_plan()).await;
    for state in ["UP", "UNREACHABLE"] {
        let alone =
            json!({ "failure_state": state, "source": "nagios", "observed_at": now(), "boot_id": "b" });
        client.put("/hosts/h1/failure-state", alone).await.ok(200);
        let among = json!([{ "host": "h2", "failure_state": state, "observed_at": now(), "boot_id": "b" }]);
        report(client, among).await.ok(200);
    }
    for host in ["h1", "h2"] {
        let path = format!("/events?host={host}");
        let is_last = |told: &Value| told["events"].as_array().unwrap().len() == 3;
        client.until(&path, is_last).await;
    }
    assert_eq!(client.event_types("h1").await, client.event_types("h2").await);
    let without = |mut host: Value| {
        for field in [
            "id",
            "name",
            "created_at",
            "updated_at",
            "failure_observed_at",
            "failure_since",
            "sources",
        ] {
            host.as_object_mut().unwrap().remove(field);
        }
        host
    };
    assert_eq!(without(client.host("h1").await), without(client.host("h2").await));
    assert_eq!(stack.audit("h1").await.len(), stack.audit("h2").await.len());
    stack.stop().await;
}

/// All hosts are known to be silent before the first is fenced.
async fn hosts_reported_silent_in_one_request_trigger_the_storm_brake(ground: Ground) {
    const HOSTS: usize = 20;
    let options = StackOptions {
        hosts: HOSTS,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let client = &stack.client;
    stack.plan(power_plan()).await;
    let fencing = json!({ "automatic": true, "after_s": 0, "at_most": 2, "at_most_percent": 100 });
    client
        .set_default_policy(json!({ "fencing": fencing }))
        .await
        .ok(200);
    let reports: Vec<Value> = (1..=HOSTS)
        .map(|number| json!({ "host": format!("h{number}"), "failure_state": "UNREACHABLE", "observed_at": now() }))
        .collect();
    report(client, json!(reports)).await.ok(200);
    for number in 1..=HOSTS {
        let host = format!("h{number}");
        let held = client
            .until(&format!("/operations?host={host}"), |list| {
                list["operations"][0]["status"] == "needs_operator"
            })
            .await;
        assert_eq!(held["operations"][0]["is_held_by_brake"], true, "{held}");
        assert!(stack.simulators.may_write(&host));
    }
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_many_reports_counts_as_one_request_of_the_rate_limit() {
    let options = StackOptions {
        limits: RateLimits {
            requests_per_second: 1,
            request_burst: 2,
            ..RateLimits::OFF
        },
        hosts: 1,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    let service = stack.as_role(Role::Operator);
    let reports = vec![json!({ "host": "h1", "failure_state": "UP", "observed_at": now() }); 300];
    report(&service, json!(reports)).await.ok(200);
    report(&service, json!(reports)).await.ok(200);
    stack.stop().await;
}
