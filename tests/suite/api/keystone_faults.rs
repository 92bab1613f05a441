//! A Keystone that is slow or sends garbled answers. A real one cannot be made to do so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringfence_api::{KeystoneConfig, Password, Scope};
use ringfence_tests::{Ground, Site, Stack, StackOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::refused;

/// The answer to a question about a token.
#[derive(Clone)]
struct Fault {
    status: &'static str,
    body: String,
    after: Duration,
}

impl Fault {
    fn says(status: &'static str, body: impl Into<String>) -> Self {
        Self {
            status,
            body: body.into(),
            after: Duration::ZERO,
        }
    }

    fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }
}

/// A token that expires in 2096, and one that expired in 2001, in seconds since 1970.
const LATER: i64 = 4_000_000_000;
const LONG_AGO: i64 = 1_000_000_000;

fn token(expires_at_s: i64) -> Value {
    let at = |seconds| chrono::DateTime::from_timestamp_secs(seconds).unwrap();
    json!({ "token": {
        "user": { "id": "u1", "name": "alice", "domain": { "id": "default", "name": "Default" } },
        "issued_at": at(expires_at_s - 3600), "expires_at": at(expires_at_s),
        "roles": [{ "id": "r1", "name": "reader" }],
        "project": { "id": "p1", "name": "service", "domain": { "id": "default", "name": "Default" } },
    } })
}

/// A Keystone that gives the service its own token, and answers questions about tokens with the fault. Counts the questions.
async fn play(fault: Fault) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let questions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&questions);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, fault.clone(), Arc::clone(&counted)));
        }
    });
    (address, questions)
}

async fn serve(mut stream: TcpStream, fault: Fault, questions: Arc<AtomicUsize>) {
    let mut head = Vec::new();
    let mut chunk = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut chunk).await {
            Ok(read) if read > 0 => head.extend_from_slice(&chunk[..read]),
            _ => return,
        }
    }
    let (status, extra, body) = if head.starts_with(b"POST") {
        let own = "X-Subject-Token: own\r\n";
        ("201 Created", own, token(LATER).to_string())
    } else {
        questions.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(fault.after).await;
        (fault.status, "", fault.body)
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\n{extra}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn stack(keystone: SocketAddr) -> Stack {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let password = Password::new(|| Ok("hush".to_owned()));
    let mut config = KeystoneConfig::new(&format!("http://{keystone}/v3"), password, vec![Scope::Any]);
    config.timeout = Duration::from_millis(1500);
    let options = StackOptions {
        keystone: Some(config),
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(Ground::Standalone).await, options).await
}

async fn unavailable(fault: Fault, word: &str) {
    let (keystone, _) = play(fault).await;
    let stack = stack(keystone).await;
    let asked = stack.client.with_token(Some("token")).get("/hosts").await;
    refused(&asked, 503, "fencing.keystone.unavailable", &[word]);
    assert_eq!(asked.header("retry-after"), "2");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_garbled_answer_of_keystone_gives_503() {
    let page = "<html>not found</html>";
    let long = format!("\"{}\"", "x".repeat(1024 * 1024));
    let no_user = json!({ "token": { "roles": [{ "name": "admin" }] } }).to_string();
    let refusal = json!({ "error": { "code": 403 } }).to_string();
    for (fault, word) in [
        (Fault::says("200 OK", page), "cannot be understood"),
        (Fault::says("200 OK", ""), "cannot be understood"),
        (Fault::says("200 OK", no_user), "cannot be understood"),
        (Fault::says("200 OK", long), "longer"),
        // The answer of a proxy, or of another service.
        (Fault::says("404 Not Found", page), "404"),
        (Fault::says("500 Internal Server Error", page), "500"),
        (Fault::says("302 Found", ""), "302"),
        (Fault::says("403 Forbidden", refusal), "may not validate"),
        // The service's own token is refused again and again.
        (Fault::says("401 Unauthorized", ""), "own user"),
    ] {
        unavailable(fault, word).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keystone_that_is_too_slow_gives_503() {
    let slow = Fault::says("200 OK", token(LATER).to_string()).after(Duration::from_secs(30));
    unavailable(slow, "within 1500 ms").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_with_one_token_ask_keystone_once() {
    let (keystone, questions) =
        play(Fault::says("200 OK", token(LATER).to_string()).after(Duration::from_millis(300))).await;
    let stack = stack(keystone).await;
    let client = stack.client.with_token(Some("token"));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let client = client.clone();
        all.spawn(async move { client.get("/hosts").await.status });
    }
    assert!(all.join_all().await.iter().all(|status| *status == 200));
    assert_eq!(questions.load(Ordering::SeqCst), 1);
    // An expired token does not work, whatever Keystone answers.
    let (keystone, _) = play(Fault::says("200 OK", token(LONG_AGO).to_string())).await;
    let other = self::stack(keystone).await;
    let ended = other.client.with_token(Some("token")).get("/hosts").await;
    refused(&ended, 401, "fencing.unauthorized", &["expired"]);
    other.stop().await;
    stack.stop().await;
}
