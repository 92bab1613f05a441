//! Subscriptions that go on from another event than the one they have got to.

use ringfence_core::SubscriptionId;
use ringfence_db::Tx;

use crate::{Engine, EngineError};

/// Rows of the log that one transaction removes.
const FORGOTTEN_AT_ONCE: u32 = 1000;

/// Where a subscription is to go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// After the event with this number.
    after: u64,
    /// Before the one that it has got to: what follows is delivered again, and the log knows nothing of it any more.
    is_back: bool,
}

impl Move {
    /// Looks where the subscription is, and removes from the log most of what is to be delivered again: that may be as much as is
    /// kept, and others want to write meanwhile. If the process is stopped after it, an event comes twice at worst.
    pub async fn prepare(engine: &Engine, id: SubscriptionId, after: u64) -> Result<Self, EngineError> {
        let mut reader = engine.0.db.reader();
        let progress = ringfence_db::subscription_progress(&mut reader, id).await?;
        let is_back = progress.is_some_and(|progress| after < progress.after_sequence);
        let mut gone = is_back.then_some(after);
        while let Some(up_to) = gone {
            gone = ringfence_db::forget_deliveries(&mut reader, id, up_to, FORGOTTEN_AT_ONCE).await?;
        }
        Ok(Self { after, is_back })
    }

    /// Makes the log fit, so that the engine that takes the subscription next finds nothing that contradicts it.
    pub async fn carry_out(self, tx: &mut Tx, id: SubscriptionId) -> Result<(), EngineError> {
        // From here on no other engine writes of its deliveries.
        ringfence_db::lock_subscription(tx, id).await?;
        let mut gone = self.is_back.then_some(self.after);
        while let Some(up_to) = gone {
            gone = ringfence_db::forget_deliveries(tx, id, up_to, FORGOTTEN_AT_ONCE).await?;
        }
        ringfence_db::give_up_deliveries(tx, id, self.after).await?;
        Ok(())
    }

    pub fn after(self) -> u64 {
        self.after
    }
}
