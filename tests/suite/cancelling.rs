//! Cancelling a fence before, during and after an attempt.

use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Ground, Stack, power_plan};
use serde_json::json;

crate::on_both_grounds!(
    a_fence_cancelled_before_its_claim_does_nothing,
    a_result_after_the_cancellation_changes_nothing,
    a_fence_cancelled_after_its_proof_keeps_the_host_fenced,
    an_operation_that_has_ended_cannot_be_cancelled,
);

async fn a_fence_cancelled_before_its_claim_does_nothing(ground: Ground) {
    let mut stack = Stack::start_without_workers(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let cancelled = stack.client.cancel(&operation, "changed my mind").await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(
        cancelled["stages"][0]["tasks"][0]["attempts"][0]["status"],
        "cancelled"
    );
    // The task's message may still be on its way: the worker that takes it is refused.
    stack.add_worker().await;
    let refused = stack.claims_refused_or_none("h1").await;
    assert!(refused, "a cancelled attempt was claimed");
    assert!(stack.simulators.may_write("h1"));
    stack.stop().await;
}

async fn a_result_after_the_cancellation_changes_nothing(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let slow = Fault::new(FaultKind::Slow, None, Some(400)).unwrap();
    stack.set_fault("h1", Resource::Power, Some(slow));
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_claimed(&operation).await;
    stack.client.cancel(&operation, "changed my mind").await;
    // The worker goes on with the attempt to its end, and its result is recorded in the audit trail.
    stack.until_audited("h1", "result.ignored").await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], false);
    stack.stop().await;
}

async fn a_fence_cancelled_after_its_proof_keeps_the_host_fenced(ground: Ground) {
    let stack = Stack::start(ground).await;
    let stages = json!([
        { "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["power"] }] }] },
        { "delay_s": 600, "tasks": [{ "kind": "storage.fence", "levels": [{ "level": 1, "methods": ["storage"] }] }] },
    ]);
    stack.plan(stages).await;
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    assert_eq!(
        stack.client.cancel(&operation, "changed my mind").await["status"],
        "cancelled"
    );
    assert_eq!(stack.client.host("h1").await["fencing_state"], "FENCED");
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], true);
    stack.stop().await;
}

async fn an_operation_that_has_ended_cannot_be_cancelled(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await;
    let path = format!("/operations/{}/cancel", operation["id"].as_str().unwrap());
    let answer = stack.client.post(&path, json!({ "reason": "too late" })).await;
    assert_eq!((answer.status, answer.code()), (409, "fencing.operation.over"));
    stack.stop().await;
}
