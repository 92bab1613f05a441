//! A host is frozen while it is fenced, and then continues where it stopped.

use serde_json::json;

use super::place::{Place, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_host_whose_storage_was_cut_writes_nothing_after_the_thaw() {
    let stages = json!([stage(&["storage.fence"])]);
    let (place, fenced) = Place::start(stages, json!([["storage.fence"]])).await;
    fenced.host.freeze().unwrap();
    place.until_seen("UNREACHABLE").await;

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    fenced.host.thaw().unwrap();
    fenced.until_it_has_tried().await;
    // The thawed host answers the monitor again.
    place.until_seen("UP").await;
    verdict.assert_nothing_landed(&fenced.boot);
    assert!(place.is_fenced().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_host_that_was_switched_off_cannot_be_thawed() {
    let (place, fenced) = Place::start(json!([stage(&["power.off"])]), json!([["power.off"]])).await;
    fenced.host.freeze().unwrap();
    place.until_seen("UNREACHABLE").await;

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    assert!(fenced.host.thaw().is_err(), "the host still exists after the off");
    place.until_all_has_landed().await;
    verdict.assert_nothing_landed(&fenced.boot);
    assert!(place.may_be_evacuated().await);
}
