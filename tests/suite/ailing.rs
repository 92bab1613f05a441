//! Hosts that answer, and of which sources say that something is wrong with them.

use std::time::Duration;

use futures_util::future::join_all;
use ringfence_api::Role;
use ringfence_lab::{Alertmanager, Prometheus};
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};

use crate::api::refused;

crate::on_both_grounds!(
    a_condition_holds_scheduling_for_as_long_as_it_stands,
    a_bad_condition_that_all_hosts_have_at_once_does_not_fence_them_all,
    bad_conditions_are_refused,
    an_alert_of_an_alertmanager_is_a_condition_for_as_long_as_it_fires,
);

const HOSTS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

async fn with_policy(ground: Ground, policy: Value) -> Stack {
    let options = StackOptions {
        hosts: 6,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    stack.client.set_default_policy(policy).await.ok(200);
    stack.observe().await;
    stack
}

fn deadlock(status: &str) -> Value {
    json!({ "source": "npd", "conditions": [{ "name": "KernelDeadlock", "status": status, "reason": "DockerHung" }] })
}

async fn says(stack: &Stack, host: &str, status: &str) -> Value {
    let path = format!("/hosts/{host}/conditions");
    stack.client.put(&path, deadlock(status)).await.ok(200)
}

async fn is_scheduled(stack: &Stack, host: &str) -> Value {
    let gates = stack.client.get(&format!("/hosts/{host}/gates")).await.ok(200);
    gates["schedule"].clone()
}

async fn a_condition_holds_scheduling_for_as_long_as_it_stands(ground: Ground) {
    let rules = json!([{ "condition": "KernelDeadlock", "action": "hold_scheduling" }]);
    let stack = with_policy(ground, json!({ "conditions": rules })).await;
    let host = says(&stack, "h1", "True").await;
    let condition = &host["conditions"][0];
    assert_eq!(
        (&condition["source"], &condition["name"], &condition["action"]),
        (&json!("npd"), &json!("KernelDeadlock"), &json!("hold_scheduling")),
        "{host}"
    );
    let schedule = is_scheduled(&stack, "h1").await;
    assert_eq!(
        schedule,
        json!({ "allowed": false, "reason": "the condition KernelDeadlock of the host holds scheduling, as its segment says" })
    );
    assert_eq!(is_scheduled(&stack, "h2").await["allowed"], true);

    // A rule that is taken away holds nothing any more.
    stack
        .client
        .set_default_policy(json!({ "conditions": [] }))
        .await
        .ok(200);
    let is_open = |gates: &Value| gates["schedule"]["allowed"] == true;
    stack.client.until("/hosts/h1/gates", is_open).await;
    stack
        .client
        .set_default_policy(json!({ "conditions": rules }))
        .await
        .ok(200);
    stack
        .client
        .until("/hosts/h1/gates", |gates| !is_open(gates))
        .await;
    says(&stack, "h1", "False").await;
    assert_eq!(is_scheduled(&stack, "h1").await["allowed"], true);

    // A person strikes off the source, and what it said goes with it.
    says(&stack, "h1", "True").await;
    let left = stack
        .client
        .delete_because("/hosts/h1/sources/npd", "it is gone")
        .await
        .ok(200);
    assert_eq!(left["conditions"], Value::Null, "{left}");
    assert_eq!(is_scheduled(&stack, "h1").await["allowed"], true);
    stack.stop().await;
}

async fn a_bad_condition_that_all_hosts_have_at_once_does_not_fence_them_all(ground: Ground) {
    const AT_MOST: usize = 2;
    let fencing = json!({ "automatic": true, "at_most": AT_MOST, "at_most_percent": 100 });
    let rules = json!([{ "condition": "KernelDeadlock", "action": "fence" }]);
    let stack = with_policy(ground, json!({ "fencing": fencing, "conditions": rules })).await;
    stack.plan(power_plan()).await;
    join_all(HOSTS.map(|host| says(&stack, host, "True"))).await;
    let are_all = |list: &Value| {
        let all = list["operations"].as_array().unwrap();
        // A monitor's word from before the power went may arrive after it was read as off: such a fence asks a person, too.
        let is_settled = |one: &Value| one["status"] == "succeeded" || one["status"] == "needs_operator";
        all.len() == HOSTS.len() && all.iter().all(is_settled)
    };
    let list = loop {
        // The power of those that are fenced goes, and a monitor sees that.
        stack.observe().await;
        let list = stack.client.get("/operations?kind=fence").await.ok(200);
        if are_all(&list) {
            break list;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let all = list["operations"].as_array().unwrap();
    let fenced = all.iter().filter(|one| one["is_held_by_brake"] == false);
    let fenced: Vec<&str> = fenced.map(|one| one["host"].as_str().unwrap()).collect();
    assert!(fenced.len() <= AT_MOST, "{fenced:?} were fenced");
    for host in HOSTS.into_iter().filter(|host| !fenced.contains(host)) {
        assert!(
            stack.simulators.may_write(host),
            "{host} was fenced although it is held"
        );
    }
    stack.stop().await;
}

async fn an_alert_of_an_alertmanager_is_a_condition_for_as_long_as_it_fires(ground: Ground) {
    let rules = json!([{ "condition": "RaidDegraded", "action": "fence" }]);
    let policy = json!({ "fencing": { "automatic": true }, "conditions": rules });
    let stack = with_policy(ground, policy).await;
    stack.plan(power_plan()).await;
    let token = stack.as_role(Role::Service).token().unwrap().to_owned();
    let receiver = format!("{}/alertmanager?label=host", stack.client.base());
    let start = move || {
        let alertmanager = Alertmanager::start(&receiver, &token).unwrap();
        let prometheus = Prometheus::telling(Some(&alertmanager)).unwrap();
        (alertmanager, prometheus)
    };
    let (alertmanager, prometheus) = tokio::task::spawn_blocking(start).await.unwrap();
    // An alert of a host that is not known keeps no other one from being heard.
    let series = [
        ("raid_degraded", "h9", "vector(1)"),
        ("raid_degraded", "h1", "vector(1)"),
    ];
    prometheus.record(&series).unwrap();
    // Its power goes, and a monitor sees that.
    for _ in 0..300 {
        if stack.client.host("h1").await["fencing_state"] == "FENCED" {
            break;
        }
        stack.observe().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    stack.judge("h1").await;
    let host = stack.client.get("/hosts/h1").await.ok(200);
    let condition = &host["conditions"][0];
    assert_eq!(
        (
            &condition["source"],
            &condition["name"],
            &condition["status"],
            &condition["reason"]
        ),
        (
            &json!("alertmanager"),
            &json!("RaidDegraded"),
            &json!("True"),
            &json!("a disk of the RAID has failed")
        ),
        "{host}"
    );
    prometheus.record(&[]).unwrap();
    let is_over = |host: &Value| host["conditions"].is_null();
    stack.client.until("/hosts/h1", is_over).await;
    drop((prometheus, alertmanager));
    stack.stop().await;
}

fn alert(host: &str, name: &str, status: &str) -> Value {
    json!({ "status": status, "labels": { "alertname": name, "instance": host }, "annotations": { "summary": "so" } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_alertmanager_does_not_name_stays_and_what_it_cannot_mean_is_told() {
    let stack = with_policy(Ground::Standalone, json!({})).await;
    let tell = async |alerts: Value| {
        let body = json!({ "version": "4", "status": "firing", "groupKey": "{}", "alerts": alerts });
        stack.client.post("/alertmanager", body).await.ok(200)
    };
    let names = async || {
        let host = stack.client.get("/hosts/h1").await.ok(200);
        let conditions = host["conditions"].as_array().cloned().unwrap_or_default();
        let names = conditions
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    tell(json!([
        alert("h1:9100", "Disk", "firing"),
        alert("h1", "Fan", "firing")
    ]))
    .await;
    assert_eq!(names().await, ["Disk", "Fan"]);
    // Two of a name, and one of them fires still.
    tell(json!([
        alert("h1", "Disk", "firing"),
        alert("h1:9100", "Disk", "resolved")
    ]))
    .await;
    assert_eq!(names().await, ["Disk", "Fan"]);
    tell(json!([alert("h1", "Disk", "resolved")])).await;
    assert_eq!(names().await, ["Fan"]);

    let odd = json!([
        alert("h9", "Disk", "firing"), alert("h2", "A B", "firing"), alert("h2", "Disk", "firing"),
        { "status": "firing", "labels": { "alertname": "Watchdog" } },
    ]);
    let answer = tell(odd).await;
    assert_eq!(answer["reported"], 1, "{answer}");
    let why: Vec<&str> = answer["ignored"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["why"].as_str().unwrap())
        .collect();
    assert_eq!(why.len(), 3, "{answer}");
    assert!(why[0].starts_with("alertname: is \"A B\"; "), "{answer}");
    assert_eq!(
        why[1..],
        ["it has no label \"instance\"", "there is no host \"h9\""],
        "{answer}"
    );

    let many: Vec<Value> = (0..65).map(|n| alert("h3", &format!("c{n}"), "firing")).collect();
    for alerts in [&many[..], &many[..64], &many[64..]] {
        let answer = tell(json!(alerts)).await;
        let why = answer["ignored"][0]["why"].as_str();
        match alerts.len() {
            64 => assert_eq!(answer["reported"], 1, "{answer}"),
            _ => assert!(why.unwrap().contains("64"), "{answer}"),
        }
    }
    let other = stack
        .client
        .post("/alertmanager", json!({ "version": "3", "alerts": [] }))
        .await;
    refused(
        &other,
        400,
        "fencing.request.invalid",
        &["version: is \"3\"; \"4\" is allowed"],
    );
    let reader = stack.as_role(Role::Reader);
    let body = json!({ "version": "4", "alerts": [] });
    assert_eq!(reader.post("/alertmanager", body).await.status, 403);
    stack.stop().await;
}

async fn bad_conditions_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let long = "x".repeat(317);
    let many: Vec<Value> = (0..65)
        .map(|n| json!({ "name": format!("c{n}"), "status": "True" }))
        .collect();
    let one = |name: &str, status: &str| json!([{ "name": name, "status": status }]);
    let cases = [
        (one("", "True"), "conditions[0].name"),
        (one("kernel deadlock", "True"), "conditions[0].name"),
        (one(&long, "True"), "conditions[0].name"),
        (one("KernelDeadlock", "true"), "True"),
        (
            json!([{ "name": "a", "status": "True" }, { "name": "a", "status": "False" }]),
            "conditions[1].name",
        ),
        (
            json!([{ "name": "a", "status": "True", "reason": "x".repeat(256) }]),
            "conditions[0].reason",
        ),
        (
            json!([{ "name": "a", "status": "True", "since": "now" }]),
            "since",
        ),
        (json!(many), "64"),
    ];
    for (conditions, word) in cases {
        let body = json!({ "source": "npd", "conditions": conditions });
        let answer = stack.client.put("/hosts/h1/conditions", body).await;
        refused(&answer, 400, "fencing.request.invalid", &[word]);
    }
    let rules = [
        (json!([{ "condition": "a b" }]), "policy.conditions[0].condition"),
        (
            json!([{ "condition": "a", "for_s": 86_401 }]),
            "policy.conditions[0].for_s",
        ),
        (
            json!([{ "condition": "a" }, { "condition": "a" }]),
            "policy.conditions[1]",
        ),
        (json!([{ "condition": "a", "action": "reboot" }]), "reboot"),
    ];
    for (conditions, word) in rules {
        let answer = stack
            .client
            .set_default_policy(json!({ "conditions": conditions }))
            .await;
        refused(&answer, 400, "fencing.request.invalid", &[word]);
    }
    assert_eq!(
        stack.client.host("h1").await["conditions"],
        Value::Null,
        "nothing of it was taken down"
    );
    stack.stop().await;
}
