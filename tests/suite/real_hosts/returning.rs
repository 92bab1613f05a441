//! A host that was cut off comes back.

use std::sync::Arc;

use serde_json::json;

use super::Booted;
use super::place::{HOST, Place, nth_boot, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_boot_gets_the_storage_back_and_the_cut_off_boot_does_not() {
    let (place, fenced) = silent().await;
    only_the_next_boot_gets_its_storage_back(&place, &fenced, 2).await;
}

/// Every observer sees the boot's id for the first time after the cut, and the id does not tell when the boot began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unseen_boot_from_before_the_cut_does_not_get_the_storage_back() {
    let (place, first) = silent().await;
    first.host.reset().unwrap();
    let unseen = Booted {
        boot: nth_boot(&first.host, 2).await,
        host: Arc::clone(&first.host),
    };
    place.until_it_writes(&unseen.boot).await;
    only_the_next_boot_gets_its_storage_back(&place, &unseen, 3).await;
}

async fn silent() -> (Place, Booted) {
    let stages = json!([stage(&["storage.fence"])]);
    let (place, booted) = Place::start(stages, json!([["storage.fence"]])).await;
    booted.falls_silent(&place).await;
    (place, booted)
}

async fn only_the_next_boot_gets_its_storage_back(place: &Place, fenced: &Booted, next: usize) {
    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;

    // The cable is plugged in again, and the boot that was cut off is seen again.
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
    let next = nth_boot(&fenced.host, next).await;
    assert_eq!(host["boot_id"], next.as_str());
    place.until_it_writes(&next).await;
    verdict.assert_nothing_landed(&fenced.boot);
}
