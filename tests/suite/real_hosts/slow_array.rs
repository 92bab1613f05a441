//! An array that is slow: what it has accepted lands when its turn has come, whatever has become of the host by then.

use ringfence_tests::eventually;
use serde_json::json;

use super::place::{Place, stage};

/// So few that what is under way takes some seconds.
const WRITES_PER_S: u32 = 2;
/// More than those seconds.
const SETTLE_S: u32 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_slow_array_has_accepted_lands_before_fenced() {
    let (place, fenced) = Place::start(json!([stage(&["power.off"])]), json!([["power.off"]])).await;
    let segment = json!({ "name": "default", "policy": { "settle_s": SETTLE_S } });
    place.client.put("/segments/default", segment).await.ok(200);
    place.store.set_writes_per_s(Some(WRITES_PER_S)).unwrap();
    fenced.falls_silent(&place).await;

    let (_, verdict) = place.fence().await;
    eventually(async || !fenced.host.is_on()).await;
    let when_it_was_off = place.count(&fenced.boot);
    verdict.until_fenced().await;
    place.until_all_has_landed().await;
    assert!(place.count(&fenced.boot) > when_it_was_off, "nothing was under way");
    verdict.assert_nothing_landed(&fenced.boot);
}
