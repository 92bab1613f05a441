//! Tests with virtual hosts that really run, freeze and die, before `ringfence standalone` with the drivers `ipmi` and `fence-agent`.
//!
//! The judge is the disk that the hosts share, not Ringfence's own state: after the first answer that shows a host FENCED, no record of
//! the fenced boot may land.

mod bmc;
mod both;
mod frozen;
mod judge;
mod monitor;
mod place;
mod power;
mod returning;
mod slow_array;
mod storage;

use std::sync::Arc;

use judge::Verdict;
use place::Place;
use ringfence_lab::VmHost;

/// A host and its boot that is fenced.
struct Booted {
    host: Arc<VmHost>,
    boot: String,
}

impl Booted {
    /// Unplugs the host's network cable: the monitor hears nothing, and the host goes on writing.
    async fn falls_silent(&self, place: &Place) {
        self.host.unplug().unwrap();
        place.until_seen("UNREACHABLE").await;
        place.until_it_writes(&self.boot).await;
    }

    /// Waits until every write of the host waits for the slow array: more records have landed than were under way before.
    async fn until_it_is_slow(&self, place: &Place) {
        const SOME: usize = 3;
        let before = place.count(&self.boot);
        ringfence_tests::eventually(async || place.count(&self.boot) >= before + SOME).await;
    }

    /// Waits until the host has tried to write many times more, so that a missing record was stopped and not just unwritten.
    async fn until_it_has_tried(&self) {
        const OFTEN: u64 = 60;
        let before = self.host.tried();
        ringfence_tests::eventually(async || self.host.tried() > before + OFTEN).await;
    }
}
