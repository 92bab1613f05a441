//! Stories with hosts that really run, freeze and die, before `ringfence standalone` with the drivers `ipmi` and `fence-agent`.
//!
//! What has landed on the disk that the hosts share is the judge, and nothing that Ringfence says of itself: after the first answer that calls
//! a host FENCED, no record of the boot that was fenced may land.

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

/// A host with the boot that the story is about.
struct Booted {
    host: Arc<VmHost>,
    boot: String,
}

impl Booted {
    /// Its network cable is pulled: nothing is heard of it any more, and it goes on writing.
    async fn falls_silent(&self, place: &Place) {
        self.host.unplug().unwrap();
        place.until_seen("UNREACHABLE").await;
        place.until_it_writes(&self.boot).await;
    }

    /// Each of its writers waits for the array: more records have landed than were on their way before.
    async fn until_it_is_slow(&self, place: &Place) {
        const SOME: usize = 3;
        let before = place.count(&self.boot);
        ringfence_tests::eventually(async || place.count(&self.boot) >= before + SOME).await;
    }

    /// It has tried to write again and again since: what has not landed by then was not for want of trying.
    async fn until_it_has_tried(&self) {
        const OFTEN: u64 = 60;
        let before = self.host.tried();
        ringfence_tests::eventually(async || self.host.tried() > before + OFTEN).await;
    }
}
