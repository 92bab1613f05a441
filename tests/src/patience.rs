//! Waiting for a service that is about to begin.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Client;

/// Sends it until it is taken. Methods are checked by a worker, and until one has begun the answer is 503: try again.
pub async fn post_until_taken(client: &Client, path: &str, body: Value) -> Value {
    for _ in 0..100 {
        let answer = client.post(path, body.clone()).await;
        if answer.status != 503 {
            return answer.ok(201);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    client.post(path, body).await.ok(201)
}

/// Waits until it is so.
pub async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so().await {
        assert!(Instant::now() < deadline, "it never came to it");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
