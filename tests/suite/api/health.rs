//! Whether the service says itself that it can do its work.

use ringfence_tests::{Client, Site, Stack, StackOptions, eventually};
use serde_json::{Value, json};

/// The service's own word, once it says this of the part, or of all of them, and goes on saying it: what the hook read before the database
/// went may have become too old when it is back, until the hook reads again.
async fn until(client: &Client, part: &str, is_ok: bool) -> (u16, Value) {
    let mut said = (0, Value::Null);
    eventually(async || {
        let health = client.get("/healthcheck").await;
        // Nobody has to start it again for what somebody else lacks.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_away_is_told_and_the_process_is_called_alive_all_the_same() {
    let options = StackOptions {
        engines: 0,
        workers: 0,
        hosts: 0,
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::with_own_peers().await, options).await;
    // Nobody has to say who it is.
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

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}
