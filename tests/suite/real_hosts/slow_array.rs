//! A slow array: a write that it has accepted lands later, even if the host is off by then.

use ringfence_tests::eventually;
use serde_json::json;

use super::place::{Place, stage};
use super::{Booted, Verdict};

/// So slow that the writes of a host that are under way take some seconds to land.
const WRITES_PER_S: u32 = 1;
/// More than the time that these writes take.
const SETTLE_S: u32 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_a_slow_array_has_accepted_land_before_fenced() {
    let (place, fenced, verdict) = fence_by_power(SETTLE_S).await;
    eventually(async || !fenced.host.is_on()).await;
    let when_it_was_off = place.count(&fenced.boot);
    verdict.until_fenced().await;
    place.until_all_has_landed().await;
    assert!(
        place.count(&fenced.boot) > when_it_was_off,
        "no write was under way when the host was switched off"
    );
    verdict.assert_nothing_landed(&fenced.boot);
}

/// Without a settling time the invariant is broken, and the judge sees it: so it would see it in every other test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_settling_time_writes_of_a_slow_array_land_after_fenced() {
    let (place, fenced, verdict) = fence_by_power(0).await;
    verdict.until_fenced().await;
    place.until_all_has_landed().await;
    assert!(!verdict.landed_since(&fenced.boot).is_empty());
}

async fn fence_by_power(settle_s: u32) -> (Place, Booted, Verdict) {
    let (place, fenced) = Place::start(json!([stage(&["power.off"])]), json!([["power.off"]])).await;
    let settling = json!({ "settle_s": settle_s });
    place.client.set_default_policy(settling).await.ok(200);
    fenced.falls_silent(&place).await;
    place.store.set_writes_per_s(Some(WRITES_PER_S)).unwrap();
    fenced.until_it_is_slow(&place).await;
    let (_, verdict) = place.fence().await;
    (place, fenced, verdict)
}
