//! What the API says to wrong requests, and its manners.

use reqwest::Method;
use ringfence_api::Role;
use ringfence_tests::{Answer, Client, Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    bad_bodies_are_refused_with_the_field_the_value_and_what_is_allowed,
    bad_methods_are_refused,
    bad_plans_are_refused,
    bad_queries_are_refused,
    roles_and_tokens_are_checked,
    listings_are_paged_sorted_and_filtered,
    changes_are_conditional_on_what_was_read,
    what_is_in_use_is_kept,
    events_are_streamed_from_where_the_listener_was,
);

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str, words: &[&str]) {
    assert_eq!((answer.status, answer.code()), (status, code), "{}", answer.body);
    for word in words {
        assert!(
            answer.details().contains(word),
            "{word:?} is not in {:?}",
            answer.details()
        );
    }
    let error = &answer.body["errors"][0];
    assert_eq!(error["request_id"], answer.header("x-openstack-request-id"));
    assert_eq!(error["status"], status);
}

async fn raw(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: impl Into<reqwest::Body>,
) -> Answer {
    client
        .send(
            client
                .request(method, path)
                .header("content-type", content_type)
                .body(body),
        )
        .await
}

async fn bad_bodies_are_refused_with_the_field_the_value_and_what_is_allowed(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let invalid = "fencing.request.invalid";
    let json_type = "application/json";
    let answer = client
        .post("/hosts", json!({ "name": "h2", "colour": "red" }))
        .await;
    refused(&answer, 400, invalid, &["colour", "unknown field", "zone"]);
    let answer = client.post("/hosts", json!({ "name": 7 })).await;
    refused(&answer, 400, invalid, &["name", "7", "string"]);
    let answer = client.post("/hosts", json!({ "name": "h".repeat(256) })).await;
    refused(&answer, 400, invalid, &["name", "256", "255"]);
    let answer = client.post("/hosts", json!({ "name": "two words" })).await;
    refused(&answer, 400, invalid, &["name", "two words", "letters"]);
    let answer = client
        .post(
            "/hosts",
            json!({ "name": "0d1b5d2e-7a2f-4f6e-9a52-0f5f3a1d2c3b" }),
        )
        .await;
    refused(&answer, 400, invalid, &["UUID"]);
    let answer = client
        .post("/hosts", json!({ "name": "h2", "backend": "vmware" }))
        .await;
    refused(&answer, 400, invalid, &["backend", "vmware", "nova"]);
    let answer = client
        .post("/hosts", json!({ "name": "h2", "segment": "nowhere" }))
        .await;
    refused(&answer, 404, "fencing.segment.not_found", &["nowhere"]);
    let answer = client.post("/hosts", json!({ "name": "h1" })).await;
    refused(&answer, 409, "fencing.name.taken", &["h1"]);
    let secret = json!({ "name": "h2", "parameters": { "bmc": { "password": "hunter2" } } });
    let answer = client.post("/hosts", secret).await;
    refused(&answer, 400, invalid, &["parameters.bmc.password", "env:NAME"]);
    assert!(!answer.details().contains("hunter2"));
    let answer = raw(client, Method::POST, "/hosts", json_type, "{\"name\": \"h2\"").await;
    refused(&answer, 400, invalid, &["EOF"]);
    let answer = raw(client, Method::POST, "/hosts", json_type, "{\"name\": \"h2\"} {}").await;
    refused(&answer, 400, invalid, &["trailing"]);
    let answer = raw(client, Method::POST, "/hosts", json_type, vec![0xff, 0xfe]).await;
    refused(&answer, 400, invalid, &[]);
    let answer = raw(client, Method::POST, "/hosts", "text/plain", "{\"name\": \"h2\"}").await;
    refused(
        &answer,
        415,
        "fencing.request.not_json",
        &["text/plain", "application/json"],
    );
    let answer = raw(
        client,
        Method::POST,
        "/hosts",
        json_type,
        format!("{{\"name\": \"{}\"}}", "x".repeat(70_000)),
    )
    .await;
    refused(&answer, 413, "fencing.request.too_large", &["65536"]);
    for reason in ["", "   ", &"r".repeat(256), "two\nlines"] {
        let answer = client.post("/hosts/h1/fence", json!({ "reason": reason })).await;
        refused(&answer, 400, invalid, &["reason"]);
    }
    let answer = client.post("/hosts/h1/fence", json!({})).await;
    refused(&answer, 400, invalid, &["reason", "missing"]);
    let answer = client.post("/hosts/h1/fence", json!({ "reason": "test" })).await;
    refused(&answer, 409, "fencing.plan.missing", &["h1"]);
    let answer = client.post("/hosts/h9/fence", json!({ "reason": "test" })).await;
    refused(&answer, 404, "fencing.host.not_found", &["h9"]);
    let answer = client
        .post(
            "/hosts/h1/confirm-fenced",
            json!({ "generation": -1, "reason": "test" }),
        )
        .await;
    refused(&answer, 400, invalid, &["generation", "-1"]);
    let seen = json!({ "failure_state": "DOWN", "source": "m", "observed_at": "2026-01-01T00:00:00Z" });
    let answer = client.put("/hosts/h1/failure-state", seen).await;
    refused(&answer, 400, invalid, &["failure_state", "DOWN", "UNREACHABLE"]);
    let seen = json!({ "failure_state": "UP", "source": "m", "observed_at": "yesterday" });
    let answer = client.put("/hosts/h1/failure-state", seen).await;
    refused(&answer, 400, invalid, &["observed_at"]);
    let seen = json!({ "failure_state": "UP", "source": "m", "observed_at": "2199-01-01T00:00:00Z" });
    let answer = client.put("/hosts/h1/failure-state", seen).await;
    refused(&answer, 400, invalid, &["observed_at", "ahead"]);
    client.seen("h1", "UP").await.ok(200);
    let seen = json!({ "failure_state": "UP", "source": "m", "observed_at": "2020-01-01T00:00:00Z" });
    let answer = client.put("/hosts/h1/failure-state", seen).await;
    refused(&answer, 409, "fencing.observation.stale", &["2020"]);
    assert_eq!(
        client.get("/hosts").await.ok(200)["hosts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    stack.stop().await;
}

async fn bad_methods_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let invalid = "fencing.request.invalid";
    let cases: &[(Value, &[&str])] = &[
        (
            json!({ "name": "m", "driver": "telnet" }),
            &["driver", "telnet", "fence-agent", "redfish"],
        ),
        (
            json!({ "name": "m", "driver": "simulated" }),
            &["parameters.device", "missing"],
        ),
        (
            json!({ "name": "m", "driver": "simulated", "parameters": { "device": "h1", "colour": "red" } }),
            &["colour", "unknown"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "parameters": { "address": "10.0.0.1\n", "username": "a" }, "secrets": { "password": "env:P" } }),
            &["parameters.address", "control"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "parameters": { "address": "a", "username": "a", "password": "hunter2" } }),
            &["parameters.password", "env:NAME", "file:"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "parameters": { "address": "a", "username": "a" }, "secrets": { "password": "hunter2" } }),
            &["secrets.password", "env:NAME"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "resource": "storage", "parameters": { "address": "a", "username": "a" }, "secrets": { "password": "env:P" } }),
            &["resource", "storage", "power"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "parameters": { "address": "a", "username": "a", "port": 70000 }, "secrets": { "password": "env:P" } }),
            &["parameters.port", "70000", "65535"],
        ),
        (
            json!({ "name": "m", "driver": "simulated", "parameters": { "device": "d" }, "times": { "retries": 11 } }),
            &["times.retries", "11", "10"],
        ),
        (
            json!({ "name": "m", "driver": "fence-agent", "parameters": { "agent": "fence_nothing" } }),
            &["agent", "fence_nothing"],
        ),
        (
            json!({ "name": "m", "driver": "fence-agent", "parameters": { "agent": "/bin/sh" } }),
            &["agent", "/bin/sh"],
        ),
        (
            json!({ "name": "m", "driver": "fence-agent", "parameters": { "agent": "fence_dummy", "action": "reboot" } }),
            &["parameters.action"],
        ),
        (
            json!({ "name": "m", "driver": "fence-agent", "parameters": { "agent": "fence_dummy", "status_fil": "/tmp/x" } }),
            &["status_fil", "status_file"],
        ),
        (
            json!({ "name": "m", "driver": "simulated", "parameters": { "device": "${host.colour}" } }),
            &["host.colour", "host.name"],
        ),
    ];
    for (body, words) in cases {
        let answer = client.post("/methods", body.clone()).await;
        refused(&answer, 400, invalid, words);
        assert!(
            !answer.body.to_string().contains("hunter2"),
            "a secret was repeated"
        );
    }
    let nowhere = json!({ "name": "m", "driver": "fence-agent", "zone": "moon", "parameters": { "agent": "fence_dummy" } });
    refused(
        &client.post("/methods", nowhere).await,
        503,
        "fencing.worker.missing",
        &["moon", "power"],
    );
    assert_eq!(client.get("/methods").await.ok(200)["methods"], json!([]));
    let good = json!({ "name": "dummy", "driver": "fence-agent", "parameters": { "agent": "fence_dummy", "status_file": "/tmp/${host.name}" } });
    client.post("/methods", good).await.ok(201);
    let answer = client.post("/methods/dummy/check", json!({})).await;
    refused(&answer, 400, invalid, &["host", "status_file"]);
    stack.stop().await;
}

