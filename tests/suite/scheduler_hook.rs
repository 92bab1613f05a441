//! The scheduler hook's answers to schedulers and to evacuations.

mod asking;
mod confirming;
mod evacuating;
mod freshness;
mod naming;
mod package;
mod processes;

use std::time::Duration;

use ringfence_tests::{Client, Ground, Site, Stack, StackOptions};
use serde_json::{Value, json};

/// A stack with this configuration of the hook.
async fn stack(ground: Ground, hook: ringfence_scheduler_hook::HookConfig) -> Stack {
    let options = StackOptions {
        hook,
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(ground).await, options).await
}

/// Adds a host of a cloud that is UP.
async fn add(client: &Client, name: &str, cloud: &str, known_as: &str) {
    let host = json!({ "name": name, "backend": "nova", "cloud": cloud, "known_as": known_as });
    client.post("/hosts", host).await.ok(201);
    client.seen(name, "UP").await.ok(200);
}

/// Moves the simulated host h1 into a cloud, and reports it UP.
async fn join(stack: &Stack, cloud: &str) {
    let change = json!({ "backend": "nova", "cloud": cloud });
    stack.client.patch("/hosts/h1", change).await.ok(200);
    stack.client.seen("h1", "UP").await.ok(200);
}

async fn filter(client: &Client, cloud: &str, hosts: &[&str]) -> Value {
    let question = json!({ "cloud": cloud, "hosts": hosts });
    client.post("/nova/filter", question).await.ok(200)
}

async fn check(client: &Client, question: Value) -> Value {
    client.post("/nova/evacuate-check", question).await.ok(200)
}

/// Waits until exactly these hosts are allowed.
async fn until_allowed(client: &Client, cloud: &str, asked: &[&str], allowed: &[&str]) -> Value {
    let is_so = |answer: &Value| answer["allowed"] == json!(allowed);
    until_answered(client, cloud, asked, is_so).await
}

/// Waits for an answer for which `is` is true.
async fn until_answered(
    client: &Client,
    cloud: &str,
    asked: &[&str],
    is_it: impl Fn(&Value) -> bool,
) -> Value {
    for _ in 0..500 {
        let answer = client
            .post("/nova/filter", json!({ "cloud": cloud, "hosts": asked }))
            .await;
        if answer.status == 200 && is_it(&answer.body) {
            return answer.body;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let last = filter(client, cloud, asked).await;
    panic!("the answer about {asked:?} did not become the expected one; the last was: {last}");
}
