//! A host stands still while it is fenced, does not know that time has passed, and goes on afterwards.

use serde_json::json;

use super::place::{Place, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_was_frozen_while_its_storage_was_cut_writes_nothing_when_it_is_thawed() {
    let stages = json!([stage(&["storage.fence"])]);
    let (place, fenced) = Place::start(stages, json!([["storage.fence"]])).await;
    fenced.host.freeze().unwrap();
    place.until_seen("UNREACHABLE").await;

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    fenced.host.thaw().unwrap();
    fenced.until_it_has_tried().await;
    // It has been there all the time, and is seen.
    place.until_seen("UP").await;
    verdict.assert_nothing_landed(&fenced.boot);
    assert!(place.is_fenced().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_was_frozen_while_it_was_switched_off_is_gone() {
    let (place, fenced) = Place::start(json!([stage(&["power.off"])]), json!([["power.off"]])).await;
    fenced.host.freeze().unwrap();
    place.until_seen("UNREACHABLE").await;

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    assert!(fenced.host.thaw().is_err(), "a host is there to thaw");
    place.until_all_has_landed().await;
    verdict.assert_nothing_landed(&fenced.boot);
    assert!(place.may_be_evacuated().await);
}
