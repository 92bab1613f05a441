//! A host is switched off by its BMC.

use serde_json::json;

use super::place::{Place, nth_boot, stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_fence_by_power_only_the_next_boot_writes() {
    let (place, fenced) = Place::start(json!([stage(&["power.off"])]), json!([["power.off"]])).await;
    fenced.falls_silent(&place).await;

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    assert!(place.may_be_evacuated().await);
    place.until_all_has_landed().await;
    verdict.assert_nothing_landed(&fenced.boot);
    assert!(!fenced.host.is_on());

    place.rejoin().await;
    let host = place.until_unfenced().await;
    let next = nth_boot(&fenced.host, 2).await;
    assert_eq!(host["boot_id"], next.as_str());
    place.until_it_writes(&next).await;
    verdict.assert_nothing_landed(&fenced.boot);
}
