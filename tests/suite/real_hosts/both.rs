//! A host is switched off and cut off from its storage, and neither suffices alone.

use ringfence_lab::IpmiFault;
use serde_json::json;

use super::place::{HOST, Place, nth_boot, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_fenced_by_power_and_storage_gets_its_disk_back_at_the_next_boot() {
    let stages = json!([stage(&["power.off", "storage.fence"])]);
    let (place, fenced) = Place::start(stages, json!([["power.off", "storage.fence"]])).await;
    fenced.falls_silent(&place).await;

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    place.monitor.goes_on().await;
    verdict.assert_nothing_landed(&fenced.boot);
    assert!(!fenced.host.is_on());
    assert!(!place.store.is_open(HOST).unwrap());

    place.rejoin().await;
    let host = place.until_unfenced().await;
    let next = nth_boot(&fenced.host, 2).await;
    assert_eq!(host["boot_id"], next.as_str());
    place.until_it_writes(&next).await;
    verdict.assert_nothing_landed(&fenced.boot);
}

/// The BMC reads off while the host runs, so that a proof by power alone would be wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bmc_that_reads_off_while_the_host_writes_does_not_suffice_for_power_and_storage() {
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
