//! The services as processes on PostgreSQL and RabbitMQ.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringfence_tests::{
    Client, Ground, Machine, Site, eventually, post_until_taken, set_up, start_api, start_engine,
    start_worker, tell,
};
use serde_json::{Value, json};

use super::{assert_gapless, times_fenced, until_told};

/// Adds `fence_dummy` with a file per host, which reads as on, and a plan that uses it.
pub(crate) async fn configure(machine: &Machine, client: &Client, hosts: &[&str], extra: Value) -> PathBuf {
    client.set_default_policy(json!({})).await.ok(200);
    let dir = machine.file("power");
    std::fs::create_dir_all(&dir).unwrap();
    let mut parameters =
        json!({ "agent": "fence_dummy", "status_file": format!("{}/${{host.name}}", dir.display()) });
    parameters
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    let method = json!({ "name": "power", "driver": "fence-agent", "parameters": parameters });
    post_until_taken(client, "/methods", method).await;
    client
        .post(
            "/plans",
            json!({ "name": "default", "stages": ringfence_tests::power_plan() }),
        )
        .await
        .ok(201);
    for host in hosts {
        std::fs::write(dir.join(host), "on").unwrap();
        client.post("/hosts", json!({ "name": host })).await.ok(201);
        client.seen(host, "UNREACHABLE").await.ok(200);
    }
    dir
}

fn state(dir: &std::path::Path, host: &str) -> String {
    std::fs::read_to_string(dir.join(host)).unwrap()
}

