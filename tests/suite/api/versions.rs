//! Versions of the API, request ids, and the methods of a path.

use reqwest::Method;
use ringfence_tests::{Answer, Ground, Stack};

use super::refused;

crate::on_both_grounds!(
    the_version_of_the_api_is_negotiated,
    every_answer_has_a_request_id_and_a_version,
    a_path_names_the_http_methods_that_it_takes,
);

async fn with_version(stack: &Stack, path: &str, versions: &[&str]) -> Answer {
    let mut request = stack.client.request(Method::GET, path);
    for version in versions {
        request = request.header("OpenStack-API-Version", *version);
    }
    stack.client.send(request).await
}

async fn the_version_of_the_api_is_negotiated(ground: Ground) {
    let stack = Stack::start(ground).await;
    for versions in [
        &[][..],
        &["fencing 1.0"],
        &["fencing latest"],
        &["compute 2.1"],
        &["compute 2.1, fencing 1.0"],
        &["compute 2.1", "fencing latest"],
    ] {
        let answer = with_version(&stack, "/hosts", versions).await;
        assert_eq!(answer.status, 200, "{versions:?}");
        assert_eq!(answer.header("OpenStack-API-Version"), "fencing 1.0");
    }
    for version in [
        "1.0",
        "fencing",
        "fencing x",
        "fencing 1.x",
        "fencing 1.0.0",
        "fencing -1.0",
        "",
    ] {
        let answer = with_version(&stack, "/hosts", &[version]).await;
        let words = ["OpenStack-API-Version", "fencing 1.N", "latest"];
        refused(&answer, 400, "fencing.request.invalid", &words);
    }
    for version in ["fencing 1.1", "fencing 9.9", "fencing 0.9"] {
        let answer = with_version(&stack, "/hosts", &[version]).await;
        refused(&answer, 406, "fencing.version.not_acceptable", &["1.0 to 1.0"]);
        // The version document is served with any version, so that a client can find out which there are.
        assert_eq!(with_version(&stack, "/", &[version]).await.status, 200);
    }
    let document = stack.client.with_token(None).get("/").await.ok(200);
    assert_eq!(document["versions"][0]["min_version"], "1.0");
    assert_eq!(document["versions"][0]["max_version"], "1.0");
    stack.stop().await;
}

async fn every_answer_has_a_request_id_and_a_version(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let without_token = client.with_token(None);
    let mut ids = std::collections::BTreeSet::new();
    for (answer, status) in [
        (client.get("/hosts").await, 200),
        (client.get("/hosts?colour=red").await, 400),
        (without_token.get("/hosts").await, 401),
        (client.get("/hostz").await, 404),
        (client.get("/hosts/h9").await, 404),
        (client.delete("/operations").await, 405),
        (with_version(&stack, "/hosts", &["fencing 9.9"]).await, 406),
        (
            client.post("/hosts", serde_json::json!({ "name": "h1" })).await,
            409,
        ),
        (without_token.get("/healthcheck").await, 200),
        (without_token.get("/docs/").await, 200),
        (without_token.get("/docs/nothing.css").await, 404),
    ] {
        assert_eq!(answer.status, status, "{}", answer.body);
        let id = answer.header("x-openstack-request-id").to_owned();
        assert!(id.starts_with("req-"), "{status}: {id:?}");
        assert!(ids.insert(id), "an id was given twice");
        assert!(
            answer.header("Vary").contains("OpenStack-API-Version"),
            "{status}"
        );
        let version = answer.header("OpenStack-API-Version");
        assert_eq!(version, if status == 406 { "" } else { "fencing 1.0" });
        if status >= 400 {
            assert_eq!(
                answer.body["errors"][0]["request_id"],
                answer.header("x-openstack-request-id")
            );
            assert_eq!(answer.body["errors"][0]["status"], status);
        }
    }
    stack.stop().await;
}

async fn a_path_names_the_http_methods_that_it_takes(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    for (method, path, allowed) in [
        (Method::DELETE, "/", "GET"),
        (Method::PUT, "/hosts", "GET, POST"),
        (Method::POST, "/hosts/h1", "DELETE, GET, PATCH"),
        (Method::GET, "/hosts/h1/fence", "POST"),
        (Method::POST, "/hosts/h1/failure-state", "PUT"),
        (Method::PATCH, "/segments/default", "DELETE, GET, PUT"),
        (Method::POST, "/events/stream", "GET"),
        (Method::TRACE, "/audit", "GET"),
        (Method::POST, "/openapi.json", "GET"),
    ] {
        let answer = client.send(client.request(method.clone(), path)).await;
        refused(
            &answer,
            405,
            "fencing.method.not_allowed",
            &[method.as_str(), allowed],
        );
        let mut given: Vec<_> = answer.header("Allow").split(", ").collect();
        given.sort_unstable();
        assert_eq!(given.join(", "), allowed, "{path}");
    }
    stack.stop().await;
}
