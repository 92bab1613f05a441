//! Waiting for a service and for conditions.

use std::panic::Location;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Client;

const PATIENCE: Duration = Duration::from_secs(60);

/// Posts until a worker has checked the method: while no worker runs, the API answers 503.
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

/// Waits until the condition is true; a panic names the caller's line.
#[track_caller]
pub fn eventually(mut is_true: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + PATIENCE;
        while !is_true().await {
            assert!(
                Instant::now() < deadline,
                "the condition at {caller} did not become true within {PATIENCE:?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
