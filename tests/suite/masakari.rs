//! Masakari's monitors, which report to Ringfence instead of Masakari.

use ringfence_api::Role;
use ringfence_tests::{Answer, Ground, Stack, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    notifications_of_a_host_monitor_are_taken_and_refused_as_by_masakari,
    a_request_that_is_no_notification_changes_nothing,
    a_name_of_two_hosts_stands_for_neither,
);

fn at(seconds: i64) -> String {
    let at = ringfence_tests::now() + chrono::TimeDelta::seconds(seconds);
    // As the monitors write times: in UTC, without a time zone.
    at.format("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}

fn host_is(host: &str, event: &str, seconds: i64) -> Value {
    let cluster = if event == "STOPPED" { "OFFLINE" } else { "ONLINE" };
    json!({ "notification": {
        "type": "COMPUTE_HOST", "hostname": host, "generated_time": at(seconds),
        "payload": { "event": event, "cluster_status": cluster, "host_status": "NORMAL" },
    }})
}

async fn notify(stack: &Stack, body: Value) -> Answer {
    let project = "/v1/0123456789abcdef0123456789abcdef/notifications";
    stack.as_role(Role::Service).post(project, body).await
}

#[track_caller]
fn refused(answer: Answer, status: u16, name: &str) -> String {
    assert_eq!(answer.header("openstack-api-version"), "masakari 1.0");
    let fault = answer.ok(status);
    assert_eq!(fault[name]["code"], status, "{fault}");
    fault[name]["message"].as_str().unwrap().to_owned()
}

async fn notifications_of_a_host_monitor_are_taken_and_refused_as_by_masakari(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let policy = json!({ "fencing": { "automatic": true, "after_s": 1 } });
    stack.client.set_default_policy(policy).await.ok(200);

    let taken = notify(&stack, host_is("h1", "STOPPED", 0)).await;
    assert_eq!(taken.header("openstack-api-version"), "masakari 1.0");
    let taken = taken.ok(202)["notification"].clone();
    assert_eq!(
        (&taken["status"], &taken["type"]),
        (&json!("new"), &json!("COMPUTE_HOST"))
    );
    assert_eq!(taken["payload"]["event"], "STOPPED");
    let host = stack.client.host("h1").await;
    assert_eq!(
        (&host["failure_state"], &host["failure_source"]),
        (&json!("UNREACHABLE"), &json!("masakari"))
    );
    // The monitor repeats the notification, and ends its retries at this answer.
    let again = refused(
        notify(&stack, host_is("h1", "STOPPED", 0)).await,
        409,
        "conflictingRequest",
    );
    let duplicate = "Notification received from host h1 of type COMPUTE_HOST is duplicate.";
    let busy = "Notification received from host h1 of type 'COMPUTE_HOST' is ignored as the host is already under maintenance.";
    assert!(again == duplicate || again == busy, "{again}");

    stack.client.until_fenced("h1").await;
    let again = refused(
        notify(&stack, host_is("h1", "STOPPED", 0)).await,
        409,
        "conflictingRequest",
    );
    assert_eq!(again, busy);
    let started = notify(&stack, host_is("h1", "STARTED", 0)).await.ok(202);
    assert_eq!(started["notification"]["status"], "finished");
    assert_eq!(stack.client.host("h1").await["failure_state"], "UP");
    let fences = stack.client.get("/operations?host=h1&kind=fence").await.ok(200);
    assert_eq!(fences["operations"].as_array().unwrap().len(), 1, "{fences}");
    stack.stop().await;
}

async fn a_request_that_is_no_notification_changes_nothing(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.client.seen("h1", "UP").await.ok(200);
    let before = stack.client.host("h1").await;
    for (body, says) in [
        (json!({}), "'notification' is a required property"),
        (
            host_is("nosuch", "STOPPED", 0),
            "Host with name nosuch could not be found.",
        ),
        (
            host_is("h1", "GONE", 0),
            "Invalid input for field/attribute event. Value: GONE. 'GONE' is not one of ('STARTED', 'STOPPED')",
        ),
        (host_is("h1", "STOPPED", 100_000), "observed_at"),
    ] {
        let message = refused(notify(&stack, body).await, 400, "badRequest");
        assert!(message.starts_with(says), "{message}");
    }
    let service = stack.as_role(Role::Service);
    let raw = |body: &'static str| {
        let request = service.request(reqwest::Method::POST, "/v1/notifications");
        service.send(request.header("content-type", "application/json").body(body))
    };
    assert_eq!(
        refused(raw("{").await, 400, "badRequest"),
        "Malformed request body"
    );
    let large = service
        .request(reqwest::Method::POST, "/v1/notifications")
        .body("x".repeat(10 << 20));
    refused(service.send(large).await, 413, "overLimit");
    let old = service
        .request(reqwest::Method::POST, "/v1/notifications")
        .header("OpenStack-API-Version", "instance-ha 1.3")
        .json(&host_is("h1", "STOPPED", 0));
    let message = refused(service.send(old).await, 406, "masakariFault");
    assert_eq!(
        message,
        "Version 1.3 is not supported by the API. Minimum is 1.0 and maximum is 1.2."
    );

    let reader = stack
        .as_role(Role::Reader)
        .post("/v1/notifications", host_is("h1", "STOPPED", 0))
        .await;
    refused(reader, 403, "forbidden");
    let without_token = stack
        .client
        .with_token(None)
        .post("/v1/notifications", host_is("h1", "STOPPED", 0))
        .await;
    assert!(without_token.header("www-authenticate").len() > 1);
    refused(without_token, 401, "unauthorized");

    // A report that is older than another source's, and a notification about a guest, change nothing about the host.
    let stale = notify(&stack, host_is("h1", "STOPPED", -60)).await.ok(202);
    assert_eq!(stale["notification"]["status"], "ignored");
    let mut guest = host_is("h1", "STOPPED", 0);
    guest["notification"]["type"] = json!("VM");
    assert_eq!(
        notify(&stack, guest).await.ok(202)["notification"]["status"],
        "ignored"
    );
    let mut after = stack.client.host("h1").await;
    for field in ["sources", "updated_at"] {
        // The monitor's reports are recorded as a source, though they change nothing.
        after[field] = before[field].clone();
    }
    assert_eq!(after, before);
    stack.stop().await;
}

async fn a_name_of_two_hosts_stands_for_neither(ground: Ground) {
    let stack = Stack::start(ground).await;
    let east = json!({ "name": "east-1", "backend": "nova", "cloud": "east", "known_as": "compute1" });
    stack.client.post("/hosts", east).await.ok(201);
    notify(&stack, host_is("compute1", "STARTED", 0)).await.ok(202);
    assert_eq!(stack.client.host("east-1").await["failure_state"], "UP");
    // The cloud does not know this name; it is Ringfence's.
    let message = refused(
        notify(&stack, host_is("east-1", "STOPPED", 0)).await,
        400,
        "badRequest",
    );
    assert_eq!(message, "Host with name east-1 could not be found.");

    stack
        .client
        .post("/hosts", json!({ "name": "compute1" }))
        .await
        .ok(201);
    let message = refused(
        notify(&stack, host_is("compute1", "STOPPED", 0)).await,
        400,
        "badRequest",
    );
    assert_eq!(
        message,
        "Host with name compute1 is known more than once (compute1, east-1)."
    );
    stack.client.delete("/hosts/compute1").await;

    // The cloud `west` may have a host of this name that Ringfence does not know.
    let west = json!({ "name": "west-2", "backend": "nova", "cloud": "west", "known_as": "compute2" });
    stack.client.post("/hosts", west).await.ok(201);
    let message = refused(
        notify(&stack, host_is("compute1", "STOPPED", 0)).await,
        400,
        "badRequest",
    );
    assert_eq!(
        message,
        "Host with name compute1 could be of more than one cloud here."
    );
    assert_eq!(stack.client.host("east-1").await["failure_state"], "UP");

    // The endpoint of the monitors in `east` says which cloud's host is meant.
    let service = stack.as_role(Role::Service);
    let say = async |path: &str| {
        let request = service.request(reqwest::Method::POST, path);
        service
            .send(request.json(&host_is("compute1", "STOPPED", 0)))
            .await
    };
    for nowhere in [
        "/clouds/west/v1/notifications",
        "/clouds/esat/v1/any/notifications",
    ] {
        let message = refused(say(nowhere).await, 400, "badRequest");
        assert_eq!(message, "Host with name compute1 could not be found.");
    }
    assert_eq!(say("/clouds/east/v1/any/notifications").await.status, 202);
    assert_eq!(stack.client.host("east-1").await["failure_state"], "UNREACHABLE");
    let message = refused(
        say("/clouds/east/v1/notifications").await,
        409,
        "conflictingRequest",
    );
    assert!(message.ends_with("is duplicate."), "{message}");
    stack.stop().await;
}
