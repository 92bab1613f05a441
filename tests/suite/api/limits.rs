//! How often one may ask.

use ringfence_api::{RateLimits, Role};
use ringfence_tests::{Ground, Site, Stack, StackOptions};

use super::refused;

async fn stack(limits: RateLimits) -> Stack {
    let options = StackOptions {
        limits,
        hosts: 0,
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(Ground::Standalone).await, options).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_too_often_is_told_when_to_come_back_and_others_are_served() {
    let limits = RateLimits {
        requests_per_second: 1,
        request_burst: 5,
        ..RateLimits::OFF
    };
    let stack = stack(limits).await;
    let reader = stack.as_role(Role::Reader);
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(reader.get("/hosts").await.status);
    }
    assert_eq!(statuses[..5], [200; 5]);
    assert!(statuses[5..].contains(&429), "{statuses:?}");
    let mut last = reader.get("/hosts").await;
    while last.status == 200 {
        last = reader.get("/hosts").await;
    }
    refused(&last, 429, "fencing.rate.limited", &["try again in"]);
    let wait: u64 = last.header("retry-after").parse().unwrap();
    assert!((1..=2).contains(&wait), "{wait}");
    stack.as_role(Role::Operator).get("/hosts").await.ok(200);
    reader.get("/healthcheck").await.ok(200);
    let numbers = stack.client.get("/metrics").await;
    let text = numbers.body.as_str().unwrap();
    assert!(
        text.contains("ringfence_api_requests_refused_total{limit=\"caller\"}"),
        "{text}"
    );
    tokio::time::sleep(std::time::Duration::from_secs(wait)).await;
    reader.get("/hosts").await.ok(200);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_cannot_try_tokens_without_end_and_known_callers_there_go_on() {
    let limits = RateLimits {
        failed_authentications_per_minute: 5,
        ..RateLimits::OFF
    };
    let stack = stack(limits).await;
    let guesser = stack.client.with_token(Some("guess"));
    for _ in 0..5 {
        assert_eq!(guesser.get("/hosts").await.status, 401);
    }
    let limited = guesser.get("/hosts").await;
    refused(&limited, 429, "fencing.authentication.limited", &["this address"]);
    assert!(limited.header("retry-after").parse::<u64>().unwrap() >= 1);
    stack.as_role(Role::Reader).get("/hosts").await.ok(200);
    stack.stop().await;
}
