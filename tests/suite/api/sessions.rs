//! Browsers that are signed in.

use reqwest::Method;
use ringfence_api::Role;
use ringfence_tests::{
    Answer, Client, Cloud, Ground, SERVICE_PASSWORD, Site, Stack, StackOptions, eventually, power_plan,
};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(
    a_browser_signs_in_acts_and_signs_out,
    a_page_of_another_site_changes_nothing,
    a_session_ends_with_its_token_and_its_stream_with_it,
);

/// What a browser sends of a session.
struct Browser {
    client: Client,
    cookie: String,
}

impl Browser {
    async fn sign_in(stack: &Stack, role: Role) -> (Self, Answer) {
        let token = format!("token-of-{}", role.as_str());
        Self::sign_in_with(stack, json!({ "token": token })).await
    }

    async fn sign_in_with(stack: &Stack, what: Value) -> (Self, Answer) {
        let client = stack.client.with_token(None);
        let signed_in = client.post("/sessions", what).await;
        let cookie = signed_in.header("set-cookie").to_owned();
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        (Self { client, cookie }, signed_in)
    }

    async fn send(&self, method: Method, path: &str, site: Option<&str>, body: Value) -> Answer {
        let mut request = self
            .client
            .request(method.clone(), path)
            .header("Cookie", &self.cookie);
        if let Some(site) = site {
            request = request.header("Sec-Fetch-Site", site);
        }
        if method != Method::GET {
            request = request.json(&body);
        }
        self.client.send(request).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, Some("same-origin"), Value::Null)
            .await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some("same-origin"), body).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, Some("same-origin"), json!({}))
            .await
    }
}

async fn a_browser_signs_in_acts_and_signs_out(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let none = stack.client.with_token(None);
    let ways = none.get("/sessions/ways").await.ok(200);
    assert_eq!(ways, json!({ "ways": ["token"] }));
    refused(
        &none.post("/sessions", json!({ "token": "wrong" })).await,
        401,
        "fencing.unauthorized",
        &["unknown"],
    );
    refused(
        &none.post("/sessions", json!({})).await,
        400,
        "fencing.request.invalid",
        &["token", "keystone", "ticket"],
    );
    let user = json!({ "user": "u", "password": "p" });
    refused(
        &none.post("/sessions", json!({ "keystone": user })).await,
        400,
        "fencing.request.invalid",
        &["no Keystone is configured"],
    );

    let (browser, signed_in) = Browser::sign_in(&stack, Role::Operator).await;
    let set = signed_in.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(
        !set.contains("Secure"),
        "over plain HTTP a browser would not send it: {set}"
    );
    assert!(!set.contains("token-of"), "{set}");
    let session = signed_in.ok(201);
    assert_eq!(
        (&session["actor"], &session["role"]),
        (&json!("a-operator"), &json!("operator"))
    );
    assert_eq!(browser.get("/sessions/current").await.ok(200), session);

    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    browser
        .post("/hosts/h1/fence", json!({ "reason": "it is silent" }))
        .await
        .ok(202);
    let audit = stack.audit("h1").await;
    let started = audit.iter().find(|entry| entry.action == "operation.started");
    assert_eq!(started.unwrap().actor, "a-operator");
    refused(
        &browser.post("/hosts", json!({ "name": "h9" })).await,
        403,
        "fencing.forbidden",
        &["operator", "admin"],
    );

    let (other, _) = Browser::sign_in(&stack, Role::Operator).await;
    let listed = browser.get("/sessions").await.ok(200);
    let current: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().collect();
    assert_eq!(current.len(), 2, "{listed}");
    let is_current = |session: &&&Value| session["is_current"] == true;
    assert_eq!(current.iter().find(is_current).unwrap()["id"], session["id"]);
    let (stranger, _) = Browser::sign_in(&stack, Role::Admin).await;
    let path = format!("/sessions/{}", session["id"].as_str().unwrap());
    refused(
        &stranger.delete(&path).await,
        404,
        "fencing.session.not_found",
        &[],
    );
    other.delete(&path).await.ok(204);
    refused(
        &browser.get("/hosts").await,
        401,
        "fencing.unauthorized",
        &["session has ended"],
    );
    let out = other.delete("/sessions/current").await;
    assert!(
        out.header("set-cookie").contains("Max-Age=0"),
        "{}",
        out.header("set-cookie")
    );
    assert_eq!(other.get("/hosts").await.status, 401);
    stack.stop().await;
}

