//! Callers with tokens of a real Keystone.

use std::time::{Duration, Instant};

use reqwest::Method;
use ringfence_api::{RateLimits, Role};
use ringfence_tests::{Answer, Client, Cloud, Ground, Numbers, Site, Stack, StackOptions, power_plan};
use serde_json::json;

use super::refused;

async fn stack(cloud: &Cloud) -> Stack {
    let options = StackOptions {
        keystone: Some(cloud.config()),
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(Ground::Standalone).await, options).await
}

/// A client with this token.
fn with(stack: &Stack, token: &str) -> Client {
    stack.client.with_token(Some(token))
}

/// Asks until the answer has this status, and returns the answer.
async fn until(client: &Client, status: u16) -> Answer {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = client.get("/hosts").await;
        if answer.status == status {
            return answer;
        }
        assert!(
            Instant::now() < deadline,
            "still {}: {}",
            answer.status,
            answer.body
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keystones_roles_and_scope_decide_and_the_audit_trail_names_the_user() {
    let cloud = Cloud::start(3600).await;
    let stack = stack(&cloud).await;
    stack.plan(power_plan()).await;
    for role in ["reader", "member", "manager", "service"] {
        cloud.user(role, "service", &[role]).await;
    }
    let chief = cloud.user("chief", "service", &["admin"]).await;
    cloud.user("powerless", "service", &["reader"]).await;
    cloud.project("demo").await;
    cloud.user("tenant", "demo", &["member", "admin"]).await;
    let token = async |user: &str| cloud.token(user, "service").await;

    let reader = with(&stack, &token("reader").await);
    reader.get("/hosts").await.ok(200);
    let fence = json!({ "reason": "x" });
    refused(
        &reader.post("/hosts/h1/fence", fence.clone()).await,
        403,
        "fencing.forbidden",
        &["reader", "service"],
    );
    for user in ["member", "manager", "service"] {
        let client = with(&stack, &token(user).await);
        client.seen("h1", "UNREACHABLE").await.ok(200);
        let configuring = client.post("/hosts", json!({ "name": "h9" })).await;
        refused(&configuring, 403, "fencing.forbidden", &["admin"]);
    }
    let admin = with(&stack, &token("chief").await);
    admin.post("/hosts", json!({ "name": "h9" })).await.ok(201);

    // An admin of a tenant's project has no role here.
    let tenant = with(&stack, &cloud.token("tenant", "demo").await);
    refused(
        &tenant.get("/hosts").await,
        403,
        "fencing.forbidden",
        &["project:demo@Default", "project:service@Default"],
    );
    let unknown = with(&stack, "gAAAAABunknown").get("/hosts").await;
    refused(&unknown, 401, "fencing.unauthorized", &["unknown"]);
    let challenge = format!("Keystone uri=\"{}\"", cloud.keystone.url());
    assert_eq!(unknown.header("www-authenticate"), challenge);
    // Static tokens work beside Keystone, and an unknown static token is not sent to Keystone.
    stack.as_role(Role::Reader).get("/hosts").await.ok(200);
    assert_eq!(with(&stack, "rf_unknown").get("/hosts").await.status, 401);

    identity_headers_of_the_caller_are_ignored(&stack, &reader).await;
    a_service_may_ask_for_a_user(&cloud, &stack).await;

    let audit = admin.get("/audit?limit=200").await.ok(200).to_string();
    let who = format!("chief@Default (user {chief}, project service@Default ");
    assert!(audit.contains(&who), "{who} is not in {audit}");
    assert!(audit.contains(", through service@Default"), "{audit}");
    stack.stop().await;
}

async fn identity_headers_of_the_caller_are_ignored(stack: &Stack, reader: &Client) {
    let claims = [
        ("X-Identity-Status", "Confirmed"),
        ("X-User-Id", "1"),
        ("X-User-Name", "admin"),
        ("X-Roles", "admin"),
        ("X-Project-Id", "1"),
        ("X-Project-Name", "service"),
        ("X-Service-Identity-Status", "Confirmed"),
        ("X-Service-Roles", "admin,service"),
        ("OpenStack-System-Scope", "all"),
    ];
    let without_token = stack.client.with_token(None);
    for (client, status) in [(&without_token, 401), (reader, 403)] {
        let asked = client
            .request(Method::POST, "/hosts")
            .json(&json!({ "name": "forged" }));
        let asked = claims
            .iter()
            .fold(asked, |asked, (name, value)| asked.header(*name, *value));
        assert_eq!(client.send(asked).await.status, status);
    }
}

async fn a_service_may_ask_for_a_user(cloud: &Cloud, stack: &Stack) {
    let user = with(stack, &cloud.token("chief", "service").await);
    let through = async |service: &str| {
        let asked = user.request(Method::PATCH, "/hosts/h1");
        let asked = asked
            .header("X-Service-Token", service)
            .json(&json!({ "zone": "a" }));
        user.send(asked).await
    };
    let service = cloud.token("service", "service").await;
    let done = through(&service).await;
    assert_eq!(done.status, 200, "{}", done.body);
    let no_service = cloud.token("powerless", "service").await;
    for bad in [no_service.as_str(), "gAAAAABunknown"] {
        refused(
            &through(bad).await,
            401,
            "fencing.unauthorized",
            &["X-Service-Token"],
        );
    }
}

/// How many tokens Keystone was asked to validate.
async fn questions(stack: &Stack) -> f64 {
    Numbers::of(&stack.client)
        .await
        .sum("ringfence_keystone_validations_total", &[])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_with_a_valid_token_cannot_guess_service_tokens_without_limit() {
    let cloud = Cloud::start(3600).await;
    cloud.user("reader", "service", &["reader"]).await;
    let options = StackOptions {
        keystone: Some(cloud.config()),
        limits: RateLimits {
            failed_authentications_per_minute: 3,
            ..RateLimits::OFF
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    let user = with(&stack, &cloud.token("reader", "service").await);
    let through = async |service: &str| {
        let asked = user.request(Method::GET, "/hosts");
        user.send(asked.header("X-Service-Token", service)).await
    };
    // A static token is never sent to Keystone, also not as a service token.
    user.get("/hosts").await.ok(200);
    let before = questions(&stack).await;
    assert_eq!(through("rf_unknown").await.status, 401);
    assert_eq!(questions(&stack).await, before);
    for guess in ["gAAAAABone", "gAAAAABtwo"] {
        assert_eq!(through(guess).await.status, 401);
    }
    let before = questions(&stack).await;
    let limited = through("gAAAAABthree").await;
    refused(&limited, 429, "fencing.authentication.limited", &["this address"]);
    assert_eq!(questions(&stack).await, before);
    user.get("/hosts").await.ok(200);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_is_refused_soon_and_its_stream_ends() {
    let cloud = Cloud::start(3600).await;
    cloud.user("reader", "service", &["reader"]).await;
    let stack = stack(&cloud).await;
    let token = cloud.token("reader", "service").await;
    let client = with(&stack, &token);
    let mut stream = client
        .request(Method::GET, "/events/stream?after=0")
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status().as_u16(), 200);
    cloud.revoke(&token).await;
    refused(
        &until(&client, 401).await,
        401,
        "fencing.unauthorized",
        &["revoked"],
    );
    while stream.chunk().await.unwrap().is_some() {}

    // The service's own token was revoked too: for its next question it gets a new one.
    cloud.revoke_all("ringfence").await;
    let other = cloud.token("reader", "service").await;
    until(&with(&stack, &other), 200).await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_token_ends_its_stream_and_the_services_own_token_is_renewed() {
    let cloud = Cloud::start(12).await;
    cloud.user("reader", "service", &["reader"]).await;
    let stack = stack(&cloud).await;
    let token = cloud.token("reader", "service").await;
    let client = with(&stack, &token);
    client.get("/hosts").await.ok(200);
    let mut stream = client
        .request(Method::GET, "/events/stream?after=0")
        .send()
        .await
        .unwrap();
    while stream.chunk().await.unwrap().is_some() {}
    assert_eq!(client.get("/hosts").await.status, 401);
    // The service's own first token has expired by now as well.
    let next = cloud.token("reader", "service").await;
    with(&stack, &next).get("/hosts").await.ok(200);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_keystone_is_down_unknown_tokens_get_503_and_not_401() {
    let mut cloud = Cloud::start(3600).await;
    cloud.user("reader", "service", &["reader"]).await;
    let stack = stack(&cloud).await;
    let token = cloud.token("reader", "service").await;
    let client = with(&stack, &token);
    client.get("/hosts").await.ok(200);
    cloud.keystone.crash().unwrap();
    let down = with(&stack, "gAAAAABsomething-else").get("/hosts").await;
    refused(&down, 503, "fencing.keystone.unavailable", &["cannot be reached"]);
    assert_eq!(down.header("retry-after"), "2");
    // The result for this token is cached for a few seconds more.
    until(&client, 503).await;
    stack.as_role(Role::Reader).get("/hosts").await.ok(200);
    let cloud = tokio::task::spawn_blocking(move || {
        cloud.keystone.start_again().unwrap();
        cloud
    })
    .await
    .unwrap();
    until(&client, 200).await;
    drop(cloud);
    stack.stop().await;
}
