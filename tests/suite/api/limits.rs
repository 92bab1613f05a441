//! Limits of requests and of event streams.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ringfence_api::{RateLimits, Role, StreamLimits};
use ringfence_tests::{Client, Ground, Site, Stack, StackOptions, eventually};

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
async fn a_caller_over_its_rate_limit_is_told_when_to_retry_and_others_are_served() {
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
async fn an_address_cannot_guess_tokens_without_limit_and_known_callers_there_are_served() {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_caller_cannot_take_all_event_streams_and_a_closed_stream_makes_room() {
    let options = StackOptions {
        streams: StreamLimits {
            of_one_caller: 2,
            in_all: 3,
        },
        hosts: 0,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    let (reader, operator) = (stack.as_role(Role::Reader), stack.as_role(Role::Operator));
    let open = async |client: &Client| {
        let request = client.request(reqwest::Method::GET, "/events/stream");
        request.send().await.unwrap()
    };
    let (first, _second) = (open(&reader).await, open(&reader).await);
    assert_eq!(first.status(), 200);
    let beyond = reader.get("/events/stream").await;
    refused(&beyond, 429, "fencing.streams.limited", &["this caller has 2"]);
    assert_eq!(beyond.header("retry-after"), "30");
    let _third = open(&operator).await;
    let beyond = operator.get("/events/stream").await;
    refused(
        &beyond,
        429,
        "fencing.streams.limited",
        &["all callers together have 3"],
    );
    // Other requests are still served.
    reader.get("/hosts").await.ok(200);
    drop(first);
    eventually(async || open(&operator).await.status() == 200).await;
    stack.stop().await;
}

fn connection(stack: &Stack) -> TcpStream {
    let connection = TcpStream::connect(stack.client.base().strip_prefix("http://").unwrap()).unwrap();
    let limit = Some(Duration::from_secs(60));
    connection.set_read_timeout(limit).unwrap();
    connection
}

/// Sends this, and reads what comes first.
async fn first_answer(mut connection: TcpStream, sent: String) -> String {
    let ask = move || {
        connection.write_all(sent.as_bytes()).unwrap();
        let mut answer = [0; 1024];
        let bytes = connection.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..bytes]).into_owned()
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

/// A connection whose request body never comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_its_body_is_refused_after_half_a_minute() {
    let stack = stack(RateLimits::OFF).await;
    let token = stack.client.token().unwrap();
    let head = format!(
        "POST /hosts HTTP/1.1\r\nHost: here\r\nX-Auth-Token: {token}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
    );
    let answer = first_answer(connection(&stack), head).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("fencing.request.too_slow"), "{answer}");
    stack.stop().await;
}

/// A client that takes an idle connection for its next request gets an answer, also after some seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_is_still_served() {
    let stack = stack(RateLimits::OFF).await;
    let connection = connection(&stack);
    let head = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
    for idle in [0, 8] {
        tokio::time::sleep(Duration::from_secs(idle)).await;
        let answer = first_answer(connection.try_clone().unwrap(), head.to_owned()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    }
    stack.stop().await;
}

/// An HTTP/2 connection can make a server work before any token is looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_is_not_spoken() {
    let stack = stack(RateLimits::OFF).await;
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0";
    let answer = first_answer(connection(&stack), preface.to_owned()).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
        "{answer:?}"
    );
    let upgrade = "GET / HTTP/1.1\r\nHost: here\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
    let answer = first_answer(connection(&stack), upgrade.to_owned()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    stack.stop().await;
}
