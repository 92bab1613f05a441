//! An array that is slow: what it has accepted lands when its turn has come, whatever has become of the host by then.

use ringfence_tests::eventually;
use serde_json::json;

use super::place::{Place, stage};
use super::{Booted, Verdict};

/// So few that what a host has under way takes some seconds.
const WRITES_PER_S: u32 = 1;
/// More than those seconds.
const SETTLE_S: u32 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_slow_array_has_accepted_lands_before_fenced() {
    let (place, fenced, verdict) = fence_by_power(SETTLE_S).await;
    eventually(async || !fenced.host.is_on()).await;
    let when_it_was_off = place.count(&fenced.boot);
    verdict.until_fenced().await;
    place.until_all_has_landed().await;
    assert!(
        place.count(&fenced.boot) > when_it_was_off,
        "nothing was under way"
    );
    verdict.assert_nothing_landed(&fenced.boot);
}

/// What must not be, where the segment says that nothing settles: it is seen. So it would be seen in every other story.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_settles_what_a_slow_array_has_accepted_lands_after_fenced() {
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
