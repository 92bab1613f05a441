//! Who may do what.

use reqwest::Method;
use ringfence_api::Role;
use ringfence_tests::{Ground, Stack, power_plan};
use serde_json::json;

use super::refused;

crate::on_both_grounds!(roles_and_tokens_are_checked,);

async fn roles_and_tokens_are_checked(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let without_token = stack.client.with_token(None);
    refused(
        &without_token.get("/hosts").await,
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
    without_token.get("/").await.ok(200);
    without_token.get("/healthcheck").await.ok(200);
    let live = without_token.get("/healthcheck?probe=live").await.ok(200);
    assert_eq!(live, json!({ "status": "ok" }));
    let ready = without_token.get("/healthcheck?probe=ready").await.ok(200);
    let parts = json!({ "status": "ok", "database": "ok", "bus": "ok", "scheduler_hook": "ok" });
    assert_eq!(ready, parts);
    let other = without_token.get("/healthcheck?probe=well").await;
    refused(&other, 400, "fencing.request.invalid", &["well", "live", "ready"]);
    without_token.get("/openapi.json").await.ok(200);
    assert_eq!(without_token.get("/docs/").await.status, 200);
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
    let bearer = without_token
        .request(Method::GET, "/hosts")
        .header("Authorization", "Bearer token-of-reader");
    assert_eq!(without_token.send(bearer).await.status, 200);
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
