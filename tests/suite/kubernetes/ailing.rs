//! A node that answers, and of which a problem detector says that something is wrong with it.

use std::time::Duration;

use ringfence_lab::running_twice;
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::Plant;

const PATIENCE: Duration = Duration::from_secs(60);

fn says(plant: &Plant, node: &str, condition: &str, status: &str) {
    block_in_place(|| {
        let api = plant.api();
        api.set_condition(node, condition, status, "DockerHung").unwrap()
    });
}

async fn until_scheduled(plant: &Plant, host: &str, is_allowed: bool) -> Value {
    let path = format!("/hosts/{host}/gates");
    let is_so = |gates: &Value| gates["schedule"]["allowed"] == is_allowed;
    plant.stack.client.until_within(&path, PATIENCE, is_so).await
}

async fn condition_events(plant: &Plant, host: &str) -> Vec<String> {
    let path = format!("/events?host={host}&type=host.condition");
    let list = plant.stack.client.get(&path).await.ok(200);
    let told = |event: &Value| {
        let data = &event["data"];
        let action = data["action"].as_str().unwrap_or("over");
        format!("{} {action}", data["condition"].as_str().unwrap())
    };
    list["events"].as_array().unwrap().iter().map(told).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_answers_is_kept_free_of_pods_or_fenced_for_a_condition_as_its_segment_says() {
    let policy = json!({
        "auto_rejoin": true,
        "evacuation": { "automatic": true },
        "fencing": { "automatic": true, "after_s": 600 },
        "conditions": [
            { "condition": "ReadonlyFilesystem", "action": "hold_scheduling" },
            { "condition": "KernelDeadlock", "for_s": 3, "action": "fence" },
        ],
    });
    let plant = Plant::start(Ground::Distributed, policy).await;
    let pod = plant.until_running("db-0", |_| true);
    let uid = pod["metadata"]["uid"].clone();
    let sick = plant.node(&pod["spec"]["nodeName"]);
    let name = sick.name();
    until_scheduled(&plant, name, true).await;

    says(&plant, name, "ReadonlyFilesystem", "True");
    let gates = until_scheduled(&plant, name, false).await;
    let why = gates["schedule"]["reason"].as_str().unwrap();
    assert_eq!(
        why,
        "the condition ReadonlyFilesystem of the host holds scheduling, as its segment says"
    );
    let host = plant.stack.client.host(name).await;
    assert_eq!(
        (&host["failure_state"], &host["operation"]),
        (&json!("UP"), &Value::Null),
        "{host}"
    );
    says(&plant, name, "ReadonlyFilesystem", "False");
    until_scheduled(&plant, name, true).await;

    // Its kubelet answers until its power is off.
    says(&plant, name, "KernelDeadlock", "True");
    let fence = plant.until_ended(name, "fence").await;
    assert_eq!(
        (&fence["status"], &fence["requested_by"]),
        (&json!("succeeded"), &json!("ringfence")),
        "{fence}"
    );
    let reason = fence["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("the condition KernelDeadlock of the host has been True since "),
        "{reason}"
    );
    assert!(
        reason.ends_with("(reported by kubernetes:lab): DockerHung"),
        "{reason}"
    );
    let evacuation = plant.until_ended(name, "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let next = plant.until_running("db-0", |pod| pod["metadata"]["uid"] != uid);
    assert_ne!(next["spec"]["nodeName"], name);

    // The problem detector has not said anything since: the condition is the one that was answered.
    block_in_place(|| sick.start_again().unwrap());
    let rejoin = plant.until_ended(name, "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    plant.until_seen(name, "UP").await;
    let gates = until_scheduled(&plant, name, false).await;
    assert!(
        gates["schedule"]["reason"]
            .as_str()
            .unwrap()
            .contains("KernelDeadlock"),
        "{gates}"
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(plant.stack.client.host(name).await["operation"], Value::Null);
    says(&plant, name, "KernelDeadlock", "False");
    until_scheduled(&plant, name, true).await;
    assert_eq!(
        condition_events(&plant, name).await,
        [
            "ReadonlyFilesystem hold_scheduling",
            "ReadonlyFilesystem over",
            "KernelDeadlock fence",
            "KernelDeadlock over",
        ]
    );
    assert_eq!(block_in_place(|| running_twice(&plant.nodes).unwrap()), None);
    plant.stack.stop().await;
}
