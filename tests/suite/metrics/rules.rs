//! The alert rules and the dashboard that come with Ringfence, compared with the metrics that the program serves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringfence_bus::Queue;
use ringfence_lab::find_program;
use ringfence_tests::{Client, Ground, Machine, Numbers, Stack, eventually, power_plan};
use serde_json::{Value, json};

use super::{forge, numbers_of, until};
use crate::subscriptions::event_sinks::exchange_at;

fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(at_root(path)).unwrap()
}

#[track_caller]
fn promtool(words: &[&str], path: &Path) {
    let Some(program) = find_program("promtool") else {
        panic!(
            "promtool is not installed; run the tests with `cargo xtask test`, or install the package prometheus"
        );
    };
    let done = Command::new(program).args(words).arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

/// Every word that looks like the name of a Ringfence metric.
fn metrics_in(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("ringfence_"))
        .map(ToOwned::to_owned)
        .collect()
}

/// The queries of the dashboard.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    targets
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_alert_rules_pass_promtools_tests() {
    promtool(
        &["check", "rules"],
        &at_root("deploy/prometheus/ringfence.rules.yml"),
    );
    promtool(
        &["test", "rules"],
        &at_root("deploy/prometheus/ringfence.tests.yml"),
    );
}

#[test]
fn the_guide_explains_every_alert() {
    let (rules, guide) = (
        read("deploy/prometheus/ringfence.rules.yml"),
        read("docs/operations.md"),
    );
    let headings: BTreeSet<String> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .map(str::to_lowercase)
        .collect();
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() >= 8, "{alerts:?}");
    for alert in alerts {
        assert!(
            headings.contains(&alert.to_lowercase()),
            "the guide does not explain {alert}"
        );
        assert!(rules.contains(&format!("runbook: docs/operations.md#{}\n", alert.to_lowercase())));
    }
}

#[test]
fn the_queries_of_the_dashboard_are_valid() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/ringfence.json")).unwrap();
    let rules: Vec<Value> = queries(&dashboard)
        .iter()
        .map(|query| query.replace("$__rate_interval", "5m"))
        .map(|query| json!({ "record": "checked", "expr": query }))
        .enumerate()
        .map(|(number, rule)| json!({ "name": number.to_string(), "rules": [rule] }))
        .collect();
    assert!(rules.len() >= 18);
    // JSON is also YAML.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), json!({ "groups": rules }).to_string()).unwrap();
    promtool(&["check", "rules"], file.path());
}

/// Served where a cluster is watched, as a story of Kubernetes shows.
pub const WITH_A_CLUSTER: &str = "ringfence_platform_gates";

/// The metrics of the program, which has more than its parts together.
async fn numbers_of_the_program() -> Numbers {
    let machine = Machine::new();
    let words = ["standalone", "--listen", "127.0.0.1:0", "--data-dir", "data"];
    let mut service = machine.start("standalone", &words);
    let url = service.until_it_listens("ready").await;
    let token = std::fs::read_to_string(machine.file("data/admin.token")).unwrap();
    let numbers = Numbers::of(&Client::new(&url, Some(token.trim()))).await;
    service.stop().await;
    numbers
}

/// The names of all metrics.
async fn names_of_all_metrics() -> BTreeSet<String> {
    let mut stack = Stack::start(Ground::Standalone).await;
    stack.plan(power_plan()).await;
    // A metric without a value yet is not served.
    let sight = json!({ "at_most_percent": 50, "quiet_s": 60 });
    let policy = json!({ "fencing": { "sight": sight } });
    stack.client.set_default_policy(policy).await.ok(200);
    stack.hang("h1").await;
    let of_sources = until(&stack, |numbers| numbers.has("ringfence_source_hosts")).await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await;
    let suspension = json!({ "for_s": 3600, "reason": "test" });
    stack.client.put("/suspension", suspension).await.ok(200);
    forge(&stack, Queue::Results).await;
    until(&stack, |numbers| numbers.has("ringfence_dead_letters")).await;
    let (engine, running) = &mut stack.engines[0];
    let nowhere = exchange_at("amqp://127.0.0.1:1/%2f", "events".to_owned());
    running.as_mut().unwrap().tell(engine, nowhere);
    eventually(async || {
        numbers_of(&stack)
            .await
            .has("ringfence_event_sink_oldest_age_seconds")
    })
    .await;
    let question = json!({ "cloud": "nowhere", "hosts": ["h1"] });
    stack.client.post("/nova/filter", question).await.ok(200);
    let mut there = Numbers::of(&stack.client).await.names();
    there.extend(numbers_of(&stack).await.names());
    there.extend(numbers_of_the_program().await.names());
    there.insert(WITH_A_CLUSTER.to_owned());
    there.extend(of_sources.names());
    stack.stop().await;
    there
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_is_in_the_guide_and_every_metric_of_rules_and_dashboard_exists() {
    let there = names_of_all_metrics().await;
    let guide = metrics_in(&read("docs/operations.md"));
    let base = |name: &str| {
        let endings = ["_bucket", "_sum", "_count"];
        let base = endings.iter().find_map(|ending| name.strip_suffix(ending));
        base.unwrap_or(name).to_owned()
    };
    let untold: BTreeSet<_> = there
        .iter()
        .map(|name| base(name))
        .filter(|name| !guide.contains(name))
        .collect();
    assert!(untold.is_empty(), "the guide does not describe {untold:?}");
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/ringfence.json")).unwrap();
    let mut wanted = metrics_in(&read("deploy/prometheus/ringfence.rules.yml"));
    wanted.extend(metrics_in(&read("deploy/prometheus/ringfence.tests.yml")));
    wanted.extend(queries(&dashboard).iter().flat_map(|query| metrics_in(query)));
    let missing: Vec<_> = wanted.difference(&there).collect();
    assert!(
        missing.is_empty(),
        "{missing:?} are not among the served metrics {there:?}"
    );
    assert!(wanted.len() > 20);
}
