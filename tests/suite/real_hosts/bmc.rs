//! A BMC that does not do what it reports, or does it late.

use ringfence_lab::IpmiFault;
use ringfence_tests::eventually;
use serde_json::{Value, json};

use super::place::{HOST, Place, stage};

async fn ask(place: &Place, operation: &Value, what: &str) {
    let path = format!("/operations/{}/{what}", operation["id"].as_str().unwrap());
    place
        .client
        .post(&path, json!({ "reason": "test" }))
        .await
        .ok(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_with_a_lying_bmc_is_proven_by_the_cut_of_the_storage() {
    let power = stage(&["power.off"]);
    let (place, fenced) = Place::start(json!([power]), json!([["power.off"]])).await;
    fenced.falls_silent(&place).await;
    fenced.host.bmc().set_fault(IpmiFault::Lies).unwrap();
    place.set_power_attempt_s(5).await;

    let (alone, verdict) = place.fence().await;
    place.client.until_settled(&alone).await;
    place.until_it_writes(&fenced.boot).await;
    assert!(!place.is_fenced().await);
    assert!(!place.may_be_evacuated().await);
    ask(&place, &alone, "cancel").await;

    let either = json!([["power.off"], ["storage.fence"]]);
    place
        .plan(json!([power, stage(&["storage.fence"])]), either)
        .await;
    place.client.fence(HOST).await;
    verdict.until_fenced().await;
    fenced.until_it_has_tried().await;
    assert!(fenced.host.is_on());
    verdict.assert_nothing_landed(&fenced.boot);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bmc_that_acts_after_the_deadline_proves_nothing_until_its_state_is_read() {
    let (place, fenced) = Place::start(json!([stage(&["power.off"])]), json!([["power.off"]])).await;
    fenced.falls_silent(&place).await;
    fenced.host.bmc().set_fault(IpmiFault::Late).unwrap();
    // The attempt's deadline is before the BMC acts.
    place.set_power_attempt_s(6).await;

    let (operation, verdict) = place.fence().await;
    place.client.until_settled(&operation).await;
    assert!(!place.is_fenced().await);
    // The BMC acts after Ringfence has stopped waiting.
    eventually(async || !fenced.host.is_on()).await;
    fenced.host.bmc().set_fault(IpmiFault::None).unwrap();
    // The BMC first carries out the repeated commands, then answers a read.
    eventually(async || place.power_reads().await == "off").await;
    assert!(!place.is_fenced().await);
    assert!(!place.may_be_evacuated().await);

    ask(&place, &operation, "retry").await;
    verdict.until_fenced().await;
    place.until_all_has_landed().await;
    verdict.assert_nothing_landed(&fenced.boot);
}
