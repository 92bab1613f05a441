//! The health check: whether the service can do its work.

use ringfence_tests::{Client, Site, Stack, StackOptions, eventually, power_plan};
use serde_json::{Value, json};

/// Waits until the health check says this of the part, and returns its answer. `status` stands for all parts. After an outage of the
/// database the hook may be unhealthy for a moment, until it has read again.
async fn until(client: &Client, part: &str, is_ok: bool) -> (u16, Value) {
    let mut said = (0, Value::Null);
    eventually(async || {
        let health = client.get("/healthcheck").await;
        // The process is alive, whichever peer is away: a restart would not help.
        let live = client.get("/healthcheck?probe=live").await.ok(200);
        assert_eq!(live, json!({ "status": "ok" }));
        let ready = client.get("/healthcheck?probe=ready").await;
        let is_so = (health.body[part] == "ok") == is_ok && ready.status == health.status;
        said = (health.status, health.body);
        is_so
    })
    .await;
    said
}

/// A health check takes no token.
fn names_no_address(health: &Value) {
    assert!(!health.to_string().contains("127.0.0.1"), "{health}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_database_or_broker_is_reported_and_the_process_stays_alive() {
    let options = StackOptions {
        engines: 0,
        workers: 0,
        hosts: 0,
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::with_own_peers().await, options).await;
    // The health check needs no token.
    let client = stack.client.with_token(None);
    let (status, health) = until(&client, "status", true).await;
    let well = json!({ "status": "ok", "database": "ok", "bus": "ok", "scheduler_hook": "ok" });
    assert_eq!((status, health), (200, well));

    let mut rabbit = stack.site.rabbit.take().unwrap();
    let mut rabbit = blocking(move || {
        rabbit.stop();
        rabbit
    })
    .await;
    let (status, health) = until(&client, "bus", false).await;
    assert_eq!(
        (status, &health["status"]),
        (503, &json!("unavailable")),
        "{health}"
    );
    assert_eq!(health["database"], "ok", "{health}");
    assert!(health["bus"].as_str().unwrap().len() > 10, "{health}");
    names_no_address(&health);
    let rabbit = blocking(move || {
        rabbit.start_again().unwrap();
        rabbit
    })
    .await;
    stack.site.rabbit = Some(rabbit);
    let (status, health) = until(&client, "status", true).await;
    assert_eq!(status, 200, "{health}");

    let mut postgres = stack.site.postgres.take().unwrap();
    let mut postgres = blocking(move || {
        postgres.stop();
        postgres
    })
    .await;
    let (status, health) = until(&client, "database", false).await;
    assert_eq!(
        (status, &health["status"]),
        (503, &json!("unavailable")),
        "{health}"
    );
    assert_eq!(health["bus"], "ok", "{health}");
    assert!(health["database"].as_str().unwrap().len() > 10, "{health}");
    names_no_address(&health);
    let postgres = blocking(move || {
        postgres.start_again().unwrap();
        postgres
    })
    .await;
    stack.site.postgres = Some(postgres);
    let (status, health) = until(&client, "status", true).await;
    assert_eq!(status, 200, "{health}");
    stack.stop().await;
}

/// A standby, or a server whose disk is full: it answers, and takes no change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_database_is_an_outage_that_loses_nothing() {
    let stack = Stack::start_with(Site::with_own_peers().await, StackOptions::default()).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let reload = "SELECT pg_reload_conf()";
    stack
        .site
        .past("ALTER SYSTEM SET default_transaction_read_only = on")
        .await;
    stack.site.past(reload).await;
    let health = until(&stack.client, "database", false).await.1;
    assert!(
        health["database"]
            .as_str()
            .unwrap()
            .contains("writes nothing down"),
        "{health}"
    );
    let asked = json!({ "reason": "test" });
    let refused = stack.client.post("/hosts/h1/fence", asked).await;
    assert_eq!(
        (refused.status, refused.code()),
        (503, "fencing.database.unavailable"),
        "{}",
        refused.body
    );
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], false);
    stack
        .site
        .past("ALTER SYSTEM SET default_transaction_read_only = off")
        .await;
    stack.site.past(reload).await;
    until(&stack.client, "database", true).await;
    stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    stack.stop().await;
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}
