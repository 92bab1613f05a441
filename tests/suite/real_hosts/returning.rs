//! A host that was cut off comes back.

use serde_json::json;

use super::place::{HOST, Place, nth_boot, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_boot_that_was_cut_off_is_not_given_its_storage_back_and_the_next_one_is() {
    let stages = json!([stage(&["storage.fence"])]);
    let (place, fenced) = Place::start(stages, json!([["storage.fence"]])).await;
    fenced.falls_silent(&place).await;
    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;

    // The cable is plugged in again, and the host is there as if nothing had been.
    fenced.host.plug().unwrap();
    place.until_seen("UP").await;
    place.rejoin().await;
    place.monitor.goes_on().await;
    fenced.until_it_has_tried().await;
    verdict.assert_nothing_landed(&fenced.boot);
    assert!(place.is_fenced().await);
    assert!(!place.store.is_open(HOST).unwrap());

    fenced.host.reset().unwrap();
    let host = place.until_unfenced().await;
    let next = nth_boot(&fenced.host, 2).await;
    assert_eq!(host["boot_id"], next.as_str());
    place.until_it_writes(&next).await;
    verdict.assert_nothing_landed(&fenced.boot);
}
