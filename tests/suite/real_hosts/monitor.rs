//! Whoever watches a host over its network, and tells Ringfence what it saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringfence_lab::VmAddress;
use ringfence_tests::{Client, eventually, now};
use serde_json::json;
use tokio::task::JoinHandle;

const BETWEEN: Duration = Duration::from_millis(200);
/// Questions without an answer, one after the other, until a host counts as silent.
const MISSES: usize = 3;

/// Asks a host which boot it is, again and again, and reports it.
pub struct Monitor {
    asking: JoinHandle<()>,
    reports: Arc<AtomicUsize>,
}

impl Monitor {
    /// Begins to watch.
    pub fn of(client: &Client, host: &'static str, address: VmAddress) -> Self {
        let reports = Arc::new(AtomicUsize::new(0));
        let (client, counted) = (client.clone(), Arc::clone(&reports));
        let asking = tokio::spawn(async move {
            let mut misses = 0;
            loop {
                misses = watch(&client, host, address, misses).await;
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(BETWEEN).await;
            }
        });
        Self { asking, reports }
    }

    /// Waits until it has asked and told some times more.
    pub async fn goes_on(&self) {
        let before = self.reports.load(Ordering::Relaxed);
        eventually(async || self.reports.load(Ordering::Relaxed) > before + 2 * MISSES).await;
    }
}

/// What was seen counts from before the question: by the time of the answer it may be otherwise.
async fn watch(client: &Client, host: &str, address: VmAddress, misses: usize) -> usize {
    let observed_at = now();
    let boot = tokio::task::spawn_blocking(move || address.ask()).await.unwrap();
    let misses = if boot.is_some() { 0 } else { misses + 1 };
    if misses > 0 && misses < MISSES {
        return misses;
    }
    let state = if boot.is_some() { "UP" } else { "UNREACHABLE" };
    let report =
        json!({ "failure_state": state, "source": "monitor", "observed_at": observed_at, "boot_id": boot });
    client
        .put(&format!("/hosts/{host}/failure-state"), report)
        .await
        .ok(200);
    misses
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.asking.abort();
    }
}
