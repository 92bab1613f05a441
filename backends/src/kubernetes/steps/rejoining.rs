//! Opening a node that was taken back to pods again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Done;
use super::holding::was_taken_out;
use super::node::NodeOf;
use crate::BackendError;
use crate::kubernetes::objects::{Ready, ready};

/// The controllers of a cluster act on what they saw some seconds ago, also after the taint is gone.
const SETTLES: Duration = Duration::from_secs(21);

impl NodeOf<'_> {
    /// The cluster's gates are closed first. The node has to be Ready for a while; then the out-of-service taint goes, and some time later ours and the cordon.
    pub(super) async fn open(&self) -> Result<Done, BackendError> {
        self.gate().close().await?;
        let mut ready_since = None;
        loop {
            let Some(node) = self.read().await? else {
                return Ok(Done::So(format!(
                    "{} has no node {}",
                    self.cluster.settings().name,
                    self.name
                )));
            };
            match ready(&node) {
                Ready::Yes => {
                    let since: &mut Instant = ready_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= self.cluster.settings().ready_for {
                        return self.let_in(was_taken_out(&node)).await;
                    }
                }
                Ready::No | Ready::Unknown => ready_since = None,
            }
            if !self.has_time() {
                let why = match ready_since {
                    Some(_) => format!("{} has not been Ready for long enough", self.name),
                    None => format!("{} is not Ready", self.name),
                };
                return Ok(Done::NotYet(why, None));
            }
            self.pause().await;
        }
    }

    async fn let_in(&self, was_taken_out: bool) -> Result<Done, BackendError> {
        if was_taken_out {
            self.put_back_into_service().await?;
            if self.time.left() < SETTLES {
                return Ok(Done::NotYet(
                    "the cluster's controllers still act on the out-of-service taint".to_owned(),
                    None,
                ));
            }
            sleep(SETTLES).await;
        }
        self.release().await?;
        Ok(Done::So(format!("{} takes pods again", self.name)))
    }
}
