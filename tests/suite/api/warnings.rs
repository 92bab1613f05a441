//! The answer to a configuration that would keep a host from being fenced has a warning.

use ringfence_core::Resource;
use ringfence_tests::{Client, Ground, Stack};
use serde_json::{Value, json};

crate::on_both_grounds!(
    an_unknown_type_or_method_causes_a_warning,
    a_second_host_on_one_device_causes_a_warning,
    a_missing_parameter_causes_a_warning_with_the_host_and_with_the_plan,
);

/// The warnings of an answer.
fn warnings(answer: &Value) -> Vec<&str> {
    let told = answer["warnings"].as_array().into_iter().flatten();
    told.map(|warning| warning.as_str().unwrap()).collect()
}

/// Makes a plan for one scope, with one task and one method.
async fn plan(client: &Client, name: &str, scope: Value, (task, method): (&str, &str)) -> Value {
    let stages = json!([{ "tasks": [{ "kind": task, "levels": [{ "level": 1, "methods": [method] }] }] }]);
    let body = json!({ "name": name, "scope": scope, "stages": stages });
    client.post("/plans", body).await.ok(201)
}

/// A stack with the method `pdu`.
async fn bare(ground: Ground) -> Stack {
    let stack = Stack::start(ground).await;
    stack.simulated_method("pdu", Resource::Power).await;
    stack
}

async fn an_unknown_type_or_method_causes_a_warning(ground: Ground) {
    let stack = bare(ground).await;
    let client = &stack.client;
    let host = client.post("/hosts", json!({ "name": "a" })).await.ok(201);
    assert_eq!(
        warnings(&host),
        [
            "no plan is for the host: it cannot be fenced until there is one for it, for its type, or by default"
        ]
    );
    let rack = plan(
        client,
        "rack",
        json!({ "kind": "host_type", "value": "rack" }),
        ("power.off", "pdu"),
    );
    assert_eq!(warnings(&rack.await), ["scope: no host has the type \"rack\""]);
    let typo = client.patch("/hosts/a", json!({ "type": "rak" })).await.ok(200);
    assert_eq!(
        warnings(&typo)[0],
        "type: no plan is for hosts of the type \"rak\"; types with a plan are rack"
    );
    let right = client.patch("/hosts/a", json!({ "type": "rack" })).await.ok(200);
    assert_eq!(right["warnings"], Value::Null, "{right}");
    let given = json!({ "parameters": { "pdv": { "device": "x" } } });
    let typo = client.patch("/hosts/a", given).await.ok(200);
    assert_eq!(
        warnings(&typo),
        ["parameters.pdv: there is no method \"pdv\"; methods are pdu"]
    );
    // The warning is in the answer to the change, and not in later answers.
    assert_eq!(client.host("a").await["warnings"], Value::Null);
    let unknown_host = plan(
        client,
        "one",
        json!({ "kind": "host", "value": "z" }),
        ("power.off", "pdu"),
    );
    assert_eq!(warnings(&unknown_host.await), ["scope: there is no host \"z\""]);
    stack.stop().await;
}

async fn a_second_host_on_one_device_causes_a_warning(ground: Ground) {
    let stack = bare(ground).await;
    let client = &stack.client;
    plan(client, "all", json!({ "kind": "default" }), ("power.off", "pdu")).await;
    let on =
        |name: &str, outlet: &str| json!({ "name": name, "parameters": { "pdu": { "device": outlet } } });
    for (name, outlet) in [("a", "outlet-1"), ("b", "outlet-2")] {
        let host = client.post("/hosts", on(name, outlet)).await.ok(201);
        assert_eq!(host["warnings"], Value::Null, "{host}");
    }
    let host = client.post("/hosts", on("c", "outlet-1")).await.ok(201);
    let told = warnings(&host);
    assert_eq!(told.len(), 1, "{host}");
    assert!(
        told[0].starts_with("method pdu acts on the device that it acts on for host a too"),
        "{host}"
    );
    let moved = json!({ "parameters": { "pdu": { "device": "outlet-2" } } });
    let host = client.patch("/hosts/c", moved).await.ok(200);
    assert!(warnings(&host)[0].contains("for host b too"), "{host}");
    let moved = json!({ "parameters": { "pdu": { "device": "outlet-3" } } });
    let host = client.patch("/hosts/c", moved).await.ok(200);
    assert_eq!(host["warnings"], Value::Null, "{host}");
    stack.stop().await;
}

async fn a_missing_parameter_causes_a_warning_with_the_host_and_with_the_plan(ground: Ground) {
    let stack = bare(ground).await;
    let client = &stack.client;
    let node = json!({ "name": "node", "resource": "power", "driver": "ironic" });
    client.post("/methods", node).await.ok(201);
    client.post("/hosts", json!({ "name": "a" })).await.ok(201);
    let cut = plan(client, "cut", json!({ "kind": "default" }), ("power.off", "node")).await;
    let missing = "method node: parameters.cloud: is missing, and host ";
    let told = warnings(&cut);
    assert!(
        told.iter()
            .any(|told| told.starts_with("it cannot be carried out for host a: ") && told.contains(missing)),
        "{cut}"
    );
    let host = client.post("/hosts", json!({ "name": "b" })).await.ok(201);
    let told = warnings(&host);
    assert_eq!(told.len(), 1, "{host}");
    assert!(
        told[0].starts_with("plan cut cannot be carried out for the host: ") && told[0].contains(missing),
        "{host}"
    );
    // A changed method has a warning for every plan that it breaks.
    let named =
        json!({ "name": "node", "resource": "power", "driver": "ironic", "parameters": { "cloud": "east" } });
    let method = client.put("/methods/node", named).await.ok(200);
    assert_eq!(method["warnings"], Value::Null, "{method}");
    let unnamed = json!({ "name": "node", "resource": "power", "driver": "ironic" });
    let method = client.put("/methods/node", unnamed).await.ok(200);
    assert!(
        warnings(&method)[0].starts_with("plan cut: it cannot be carried out for host "),
        "{method}"
    );
    stack.stop().await;
}
