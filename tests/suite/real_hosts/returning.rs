//! A host that was cut off comes back.

use std::sync::Arc;

use serde_json::json;

use super::Booted;
use super::place::{HOST, Place, nth_boot, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_boot_that_was_cut_off_is_not_given_its_storage_back_and_the_next_one_is() {
    let (place, fenced) = silent().await;
    only_the_next_boot_gets_its_storage_back(&place, &fenced, 2).await;
}

/// Its id is a new one to all who have watched the host, and says nothing of when it began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_boot_that_began_unseen_before_the_cut_is_not_given_its_storage_back_either() {
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
    let next = nth_boot(&fenced.host, next).await;
    assert_eq!(host["boot_id"], next.as_str());
    place.until_it_writes(&next).await;
    verdict.assert_nothing_landed(&fenced.boot);
}
