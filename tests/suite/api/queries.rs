//! Wrong queries and paths, and their errors.

use ringfence_tests::{Ground, Stack};

use super::refused;

crate::on_both_grounds!(bad_queries_are_refused,);

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
        (
            "/hosts?quarantined=yes",
            &["quarantined", "yes", "true, false is allowed"],
        ),
        ("/problems?window_s=59", &["window_s", "59", "60 to 2592000"]),
        (
            "/problems?problem=broken",
            &["problem", "broken", "failed, fenced, returned, condition"],
        ),
        ("/problems?marker=h1", &["marker", "h1"]),
        (
            "/problems?marker=0d1b5d2e-7a2f-4f6e-9a52-0f5f3a1d2c3b",
            &["marker", "no such host"],
        ),
        ("/problems?limit=0", &["limit", "0", "1000"]),
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
    stack.stop().await;
}
