//! The traces that an OpenTelemetry collector gets of a fence. No fence waits for a collector.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use futures_util::future::join_all;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use ringfence_tests::{
    Behaviour, Client, Ground, Machine, Receiver, Service, Site, eventually, set_up, start_api, start_engine,
    start_worker,
};
use serde_json::{Value, json};

use super::distributed::configure;

const HEADER: &str = "Bearer hush-collector-7f3a";

/// A span, with the role of the process that sent it.
type Sent = (String, Span);

/// All spans that the collector has received.
fn spans(collector: &Receiver) -> Vec<Sent> {
    let mut all = Vec::new();
    for request in collector.received() {
        let request = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
        for of_process in request.resource_spans {
            let resource: BTreeMap<_, _> = of_process
                .resource
                .unwrap()
                .attributes
                .into_iter()
                .map(|attribute| (attribute.key.clone(), format!("{attribute:?}")))
                .collect();
            assert!(resource["service.name"].contains("\"ringfence\""), "{resource:?}");
            let role = ["api", "engine", "worker"]
                .into_iter()
                .find(|role| resource["ringfence.role"].contains(&format!("\"{role}\"")));
            let spans = of_process.scope_spans.into_iter().flat_map(|scope| scope.spans);
            all.extend(spans.map(|span| (role.unwrap().to_owned(), span)));
        }
    }
    all
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_trace(collector: &Receiver, trace: &str) -> Vec<Sent> {
    let spans = spans(collector).into_iter();
    spans.filter(|(_, span)| hex(&span.trace_id) == trace).collect()
}

/// The names from the root to this span, each with its process.
fn line_of(spans: &[Sent], span: &Span) -> String {
    let mut line = Vec::new();
    let mut at = Some(span);
    while let Some(span) = at {
        let (role, _) = spans.iter().find(|(_, one)| one == span).unwrap();
        line.push(format!("{role}.{}", span.name));
        assert!(line.len() < 64, "a span is its own parent: {line:?}");
        at = spans
            .iter()
            .find(|(_, one)| one.span_id == span.parent_span_id)
            .map(|(_, one)| one);
        assert!(
            at.is_some() || span.parent_span_id.is_empty(),
            "the collector lacks the parent of {span:?}"
        );
    }
    line.reverse();
    line.join(" > ")
}

fn lines_of(spans: &[Sent]) -> Vec<String> {
    spans.iter().map(|(_, span)| line_of(spans, span)).collect()
}

fn tell_collector(machine: Machine, url: &str) -> Machine {
    let file = machine.file("collector.headers");
    std::fs::write(&file, format!("authorization: {HEADER}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    machine
        .set("RINGFENCE_TRACES_OTLP_ENDPOINT", url)
        .set("RINGFENCE_TRACES_HEADERS_FILE", file.display().to_string())
        .set("RINGFENCE_TRACES_TIMEOUT_MS", "500")
}

/// Sets variables that other programs read, and Ringfence must not: they would send spans or headers to another place.
fn mislead(machine: Machine) -> Machine {
    let unreachable = "http://127.0.0.1:1";
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", unreachable),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", unreachable),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=another,x-other=1"),
        (
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "authorization=another,x-other=1",
        ),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_SERVICE_NAME", "another"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=another"),
        ("OTEL_TRACES_SAMPLER", "always_off"),
        ("OTEL_SDK_DISABLED", "true"),
        ("HTTP_PROXY", unreachable),
        ("http_proxy", unreachable),
        ("ALL_PROXY", unreachable),
    ]
    .into_iter()
    .fold(machine, |machine, (name, value)| machine.set(name, value))
}

async fn start(machine: &Machine, token: &str) -> (Client, [Service; 3]) {
    let mut api = start_api(machine);
    let engine = start_engine(machine, "engine-1");
    let worker = start_worker(machine, "worker-1");
    let url = api.until_it_listens("the API listens").await;
    (Client::new(&url, Some(token)), [api, engine, worker])
}

