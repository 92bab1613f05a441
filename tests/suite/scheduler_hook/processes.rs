//! The hook as a separate service, beside an API.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringfence_tests::{Client, Ground, Machine, Service, Site, set_up, start_api};
use serde_json::{Value, json};

use super::{add, filter, until_allowed};

const MAX_AGE: Duration = Duration::from_millis(1000);

struct Pair {
    // Dropped in this order.
    hook: Service,
    _api: Service,
    _machine: Machine,
    _site: Site,
    api_client: Client,
    client: Client,
}

async fn start() -> Pair {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let machine = machine
        .set(
            "RINGFENCE_SCHEDULER_HOOK_MAX_AGE_MS",
            MAX_AGE.as_millis().to_string(),
        )
        .set("RINGFENCE_SCHEDULER_HOOK_REFRESH_MS", "100");
    let mut api = start_api(&machine);
    let mut hook = machine.start("hook", &["scheduler-hook", "--listen", "127.0.0.1:0"]);
    let url = api.until_it_listens("the API listens").await;
    let api_client = Client::new(&url, Some(&token));
    let url = hook.until_it_listens("the scheduler hook listens").await;
    let client = Client::new(&url, Some(&token));
    Pair {
        _site: site,
        _machine: machine,
        _api: api,
        hook,
        api_client,
        client,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hook_answers_only_its_own_questions() {
    let pair = start().await;
    add(&pair.api_client, "c1", "east", "c1").await;
    until_allowed(&pair.client, "east", &["c1"], &["c1"]).await;
    let question = json!({ "cloud": "east", "host": "c1" });
    let verdict = pair.client.post("/nova/evacuate-check", question.clone()).await;
    assert_eq!(verdict.ok(200)["reason"], "the host is not FENCED");
    let answer = pair.client.post("/nova/filter", question).await;
    assert!(answer.header("x-openstack-request-id").starts_with("req-"));
    let health = pair.client.with_token(None).get("/healthcheck").await.ok(200);
    assert_eq!(health, json!({ "status": "ok", "scheduler_hook": "ok" }));
    assert!(
        pair.client
            .get("/metrics")
            .await
            .body
            .as_str()
            .unwrap()
            .contains("scheduler_hook_hosts 1")
    );
    assert_eq!(pair.client.get("/hosts").await.status, 404);
    assert_eq!(
        pair.api_client.post("/nova/filter", Value::Null).await.status,
        404
    );
}

/// A process that was stopped has missed changes, and does not know that it was stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_was_stopped_for_a_while_gives_no_outdated_answer() {
    let pair = start().await;
    add(&pair.api_client, "c1", "east", "c1").await;
    until_allowed(&pair.client, "east", &["c1"], &["c1"]).await;
    let pid = Pid::from_raw(i32::try_from(pair.hook.pid()).unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    pair.api_client.seen("c1", "UNREACHABLE").await.ok(200);
    // These requests wait in the hook's socket, and are the first that it reads.
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let client = pair.client.clone();
            tokio::spawn(async move {
                client
                    .post("/nova/filter", json!({ "cloud": "east", "hosts": ["c1"] }))
                    .await
            })
        })
        .collect();
    tokio::time::sleep(MAX_AGE + Duration::from_millis(200)).await;
    kill(pid, Signal::SIGCONT).unwrap();
    for answer in waiting {
        let answer = answer.await.unwrap();
        let is_open = answer.status == 200 && answer.body["allowed"] == json!(["c1"]);
        assert!(!is_open, "{}", answer.body);
    }
    let begun = Instant::now();
    until_allowed(&pair.client, "east", &["c1"], &[]).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(
        filter(&pair.client, "east", &["c1"]).await["refused"][0]["reason"],
        "the host is UNREACHABLE, not UP"
    );
}

#[tokio::test]
async fn invalid_age_limits_are_refused() {
    let machine = Machine::new()
        .set("RINGFENCE_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
        .set("RINGFENCE_SCHEDULER_HOOK_MAX_AGE_MS", "1500")
        .set("RINGFENCE_SCHEDULER_HOOK_REFRESH_MS", "1000");
    std::fs::write(machine.file("tokens.toml"), "").unwrap();
    let machine = machine.set("RINGFENCE_API_TOKENS_FILE", "tokens.toml");
    let run = machine.run(&["scheduler-hook"]).await;
    assert_ne!(run.code, Some(0));
    assert!(
        run.err
            .contains("scheduler_hook.max_age_ms is 1500; at least twice scheduler_hook.refresh_ms, 2000"),
        "{}",
        run.err
    );
}