async fn a_page_of_another_site_changes_nothing(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    let (browser, _) = Browser::sign_in(&stack, Role::Admin).await;
    let reason = json!({ "reason": "x" });
    for site in [None, Some("cross-site"), Some("same-site"), Some("none")] {
        let answer = browser
            .send(Method::POST, "/hosts/h1/fence", site, reason.clone())
            .await;
        refused(&answer, 403, "fencing.page.other", &["another site"]);
    }
    // A browser that does not tell where a request comes from tells at least the page's origin.
    let of = |origin: String| {
        let request = browser.client.request(Method::POST, "/hosts/h1/fence");
        let request = request.header("Cookie", &browser.cookie).header("Origin", origin);
        browser.client.send(request.json(&reason))
    };
    assert_eq!(of("http://example.org".to_owned()).await.status, 403);
    assert_eq!(of("null".to_owned()).await.status, 403);
    assert_eq!(stack.client.get("/hosts/h1").await.ok(200)["generation"], 0);
    of(browser.client.base().to_owned()).await.ok(202);
    stack.stop().await;
}

async fn a_session_ends_with_its_token_and_its_stream_with_it(ground: Ground) {
    let stack = Stack::start(ground).await;
    let (browser, _) = Browser::sign_in(&stack, Role::Reader).await;
    let (other, _) = Browser::sign_in(&stack, Role::Reader).await;
    let request = browser.client.request(Method::GET, "/events/stream");
    let mut stream = request.header("Cookie", &browser.cookie).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let id = browser.get("/sessions/current").await.ok(200)["id"].clone();
    let path = format!("/sessions/{}", id.as_str().unwrap());
    other.delete(&path).await.ok(204);
    while stream.chunk().await.unwrap().is_some() {}
    assert_eq!(browser.get("/sessions/current").await.status, 401);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_of_keystone_signs_in_with_a_password_and_keystone_ends_the_session() {
    let cloud = Cloud::start(3600).await;
    let options = StackOptions {
        keystone: Some(cloud.config()),
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    cloud.user("member", "service", &["member"]).await;
    cloud.project("demo").await;
    cloud.user("tenant", "demo", &["admin"]).await;
    let none = stack.client.with_token(None);
    let ways = none.get("/sessions/ways").await.ok(200);
    assert_eq!(ways, json!({ "ways": ["token", "keystone"] }));
    let user = |name: &str, password: &str, project: &str| json!({ "keystone": { "user": name, "password": password, "project": project } });

    for wrong in [
        user("member", "wrong", "service"),
        user("absent", SERVICE_PASSWORD, "service"),
        user("member", SERVICE_PASSWORD, "demo"),
    ] {
        let (_, answer) = Browser::sign_in_with(&stack, wrong).await;
        refused(&answer, 401, "fencing.unauthorized", &["Keystone refuses"]);
        assert_eq!(answer.header("set-cookie"), "");
    }
    // An admin of a tenant's project has no role here.
    let (_, tenant) = Browser::sign_in_with(&stack, user("tenant", SERVICE_PASSWORD, "demo")).await;
    refused(&tenant, 403, "fencing.forbidden", &[]);

    let (browser, signed_in) =
        Browser::sign_in_with(&stack, user("member", SERVICE_PASSWORD, "service")).await;
    let session = signed_in.ok(201);
    assert_eq!(session["role"], "operator", "{session}");
    assert!(
        session["actor"].as_str().unwrap().starts_with("member@Default"),
        "{session}"
    );
    browser.get("/hosts").await.ok(200);
    let suspension = json!({ "for_s": 60, "reason": "x" });
    let suspended = browser
        .send(
            Method::PUT,
            "/hosts/h1/suspension",
            Some("same-origin"),
            suspension,
        )
        .await;
    suspended.ok(200);

    cloud.revoke_all("member").await;
    eventually(async || browser.get("/hosts").await.status == 401).await;
    stack.stop().await;
}
