//! The log lines of a fence, found by one id.

use std::time::{Duration, Instant};

use ringfence_tests::{Client, Ground, Machine, Service, Site, set_up};
use serde_json::{Value, json};

use super::distributed::configure;

/// Time during which an idle service must not log.
const QUIET: Duration = Duration::from_secs(2);

fn with_json(machine: Machine) -> Machine {
    machine
        .set("RINGFENCE_LOG_FORMAT", "json")
        .set("RINGFENCE_LOG_LEVEL", "debug")
}

/// All complete log lines of the service so far. The demonstration also prints other lines.
fn lines(service: &Service) -> Vec<Value> {
    let printed = service.printed();
    let whole = printed.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")))
        .collect()
}

/// Waits until the service listens, and returns its URL.
async fn until_it_listens(service: &mut Service) -> String {
    loop {
        service.until_says(&["\"address\":\""]).await;
        if let Some(address) = lines(service).iter().find_map(|line| line["address"].as_str()) {
            return format!("http://{address}");
        }
    }
}

/// Waits for a line of this trace for which `fits` is true.
async fn until_traced(service: &Service, trace: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    let of_trace = |line: &Value| line["trace_id"] == trace && fits(line);
    loop {
        if let Some(line) = lines(service).into_iter().find(of_trace) {
            return line;
        }
        assert!(Instant::now() < deadline, "never said:\n{}", service.printed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_from(line: &Value, part: &str) -> bool {
    line["target"].as_str().unwrap().starts_with(part)
}

/// Asserts that no library logs.
fn assert_only_ringfence_logs(service: &Service) {
    for line in lines(service) {
        assert!(is_from(&line, "ringfence"), "{line}");
    }
}

/// Asserts that idle services log nothing at info.
async fn assert_quiet(services: &[&Service]) {
    let loud = |service: &&Service| {
        let is_loud = |line: &Value| line["level"] != "DEBUG" && line["level"] != "TRACE";
        lines(service).into_iter().filter(is_loud).collect::<Vec<_>>()
    };
    let before: Vec<_> = services.iter().map(loud).collect();
    tokio::time::sleep(QUIET).await;
    let after: Vec<_> = services.iter().map(loud).collect();
    assert_eq!(before, after);
}

/// Asks for a fence; returns the operation, its trace id and the request id.
async fn fence(client: &Client, host: &str) -> (Value, String, String) {
    let body = json!({ "reason": "no heartbeat" });
    let answer = client.post(&format!("/hosts/{host}/fence"), body).await;
    let request = answer.header("x-openstack-request-id").to_owned();
    let operation = answer.ok(202);
    let trace = operation["id"].as_str().unwrap().replace('-', "");
    (operation, trace, request)
}

/// Asserts the API's lines: the answer, the change and the first published task, each with the request's id.
async fn assert_request_is_logged(api: &Service, trace: &str, request: &str, host: &str) {
    let parts = [
        ("ringfence_api", "answered"),
        ("ringfence_engine::log", "the operation began"),
        ("ringfence_engine::relay", "a task was published"),
    ];
    for (part, message) in parts {
        let is_it = |line: &Value| is_from(line, part) && line["message"] == message;
        let line = until_traced(api, trace, is_it).await;
        assert_eq!(line["request_id"], request, "{line}");
        assert_eq!(line["host"], host, "{line}");
    }
    let is_answer = |line: &Value| line["message"] == "answered";
    let answered = until_traced(api, trace, is_answer).await;
    assert_eq!(answered["level"], "INFO", "{answered}");
    assert_eq!(answered["http_method"], "POST", "{answered}");
    assert_eq!(answered["path"], "/hosts/{id}/fence", "{answered}");
    assert_eq!(answered["status"], 202, "{answered}");
    assert!(answered["took_ms"].is_u64(), "{answered}");
}

/// Asserts the engine's lines: claim and result with the worker's name, and one line for FENCED.
async fn assert_result_is_logged(engine: &Service, trace: &str, worker: &str) {
    let claimed = until_traced(engine, trace, |line| line["answer"] == "granted").await;
    assert_eq!(claimed["attempt"], 1, "{claimed}");
    assert_eq!(claimed["worker"], worker, "{claimed}");
    let fenced = until_traced(engine, trace, |line| line["event"] == "host.fenced").await;
    assert_eq!(fenced["level"], "INFO", "{fenced}");
    assert_eq!(fenced["generation"], 1, "{fenced}");
    assert_eq!(fenced["outcome"], "confirmed", "{fenced}");
    assert_eq!(fenced["worker"], worker, "{fenced}");
    let times = lines(engine)
        .iter()
        .filter(|line| line["event"] == "host.fenced" && line["trace_id"] == trace)
        .count();
    assert_eq!(times, 1);
}

async fn assert_attempt_is_logged(worker: &Service, operation: &Value, trace: &str) {
    let is_end = |line: &Value| is_from(line, "ringfence_workers") && line["message"] == "attempt ended";
    let ended = until_traced(worker, trace, is_end).await;
    assert_eq!(ended["operation_id"], operation["id"], "{ended}");
    assert_eq!(ended["attempt"], 1, "{ended}");
    assert_eq!(ended["outcome"], "confirmed", "{ended}");
}

/// Asserts that a task for a zone without a worker is returned, with a warning.
async fn assert_unroutable_task_is_logged(api: &Service, client: &Client) {
    let far = json!({ "name": "h-far", "zone": "far" });
    client.post("/hosts", far).await.ok(201);
    client.seen("h-far", "UNREACHABLE").await.ok(200);
    let (_, trace, request) = fence(client, "h-far").await;
    let released = until_traced(api, &trace, |line| line["outcome"] == "unroutable").await;
    assert_eq!(released["level"], "WARN", "{released}");
    assert_eq!(released["request_id"], request, "{released}");
    assert_eq!(released["attempt"], 1, "{released}");
    assert_eq!(released["resource"], "power", "{released}");
    assert_eq!(released["zone"], "far", "{released}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_id_finds_every_line_about_a_fence_in_one_process() {
    let machine = with_json(Machine::new()).set("RINGFENCE_WORKER_NAME", "worker-1");
    let words = [
        "standalone",
        "--demo",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        "data",
    ];
    let mut service = machine.start("standalone", &words);
    let client = {
        let url = until_it_listens(&mut service).await;
        let token = std::fs::read_to_string(machine.file("data/admin.token")).unwrap();
        Client::new(&url, Some(token.trim()))
    };
    let is_seen = |host: &Value| host["failure_state"] == "UP";
    for number in 1..=6 {
        client.until(&format!("/hosts/sim-{number}"), is_seen).await;
    }
    assert_quiet(&[&service]).await;
    let simulators = simulators(&service);
    let hung = json!({ "condition": "hung" });
    assert_eq!(simulators.put("/hosts/sim-1", hung).await.status, 204);
    let is_gone = |host: &Value| host["failure_state"] == "UNREACHABLE";
    client.until("/hosts/sim-1", is_gone).await;
    let (operation, trace, request) = fence(&client, "sim-1").await;
    client.until_fenced("sim-1").await;
    assert_request_is_logged(&service, &trace, &request, "sim-1").await;
    assert_result_is_logged(&service, &trace, "worker-1").await;
    assert_attempt_is_logged(&service, &operation, &trace).await;
    client.until_settled(&operation).await;
    assert_quiet(&[&service]).await;
    assert_only_ringfence_logs(&service);
    service.stop().await;
}

fn simulators(demo: &Service) -> Client {
    let printed = demo.printed();
    let (_, simulators) = printed.split_once("curl -X PUT ").unwrap();
    let (simulators, _) = simulators.split_once("/hosts/").unwrap();
    Client::new(simulators, None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_id_finds_every_line_about_a_fence_in_all_services() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    // The schema exists already. PostgreSQL sends a notice about that, which libraries would log.
    let again = machine.run(&["db", "migrate"]).await;
    assert_eq!((again.code, again.err.as_str()), (Some(0), ""), "{again:?}");
    let machine = with_json(machine);
    let mut api = machine.start("api", &["api", "--listen", "127.0.0.1:0"]);
    let mut engine = machine.start("engine", &["engine", "--name", "engine-1"]);
    let worker = machine.start("worker", &["worker", "--name", "worker-1"]);
    let client = Client::new(&until_it_listens(&mut api).await, Some(&token));
    engine.until_says(&["an event sink is new"]).await;
    configure(&machine, &client, &["h1"], json!({})).await;
    assert_quiet(&[&api, &engine, &worker]).await;
    let (operation, trace, request) = fence(&client, "h1").await;
    client.until_fenced("h1").await;
    assert_request_is_logged(&api, &trace, &request, "h1").await;
    assert_result_is_logged(&engine, &trace, "worker-1").await;
    assert_attempt_is_logged(&worker, &operation, &trace).await;
    assert_unroutable_task_is_logged(&api, &client).await;
    for service in [api, engine, worker] {
        assert_only_ringfence_logs(&service);
        assert!(!service.printed().contains(&token));
        service.stop().await;
    }
}
