//! A request that Nova carries out long after it was sent.

use std::time::Duration;

use ringfence_lab::NovaApiOptions;
use ringfence_tests::{Ground, LateNova, Lateness, Site};
use serde_json::json;
use tokio::task::block_in_place;

use super::plant::{Plant, cloud};

/// After 20 s without an answer Ringfence gives up, while it cannot read Nova's records. Nova would accept a second request, too, and the
/// two evacuations would destroy each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_nova_carries_out_late_is_not_repeated() {
    let api = block_in_place(|| cloud().nova_api(NovaApiOptions::default()).unwrap());
    let lateness = Lateness {
        carried_out_after: Duration::from_secs(27),
        silent: (Duration::from_secs(20), Duration::from_millis(22_300)),
    };
    let late = LateNova::before(&api.url(), lateness);
    let policy = json!({ "evacuation": { "automatic": true } });
    let site = Site::new(Ground::Standalone).await;
    let plant = Plant::start_on(site, Some(&late.url()), ["late-a", "late-b"], policy).await;
    let servers = plant.boot(0, &["late-1"]);
    plant.machines[0].kill();
    plant.until_seen("late-a", "UNREACHABLE").await;
    plant.stack.client.fence("late-a").await;

    let evacuation = plant.until_ended("late-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let moves = plant.moves(&evacuation).await;
    assert_eq!(moves[0]["to"], "late-b", "{moves:?}");
    assert!(
        late.was_late(),
        "Nova carried out the request after Ringfence had given up"
    );
    let records = block_in_place(|| plant.cloud.evacuations("late-a").unwrap());
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(plant.hosts_of(&servers), ["late-b"]);
    plant.judge();
    plant.stop().await;
}
