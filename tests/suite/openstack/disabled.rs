//! Hosts that an administrator has disabled in Nova.

use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::Plant;

fn is_spared(host: &Value) -> bool {
    let mut conditions = host["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["name"] == "NovaComputeDisabled" && one["action"] == "spare")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_an_administrator_has_disabled_is_spared_until_it_is_enabled() {
    let policy = json!({
        "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "conditions": [{ "condition": "NovaComputeDisabled", "action": "spare" }],
    });
    let plant = Plant::start(Ground::Standalone, ["spared-a", "spared-b"], policy).await;
    block_in_place(|| plant.cloud.disable("spared-a", "new memory").unwrap());
    plant.stack.client.until("/hosts/spared-a", is_spared).await;
    plant.machines[0].kill();
    let is_held = |list: &Value| list["operations"].as_array().is_some_and(|held| held.len() == 1);
    let path = "/operations?host=spared-a&status=held";
    let list = plant.stack.client.until(path, is_held).await;
    let by = &list["operations"][0]["held"]["by"][0];
    assert_eq!(
        (&by["safeguard"], &by["verdict"]),
        (&json!("condition"), &json!("hold")),
        "{list}"
    );
    assert!(by["reason"].as_str().unwrap().ends_with("new memory"), "{by}");

    block_in_place(|| plant.cloud.enable("spared-a").unwrap());
    let fence = plant.until_ended("spared-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    // What the fence has disabled is no administrator's doing.
    let host = plant.stack.client.host("spared-a").await;
    assert!(host["conditions"].is_null(), "{host}");
    plant.judge();
    plant.stop().await;
}
