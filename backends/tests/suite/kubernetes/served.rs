//! Objects as an API server gives them back: with the fields that it keeps itself, and those that are left out filled in as its API says.

use serde_json::{Value, json};

/// The form in which an API server of 1.30 serves an object.
pub fn as_served(mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    for (field, value) in [
        ("uid", json!("5c7a4e0e-6f1c-4b43-9a0d-3f1c2d6b7a11")),
        ("resourceVersion", json!("4711")),
        ("creationTimestamp", json!("2026-01-01T00:00:00Z")),
    ] {
        fill(metadata, field, value);
    }
    match object["kind"].as_str().unwrap_or_default() {
        "ValidatingAdmissionPolicy" => of_policy(&mut object),
        "ValidatingAdmissionPolicyBinding" if !object["spec"]["matchResources"].is_null() => {
            of_constraints(&mut object["spec"]["matchResources"]);
        }
        "ValidatingWebhookConfiguration" => {
            let webhooks = object["webhooks"].as_array_mut().unwrap();
            webhooks.iter_mut().for_each(of_webhook);
        }
        _ => {}
    }
    object
}

fn fill(object: &mut Value, field: &str, value: Value) {
    if object[field].is_null() {
        object[field] = value;
    }
}

fn of_policy(policy: &mut Value) {
    policy["metadata"]["generation"] = json!(1);
    policy["status"] = json!({ "observedGeneration": 1, "typeChecking": {} });
    fill(&mut policy["spec"], "failurePolicy", json!("Fail"));
    of_constraints(&mut policy["spec"]["matchConstraints"]);
}

fn of_constraints(constraints: &mut Value) {
    fill(constraints, "matchPolicy", json!("Equivalent"));
    fill(constraints, "namespaceSelector", json!({}));
    fill(constraints, "objectSelector", json!({}));
    for rule in constraints["resourceRules"].as_array_mut().into_iter().flatten() {
        fill(rule, "scope", json!("*"));
    }
}

fn of_webhook(webhook: &mut Value) {
    for (field, value) in [
        ("failurePolicy", json!("Fail")),
        ("matchPolicy", json!("Equivalent")),
        ("namespaceSelector", json!({})),
        ("objectSelector", json!({})),
        ("timeoutSeconds", json!(10)),
    ] {
        fill(webhook, field, value);
    }
    for rule in webhook["rules"].as_array_mut().into_iter().flatten() {
        fill(rule, "scope", json!("*"));
    }
    if let Some(service) = webhook["clientConfig"]["service"].as_object_mut() {
        service.entry("port").or_insert(json!(443));
    }
}