fn trace_of(operation: &Value) -> String {
    operation["id"].as_str().unwrap().replace('-', "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_fence_is_one_trace_through_three_processes() {
    let collector = Receiver::start(Behaviour::Takes);
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let machine = tell_collector(machine, &collector.base()).set("RINGFENCE_SECRET_BMC", "hush-bmc-91c2");
    let machine = mislead(machine);
    let (client, services) = start(&machine, &token).await;
    configure(&machine, &client, &["h1"], json!({})).await;
    let asked = client.post("/methods/power/check", json!({ "host": "h1" })).await;
    asked.ok(200);
    let operation = client.fence("h1").await;
    client.until_fenced("h1").await;
    client.until_settled(&operation).await;
    for service in services {
        service.stop().await;
    }

    let received = collector.received();
    assert!(received.iter().all(|one| one.header("authorization") == HEADER));
    assert!(
        received
            .iter()
            .all(|one| one.header("content-type") == "application/x-protobuf")
    );
    for one in &received {
        assert!(!one.headers.contains_key("x-other") && !one.headers.contains_key("content-encoding"));
        let text = String::from_utf8_lossy(&one.body);
        for secret in [token.as_str(), HEADER, "hush"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    let trace = of_trace(&collector, &trace_of(&operation));
    let lines = lines_of(&trace);
    let attempt = "api.request > api.change > api.publish > worker.attempt";
    for wanted in [
        "api.request",
        "api.request > api.change",
        "api.request > api.change > api.publish",
        attempt,
        &format!("{attempt} > engine.claim > engine.change"),
        &format!("{attempt} > worker.read"),
        &format!("{attempt} > worker.command"),
        &format!("{attempt} > engine.result > engine.change"),
    ] {
        assert!(lines.iter().any(|line| line == wanted), "{wanted} in {lines:#?}");
    }
    assert!(
        lines.iter().all(|line| line.starts_with("api.request")),
        "{lines:#?}"
    );
    // The attempt sends a command, and then reads.
    let of_attempt = |name: &str| {
        lines
            .iter()
            .filter(|line| **line == format!("{attempt} > {name}"))
            .count()
    };
    assert!(
        of_attempt("worker.read") >= 1 && of_attempt("worker.command") == 1,
        "{lines:#?}"
    );
    for (_, span) in &trace {
        assert!(span.start_time_unix_nano > 0 && span.end_time_unix_nano >= span.start_time_unix_nano);
    }
    let all = spans(&collector);
    let lines = lines_of(&all);
    let question = "api.request > api.question > worker.answer > worker.read";
    assert!(lines.iter().any(|line| line == question), "{lines:#?}");
}

fn host_of(span: &Span) -> Option<&str> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == "host")?;
    match attribute.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(host) => Some(host),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fences_that_are_decided_together_have_separate_traces() {
    const REQUESTS: usize = 3;
    let hosts = ["h1", "h2", "h3", "h4", "h5", "h6"];
    let collector = Receiver::start(Behaviour::Takes);
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let machine = tell_collector(machine, &collector.base());
    let (client, [api, engine, worker]) = start(&machine, &token).await;
    configure(&machine, &client, &hosts, json!({})).await;
    // No fence ends before every request has been answered.
    worker.stop().await;
    let asked = hosts.iter().flat_map(|host| std::iter::repeat_n(host, REQUESTS));
    let answers = join_all(asked.map(|host| client.fence(host))).await;
    let worker = start_worker(&machine, "worker-2");
    for answer in &answers {
        client.until_settled(answer).await;
    }
    for service in [api, engine, worker] {
        service.stop().await;
    }

    for (host, answers) in hosts.into_iter().zip(answers.chunks(REQUESTS)) {
        // The first request began the fence, and the others joined it.
        assert!(answers.iter().all(|answer| answer["id"] == answers[0]["id"]));
        let trace = of_trace(&collector, &trace_of(&answers[0]));
        let lines = lines_of(&trace);
        let count = |wanted: &str| lines.iter().filter(|line| *line == wanted).count();
        assert_eq!(count("api.request"), REQUESTS, "{lines:#?}");
        assert_eq!(count("api.request > api.change"), REQUESTS, "{lines:#?}");
        assert_eq!(count("api.request > api.change > api.publish"), 1, "{lines:#?}");
        let attempt = "api.request > api.change > api.publish > worker.attempt";
        assert!(count(attempt) >= 1, "{lines:#?}");
        assert!(
            count(&format!("{attempt} > engine.result > engine.change")) >= 1,
            "{lines:#?}"
        );
        let of_others = trace
            .iter()
            .filter_map(|(_, span)| host_of(span))
            .find(|of| *of != host);
        assert_eq!(of_others, None, "in the trace of {host}: {lines:#?}");
    }
    let all = spans(&collector);
    let ids: BTreeSet<_> = all
        .iter()
        .map(|(_, span)| (&span.trace_id, &span.span_id))
        .collect();
    assert_eq!(ids.len(), all.len(), "two spans share an id");
}

/// Fences a host while spans cannot be delivered to `url`, and stops all services.
async fn assert_fences_without(url: &str) {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let machine = tell_collector(machine, url);
    let (client, services) = start(&machine, &token).await;
    configure(&machine, &client, &["h1"], json!({})).await;
    let operation = client.fence("h1").await;
    client.until_fenced("h1").await;
    client.until_settled(&operation).await;
    for service in &services {
        eventually(async || service.printed().contains("spans were lost")).await;
    }
    let metrics = client
        .request(reqwest::Method::GET, "/metrics")
        .send()
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    let lost = metrics
        .lines()
        .find_map(|line| line.strip_prefix("ringfence_trace_spans_lost_total{why=\"not_taken\"} "))
        .unwrap_or_else(|| panic!("{metrics}"));
    assert!(lost.parse::<f64>().unwrap() > 0.0, "{metrics}");
    for service in services {
        assert!(!service.printed().contains("hush"));
        service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_hangs_delays_no_fence() {
    let collector = Receiver::start(Behaviour::Hangs);
    assert_fences_without(&collector.base()).await;
    assert!(!collector.received().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_collector_delays_no_fence() {
    let unreachable = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = unreachable.local_addr().unwrap();
    drop(unreachable);
    assert_fences_without(&format!("http://{address}")).await;
}
