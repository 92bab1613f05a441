//! A host is switched off and cut off from its storage, and neither is enough by itself.

use ringfence_lab::IpmiFault;
use serde_json::json;

use super::place::{Place, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_both_are_demanded_a_host_that_is_fenced_neither_runs_nor_has_a_way_to_its_disk() {
    let stages = json!([stage(&["power.off", "storage.fence"])]);
    let (place, fenced) = Place::start(stages, json!([["power.off", "storage.fence"]])).await;
    fenced.falls_silent(&place).await;

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    assert!(!fenced.host.is_on());
    assert!(!place.store.is_open(super::place::HOST).unwrap());
    verdict.assert_nothing_landed(&fenced.boot);
}

/// No single proof by power survives such a BMC.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_both_are_demanded_a_bmc_that_reads_off_while_the_host_writes_fences_nobody() {
    let stages = json!([stage(&["power.off"]), stage(&["storage.fence"])]);
    let (place, fenced) = Place::start(stages, json!([["power.off", "storage.fence"]])).await;
    fenced.falls_silent(&place).await;
    fenced.host.bmc().set_fault(IpmiFault::Ghost).unwrap();

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    assert!(fenced.host.is_on());
    fenced.until_it_has_tried().await;
    verdict.assert_nothing_landed(&fenced.boot);
}
