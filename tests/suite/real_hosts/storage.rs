//! A host is cut off from its storage, and goes on running.

use std::sync::Arc;

use ringfence_lab::VmStore;
use serde_json::json;

use super::place::{HOST, Place, blocking, first_boot, stage, start_host};

const OTHER: &str = "host2";

/// So slow that many writes are under way when the host is cut off.
const WRITES_PER_S: u32 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_is_proven_after_accepted_writes_have_landed_and_affects_no_other_host() {
    let store = Arc::new(blocking(|| VmStore::start(&[HOST, OTHER]).unwrap()).await);
    let other = start_host(&store, OTHER).await;
    let stages = json!([stage(&["storage.fence"])]);
    let (place, fenced) = Place::on(store, stages, json!([["storage.fence"]])).await;
    let other = first_boot(&other).await;
    place.until_it_writes(&other).await;
    fenced.falls_silent(&place).await;
    place.store.set_writes_per_s(Some(WRITES_PER_S)).unwrap();
    place.until_it_writes(&fenced.boot).await;

    let (_, verdict) = place.fence().await;
    verdict.until_fenced().await;
    fenced.until_it_has_tried().await;
    place.until_it_writes(&other).await;
    assert!(fenced.host.is_on());
    verdict.assert_nothing_landed(&fenced.boot);
}
