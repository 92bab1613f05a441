//! Fencing with simulated devices.

use ringfence_tests::{Ground, Stack, power_plan};

crate::on_both_grounds!(power_alone_fences_a_hung_host);

async fn power_alone_fences_a_hung_host(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    assert!(stack.simulators.may_write("h1"));
    let operation = stack.client.fence("h1").await;
    assert_eq!(operation["kind"], "fence");
    let host = stack.client.until_fenced("h1").await;
    assert_eq!(host["proofs"][0]["kind"], "power.off");
    assert_eq!(host["generation"], 1);
    assert!(!stack.simulators.may_write("h1"));
    let gates = stack.client.gates("h1").await;
    assert_eq!(gates["evacuate"]["allowed"], true);
    assert_eq!(gates["schedule"]["allowed"], false);
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "succeeded");
    stack.stop().await;
}