async fn bad_plans_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack
        .simulated_method("power", ringfence_core::Resource::Power)
        .await;
    stack
        .simulated_method("network", ringfence_core::Resource::Network)
        .await;
    let client = &stack.client;
    let level = |method: &str| json!([{ "level": 1, "methods": [method] }]);
    let stage = |kind: &str, levels: Value| json!([{ "tasks": [{ "kind": kind, "levels": levels }] }]);
    let cases: &[(Value, &[&str])] = &[
        (
            json!({ "name": "p", "stages": stage("power.off", level("missing")) }),
            &["stages[0].tasks[0].levels[0].methods[0]", "missing"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.of", level("power")) }),
            &["stages[0].tasks[0].kind", "power.of", "power.off"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", level("network")) }),
            &["network", "power"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", level("power")), "sufficient_sets": [[]] }),
            &["sufficient_sets[0]", "empty"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", level("power")), "sufficient_sets": [] }),
            &["sufficient_sets", "0"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", level("power")), "sufficient_sets": [["prayer"]] }),
            &["prayer", "power.off"],
        ),
        (
            json!({ "name": "p", "stages": stage("network.fence", level("network")) }),
            &["could never prove", "network.fence"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", json!([{ "level": 10, "methods": ["power"] }])) }),
            &["level", "10", "9"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", json!([{ "level": 1, "methods": [] }])) }),
            &["methods", "0"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.on", json!([])) }),
            &["power.on", "later stage"],
        ),
        (
            json!({ "name": "p", "stages": stage("storage.unfence", level("power")) }),
            &["storage.unfence", "rejoin"],
        ),
        (
            json!({ "name": "p", "scope": { "kind": "host" } }),
            &["scope.value", "missing"],
        ),
        (
            json!({ "name": "p", "stages": [{ "tasks": [], "delay_s": 9999 }] }),
            &["delay_s", "9999", "tasks"],
        ),
    ];
    for (body, words) in cases {
        refused(
            &client.post("/plans", body.clone()).await,
            400,
            "fencing.request.invalid",
            words,
        );
    }
    client
        .post("/plans", json!({ "name": "p", "stages": power_plan() }))
        .await
        .ok(201);
    let again = client
        .post("/plans", json!({ "name": "q", "stages": power_plan() }))
        .await;
    refused(&again, 409, "fencing.name.taken", &["same hosts"]);
    stack.stop().await;
}

async fn bad_queries_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let invalid = "fencing.request.invalid";
    let cases: &[(&str, &[&str])] = &[
        ("/hosts?limit=0", &["limit", "0", "1000"]),
        ("/hosts?limit=1001", &["limit", "1001"]),
        ("/hosts?limit=many", &["limit", "many"]),
        ("/hosts?marker=h1", &["marker", "h1"]),
        (
            "/hosts?marker=0d1b5d2e-7a2f-4f6e-9a52-0f5f3a1d2c3b",
            &["marker", "no such host"],
        ),
        ("/hosts?sort=colour", &["sort", "colour", "created_at"]),
        ("/hosts?sort=name:up", &["sort", "desc"]),
        (
            "/hosts?fencing_state=fenced",
            &["fencing_state", "fenced", "FENCED"],
        ),
        ("/hosts?colour=red", &["colour"]),
        ("/operations?status=done", &["status", "done", "needs_operator"]),
        ("/operations/7", &["id", "7", "UUID"]),
        ("/events?after=-1", &["after", "-1"]),
        ("/events?after=18446744073709551615", &["after"]),
        ("/events?limit=x", &["limit", "x"]),
    ];
    for (path, words) in cases {
        refused(&client.get(path).await, 400, invalid, words);
    }
    refused(
        &client
            .get("/operations/0d1b5d2e-7a2f-4f6e-9a52-0f5f3a1d2c3b")
            .await,
        404,
        "fencing.operation.not_found",
        &[],
    );
    refused(
        &client.get("/hostz").await,
        404,
        "fencing.path.not_found",
        &["/hostz"],
    );
    refused(
        &client.delete("/operations").await,
        405,
        "fencing.method.not_allowed",
        &["DELETE"],
    );
    for (version, status) in [
        ("fencing 1.0", 200),
        ("fencing latest", 200),
        ("fencing 9.9", 406),
        ("1.0", 400),
        ("fencing x", 400),
    ] {
        let answer = client
            .send(
                client
                    .request(Method::GET, "/hosts")
                    .header("OpenStack-API-Version", version),
            )
            .await;
        assert_eq!(answer.status, status, "{version}");
    }
    let answer = client.get("/hosts").await;
    assert_eq!(answer.header("OpenStack-API-Version"), "fencing 1.0");
    assert!(answer.header("Vary").contains("OpenStack-API-Version"));
    assert!(answer.header("x-openstack-request-id").starts_with("req-"));
    stack.stop().await;
}

async fn roles_and_tokens_are_checked(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let nobody = stack.client.with_token(None);
    refused(
        &nobody.get("/hosts").await,
        401,
        "fencing.unauthorized",
        &["X-Auth-Token"],
    );
    refused(
        &stack.client.with_token(Some("wrong")).get("/hosts").await,
        401,
        "fencing.unauthorized",
        &["unknown"],
    );
    nobody.get("/").await.ok(200);
    nobody.get("/healthcheck").await.ok(200);
    nobody.get("/openapi.json").await.ok(200);
    assert_eq!(nobody.get("/docs/").await.status, 200);
    let reader = stack.as_role(Role::Reader);
    reader.get("/hosts/h1/gates").await.ok(200);
    refused(
        &reader.post("/hosts/h1/fence", json!({ "reason": "x" })).await,
        403,
        "fencing.forbidden",
        &["reader", "service"],
    );
    let service = stack.as_role(Role::Service);
    refused(
        &service.post("/hosts", json!({ "name": "h2" })).await,
        403,
        "fencing.forbidden",
        &["service", "admin"],
    );
    service.seen("h1", "UNREACHABLE").await.ok(200);
    service.fence("h1").await;
    let bearer = nobody
        .request(Method::GET, "/hosts")
        .header("Authorization", "Bearer token-of-reader");
    assert_eq!(nobody.send(bearer).await.status, 200);
    let audit = stack.audit("h1").await;
    let started = audit
        .iter()
        .find(|entry| entry.action == "operation.started")
        .unwrap();
    assert_eq!(started.actor, "a-service");
    assert_eq!(started.origin.as_deref(), Some("127.0.0.1"));
    assert!(started.request_id.as_deref().unwrap().starts_with("req-"));
    stack.stop().await;
}

async fn listings_are_paged_sorted_and_filtered(ground: Ground) {
    let site = Site::new(ground).await;
    let stack = Stack::start_with(
        site,
        StackOptions {
            hosts: 7,
            ..StackOptions::default()
        },
    )
    .await;
    let client = &stack.client;
    let mut names = Vec::new();
    let mut path = "/hosts?limit=3&sort=name:desc".to_owned();
    loop {
        let page = client.get(&path).await.ok(200);
        names.extend(
            page["hosts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|h| h["name"].as_str().unwrap().to_owned()),
        );
        match page["links"][0]["href"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(names, ["h7", "h6", "h5", "h4", "h3", "h2", "h1"]);
    client.seen("h2", "UP").await.ok(200);
    let up = client
        .get("/hosts?failure_state=UP&segment=default&backend=none")
        .await
        .ok(200);
    assert_eq!(up["hosts"].as_array().unwrap().len(), 1);
    assert_eq!(up["hosts"][0]["name"], "h2");
    assert_eq!(
        client.get("/hosts?fencing_state=FENCED").await.ok(200)["hosts"],
        json!([])
    );
    stack.stop().await;
}

async fn changes_are_conditional_on_what_was_read(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let answer = client.get("/hosts/h1").await;
    let tag = answer.header("ETag").to_owned();
    let patch = |tag: &str, body: Value| {
        client.send(
            client
                .request(Method::PATCH, "/hosts/h1")
                .header("If-Match", tag)
                .json(&body),
        )
    };
    let host = patch(&tag, json!({ "type": "compute", "zone": "rack-2" }))
        .await
        .ok(200);
    assert_eq!(
        (host["type"].as_str(), host["zone"].as_str()),
        (Some("compute"), Some("rack-2"))
    );
    refused(
        &patch(&tag, json!({ "zone": "rack-3" })).await,
        412,
        "fencing.revision.changed",
        &[],
    );
    refused(
        &patch("seven", json!({ "zone": "rack-3" })).await,
        400,
        "fencing.request.invalid",
        &["If-Match", "seven"],
    );
    let host = patch("*", json!({ "type": null })).await.ok(200);
    assert_eq!(host["type"], Value::Null);
    assert_eq!(host["zone"], "rack-2");
    stack.stop().await;
}

async fn what_is_in_use_is_kept(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    refused(
        &client.delete("/methods/power").await,
        409,
        "fencing.in_use",
        &["power", "default"],
    );
    refused(
        &client.delete("/segments/default").await,
        409,
        "fencing.in_use",
        &["default"],
    );
    client.post("/segments", json!({ "name": "rack" })).await.ok(201);
    client
        .patch("/hosts/h1", json!({ "segment": "rack" }))
        .await
        .ok(200);
    refused(
        &client.delete("/segments/rack").await,
        409,
        "fencing.in_use",
        &["rack"],
    );
    stack.hang("h1").await;
    let fence = client.fence("h1").await;
    client.until_settled(&fence).await;
    refused(
        &client.delete("/hosts/h1").await,
        409,
        "fencing.host.state",
        &["FENCED"],
    );
    // An edited or deleted plan and method take nothing away from a fence that stands.
    assert_eq!(client.delete("/plans/default").await.status, 204);
    assert_eq!(client.delete("/methods/power").await.status, 204);
    assert_eq!(client.host("h1").await["fencing_state"], "FENCED");
    client
        .post("/hosts/h1/rejoin", json!({ "reason": "checked" }))
        .await
        .ok(202);
    client.seen("h1", "UP").await.ok(200);
    client
        .until("/hosts/h1", |host| host["fencing_state"] == "UNFENCED")
        .await;
    client
        .until("/hosts/h1", |host| host["operation"] == Value::Null)
        .await;
    assert_eq!(client.delete("/hosts/h1").await.status, 204);
    assert_eq!(client.get("/hosts/h1").await.status, 404);
    stack.stop().await;
}

async fn events_are_streamed_from_where_the_listener_was(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    let mut stream = client
        .request(Method::GET, "/events/stream")
        .header("Last-Event-ID", "0")
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status().as_u16(), 200);
    stack.hang("h1").await;
    client.fence("h1").await;
    let mut text = String::new();
    while !text.contains("event: operation.succeeded") {
        text.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    let ids: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().unwrap())
        .collect();
    // The first block only says where the stream begins.
    assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>());
    let middle = ids[2].to_string();
    let mut again = client
        .request(Method::GET, "/events/stream?host=h1")
        .header("Last-Event-ID", &middle)
        .send()
        .await
        .unwrap();
    let mut text = String::new();
    while !text.contains("event: operation.succeeded") {
        text.push_str(&String::from_utf8_lossy(&again.chunk().await.unwrap().unwrap()));
    }
    let again: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().unwrap())
        .collect();
    assert_eq!(again, ids[2..]);
    refused(
        &client.get("/events/stream?after=x").await,
        400,
        "fencing.request.invalid",
        &["after", "x"],
    );
    stack.stop().await;
}
