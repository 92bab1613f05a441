//! The age of an answer.

use std::time::{Duration, Instant};

use ringfence_scheduler_hook::HookConfig;
use ringfence_tests::{Ground, Site, Stack, StackOptions};
use serde_json::json;
use sqlx::Connection;

use super::{add, join, stack, until_allowed};

crate::on_both_grounds!(a_change_reaches_the_hook_before_its_next_read);

/// The hook reads the database so seldom that only a notification brings the change in time.
async fn a_change_reaches_the_hook_before_its_next_read(ground: Ground) {
    let config = HookConfig {
        refresh_every: Duration::from_secs(30),
        max_age: Duration::from_secs(60),
        ..HookConfig::default()
    };
    let stack = stack(ground, config).await;
    stack.plan(ringfence_tests::power_plan()).await;
    join(&stack, "east").await;
    let begun = Instant::now();
    until_allowed(&stack.client, "east", &["h1"], &["h1"]).await;
    stack.hang("h1").await;
    until_allowed(&stack.client, "east", &["h1"], &[]).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    stack.stop().await;
}

const MAX_AGE: Duration = Duration::from_millis(1500);

fn quick() -> HookConfig {
    HookConfig {
        refresh_every: Duration::from_millis(100),
        max_age: MAX_AGE,
        ..HookConfig::default()
    }
}

/// Reads are blocked while a change is committed: the hook cannot see the change, and still must not allow the host beyond the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_state_cannot_be_read_is_not_allowed_beyond_the_age_limit() {
    let stack = stack(Ground::Distributed, quick()).await;
    add(&stack.client, "c1", "east", "c1").await;
    until_allowed(&stack.client, "east", &["c1"], &["c1"]).await;
    let mut holder = sqlx::PgConnection::connect(&stack.site.database_url)
        .await
        .unwrap();
    let hold = "BEGIN; LOCK TABLE operations IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(hold).execute(&mut holder).await.unwrap();
    stack
        .site
        .past("UPDATE hosts SET failure_state = 'UNREACHABLE' WHERE name = 'c1'")
        .await;
    let committed = Instant::now();

    let (mut open, mut refused) = (0, 0);
    while committed.elapsed() < MAX_AGE * 2 {
        let asked = Instant::now();
        let question = json!({ "cloud": "east", "hosts": ["c1"] });
        let answer = stack.client.post("/nova/filter", question).await;
        if answer.status == 200 {
            assert_eq!(answer.body["allowed"], json!(["c1"]));
            assert!(asked - committed <= MAX_AGE, "open after {:?}", asked - committed);
            open += 1;
        } else {
            assert_eq!((answer.status, answer.code()), (503, "fencing.hook.stale"));
            refused += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(open > 0 && refused > 0, "{open} {refused}");
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    until_allowed(&stack.client, "east", &["c1"], &[]).await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_database_no_host_is_allowed_beyond_the_age_limit() {
    let options = StackOptions {
        hook: quick(),
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::with_own_peers().await, options).await;
    add(&stack.client, "c1", "east", "c1").await;
    until_allowed(&stack.client, "east", &["c1"], &["c1"]).await;
    let mut postgres = stack.site.postgres.take().unwrap();
    let mut postgres = tokio::task::spawn_blocking(move || {
        postgres.stop();
        postgres
    })
    .await
    .unwrap();
    tokio::time::sleep(MAX_AGE).await;

    let filter = json!({ "cloud": "east", "hosts": ["c1"] });
    let answer = stack.client.post("/nova/filter", filter).await;
    assert_eq!(
        (answer.status, answer.code()),
        (503, "fencing.hook.stale"),
        "{}",
        answer.details()
    );
    assert!(
        answer.details().contains("at most 1500 ms ago"),
        "{}",
        answer.details()
    );
    let asked = Instant::now();
    let check = json!({ "cloud": "east", "host": "c1" });
    let answer = stack.client.post("/nova/evacuate-check", check).await;
    assert_eq!(
        (answer.status, answer.code()),
        (503, "fencing.database.unavailable")
    );
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    let health = stack.client.get("/healthcheck").await;
    assert_eq!(health.status, 503);
    assert_ne!(health.body["scheduler_hook"], "ok");

    let postgres = tokio::task::spawn_blocking(move || {
        postgres.start_again().unwrap();
        postgres
    });
    stack.site.postgres = Some(postgres.await.unwrap());
    until_allowed(&stack.client, "east", &["c1"], &["c1"]).await;
    stack.stop().await;
}