/// The time that `fence_dummy` alone needs for status, off and status: the floor of a fence with it.
fn bare_agent(dir: &std::path::Path, host: &str) -> Duration {
    let begun = Instant::now();
    for action in ["status", "off", "status"] {
        let mut child = Command::new("/usr/sbin/fence_dummy")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = format!("status_file={}\naction={action}\n", dir.join(host).display());
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        child.wait().unwrap();
    }
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_fences_a_host_from_the_command_line() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let mut api = start_api(&machine);
    let engines = [
        start_engine(&machine, "engine-1"),
        start_engine(&machine, "engine-2"),
    ];
    let workers = [
        start_worker(&machine, "worker-1"),
        start_worker(&machine, "worker-2"),
    ];
    let url = api.until_it_listens("the API listens").await;
    let client = Client::new(&url, Some(&token));
    let dir = configure(&machine, &client, &["h1", "h2"], json!({})).await;
    let words = [
        "host",
        "fence",
        "h1",
        "--url",
        &url,
        "--reason",
        "no heartbeat",
        "--wait",
    ];
    let without_token = machine.run(&words).await;
    assert_eq!(without_token.code, Some(7), "{without_token:?}");
    let machine = machine.set("RINGFENCE_TOKEN", &token);
    let fenced = machine.run(&words).await;
    assert_eq!(fenced.code, Some(0), "{fenced:?}");
    assert!(
        fenced.out.contains("FENCED") && !fenced.out.contains("UNFENCED"),
        "{fenced:?}"
    );
    assert_eq!(state(&dir, "h1"), "off");
    let begun = Instant::now();
    client.fence("h2").await;
    client.until_fenced("h2").await;
    let took = begun.elapsed();
    assert_eq!(state(&dir, "h2"), "off");
    std::fs::write(dir.join("h2"), "on").unwrap();
    let floor = bare_agent(&dir, "h2");
    tell(&format!(
        "POST to FENCED with fence_dummy: {took:?}; the agent alone (status, off, status): {floor:?}"
    ));
    assert_gapless(&client.get("/events?limit=1000").await.ok(200));
    api.stop().await;
    for service in engines.into_iter().chain(workers) {
        service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fence_of_an_engine_and_a_worker_killed_during_an_off_goes_on_with_the_others() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let mut api = start_api(&machine);
    let mut engines = vec![
        start_engine(&machine, "engine-1"),
        start_engine(&machine, "engine-2"),
    ];
    let mut workers = vec![
        start_worker(&machine, "worker-1"),
        start_worker(&machine, "worker-2"),
    ];
    let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
    let dir = configure(&machine, &client, &["h1"], json!({ "delay": 3 })).await;
    let operation = client.fence("h1").await;
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    let first = |operation: &Value| operation["stages"][0]["tasks"][0]["attempts"][0].clone();
    let claimed = client
        .until(&path, |operation| first(operation)["status"] == "claimed")
        .await;
    let at_work = usize::from(first(&claimed)["worker"] == "worker-2");
    workers.remove(at_work).kill();
    engines.remove(0).kill();
    assert_eq!(client.host("h1").await["fencing_state"], "UNFENCED");
    client.until_fenced("h1").await;
    assert_eq!(state(&dir, "h1"), "off");
    let operation = client.until_settled(&operation).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    assert_eq!(first(&operation)["outcome"], "unknown", "{operation}");
    let events = until_told(&client, "h1", &json!(1)).await;
    assert_gapless(&events);
    assert_eq!(times_fenced(&events, "h1", &json!(1)), 1);
    api.stop().await;
    for service in engines.into_iter().chain(workers) {
        service.stop().await;
    }
}

fn port(url: &str) -> String {
    format!("127.0.0.1:{}", url::Url::parse(url).unwrap().port().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_start_before_database_and_broker_log_it_and_retry() {
    let mut site = Site::with_own_peers().await;
    let (machine, token) = set_up(&site).await;
    let (mut postgres, mut rabbit) = (site.postgres.take().unwrap(), site.rabbit.take().unwrap());
    let stopped = tokio::task::spawn_blocking(move || {
        postgres.stop();
        rabbit.stop();
        (postgres, rabbit)
    });
    let (mut postgres, mut rabbit) = stopped.await.unwrap();
    let (database, broker) = (port(&site.database_url), port(site.amqp_url.as_deref().unwrap()));
    let mut api = start_api(&machine);
    let mut engine = start_engine(&machine, "engine-1");
    let mut worker = start_worker(&machine, "worker-1");
    api.until_says(&["database", &database]).await;
    engine.until_says(&["database", &database]).await;
    worker.until_says(&["broker", &broker]).await;
    let there = tokio::task::spawn_blocking(move || {
        postgres.start_again().unwrap();
        rabbit.start_again().unwrap();
        (postgres, rabbit)
    });
    let peers = there.await.unwrap();
    let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
    let dir = configure(&machine, &client, &["h1"], json!({})).await;
    client.fence("h1").await;
    client.until_fenced("h1").await;
    assert_eq!(state(&dir, "h1"), "off");
    for service in [api, engine, worker] {
        assert!(!service.printed().contains(&token));
        service.stop().await;
    }
    tokio::task::spawn_blocking(move || drop(peers)).await.unwrap();
}

/// Many tasks wait, and each is published again twice a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_broker_is_logged_once_a_minute_with_the_number_of_waiting_tasks() {
    const HOSTS: usize = 40;
    let mut site = Site::with_own_peers().await;
    let (machine, token) = set_up(&site).await;
    let machine = machine.set("RINGFENCE_LOG_LEVEL", "debug");
    let mut api = start_api(&machine);
    let worker = start_worker(&machine, "worker-1");
    let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
    let hosts: Vec<String> = (1..=HOSTS).map(|number| format!("h{number}")).collect();
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    configure(&machine, &client, &names, json!({})).await;
    let mut rabbit = site.rabbit.take().unwrap();
    let rabbit = tokio::task::spawn_blocking(move || {
        rabbit.stop();
        rabbit
    });
    let rabbit = rabbit.await.unwrap();
    for host in &hosts {
        client.fence(host).await;
    }
    let times = |printed: &str, words: &str| printed.matches(words).count();
    let tried_again = async || times(&api.printed(), "a task could not be published") > 3 * HOSTS;
    eventually(tried_again).await;
    let printed = api.printed();
    let warnings: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("WARN") && line.contains("publish"))
        .collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("waiting="),
        "{warnings:?}"
    );
    for service in [api, worker] {
        service.stop().await;
    }
    tokio::task::spawn_blocking(move || drop((rabbit, site)))
        .await
        .unwrap();
}
