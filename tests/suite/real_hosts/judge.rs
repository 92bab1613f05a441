//! The judge of a fence: the records on the shared disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_lab::{Landed, Record, VmStore};
use ringfence_tests::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Time between two reads of the fencing state.
const BETWEEN: Duration = Duration::from_millis(5);
/// Many times the duration of a fence on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reads the host's fencing state all the time, beginning before the fence is requested.
pub struct Verdict {
    store: Arc<VmStore>,
    fenced: watch::Receiver<Option<Instant>>,
    asking: JoinHandle<()>,
}

impl Verdict {
    /// Starts to read.
    pub fn on(client: &Client, store: &Arc<VmStore>, host: &'static str) -> Self {
        let (found, fenced) = watch::channel(None);
        let (client, disk) = (client.clone(), Arc::clone(store));
        let asking = tokio::spawn(async move {
            while client.host(host).await["fencing_state"] != "FENCED" {
                tokio::time::sleep(BETWEEN).await;
            }
            let at = Instant::now();
            // Records that land from here on are told apart from earlier ones, however late they are looked at.
            disk.landed().unwrap();
            found.send_replace(Some(at));
        });
        Self {
            store: Arc::clone(store),
            fenced,
            asking,
        }
    }

    /// Waits for the first answer that shows the host FENCED.
    pub async fn until_fenced(&self) {
        let mut fenced = self.fenced.clone();
        let found = tokio::time::timeout(PATIENCE, fenced.wait_for(Option::is_some)).await;
        assert!(matches!(found, Ok(Ok(_))), "the host did not become FENCED");
    }

    /// Panics if a record of this boot has landed since the first answer that showed FENCED.
    #[track_caller]
    pub fn assert_nothing_landed(&self, boot: &str) {
        let since = self.landed_since(boot);
        assert!(since.is_empty(), "landed after FENCED: {since:?}");
    }

    /// The records of this boot that have landed since that answer, and how long after it.
    pub fn landed_since(&self, boot: &str) -> Vec<(Duration, Record)> {
        let fenced = self.fenced.borrow().unwrap();
        let (since, before): (Vec<_>, Vec<_>) = self
            .landed_of(boot)
            .into_iter()
            .partition(|landed| landed.not_before >= fenced);
        let last = before.iter().map(|landed| landed.not_after).max();
        let margin = last.map(|last| fenced.saturating_duration_since(last));
        ringfence_tests::tell(&format!(
            "records of boot {boot}: {} before FENCED, the last {margin:?} before it; {} after",
            before.len(),
            since.len()
        ));
        let after = |landed: Landed| (landed.not_before - fenced, landed.record);
        since.into_iter().map(after).collect()
    }

    fn landed_of(&self, boot: &str) -> Vec<Landed> {
        let mut landed = self.store.landed().unwrap();
        landed.retain(|landed| landed.record.boot == boot);
        assert!(
            !landed.is_empty(),
            "boot {boot} has written no record, so that nothing can be judged"
        );
        landed
    }
}

impl Drop for Verdict {
    fn drop(&mut self) {
        self.asking.abort();
    }
}
