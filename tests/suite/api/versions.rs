//! Versions of the API, and request ids.

use reqwest::Method;
use ringfence_tests::{Ground, Stack};

crate::on_both_grounds!(a_version_is_agreed_on_and_every_answer_has_a_request_id,);

async fn a_version_is_agreed_on_and_every_answer_has_a_request_id(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
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
