//! Answers from a database that may be out of date.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ringfence_scheduler_hook::{Confirmation, HookConfig};
use ringfence_tests::Ground;
use serde_json::json;

use super::{add, check, filter, join, stack, until_allowed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_opens_something_is_confirmed_and_one_that_closes_is_given_without() {
    let (holds, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (held, counted) = (Arc::clone(&holds), Arc::clone(&asked));
    let confirmation = Confirmation::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let holds = held.load(Ordering::SeqCst);
        Box::pin(async move { holds.then_some(()).ok_or("another one leads".to_owned()) })
    });
    let config = HookConfig {
        confirmation,
        ..HookConfig::default()
    };
    let stack = stack(Ground::Standalone, config).await;
    let client = &stack.client;
    stack.plan(ringfence_tests::power_plan()).await;
    join(&stack, "east").await;
    add(client, "c1", "east", "c1").await;
    stack.hang("h1").await;
    client.fence("h1").await;
    let question = json!({ "cloud": "east", "host": "h1" });
    while check(client, question.clone()).await["allowed"] != true {}
    until_allowed(client, "east", &["h1", "c1"], &["c1"]).await;

    holds.store(false, Ordering::SeqCst);
    let opening = [
        ("/nova/filter", json!({ "cloud": "east", "hosts": ["h1", "c1"] })),
        ("/nova/evacuate-check", question),
        ("/kubernetes/filter?cluster=east", json!({ "NodeNames": ["c1"] })),
    ];
    for (path, question) in opening {
        let answer = client.post(path, question).await;
        assert_eq!(
            (answer.status, answer.code()),
            (503, "fencing.lead.unconfirmed"),
            "{path}"
        );
        assert!(answer.details().contains("another one leads"), "{answer:?}");
    }
    let before = asked.load(Ordering::SeqCst);
    assert_eq!(filter(client, "east", &["h1"]).await["allowed"], json!([]));
    let closed = check(client, json!({ "cloud": "east", "host": "c1" })).await;
    assert_eq!(closed["allowed"], false);
    assert_eq!(
        asked.load(Ordering::SeqCst),
        before,
        "a closed answer was confirmed"
    );
    stack.stop().await;
}
