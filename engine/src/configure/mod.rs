//! What admins configure: hosts, segments, methods, plans, subscriptions. Everything is checked whole before anything is written.

mod advice;
mod declared;
mod hosts;
mod many_hosts;
mod methods;
mod moving;
mod plans;
mod segments;
mod subscriptions;
mod suspensions;

pub use declared::{Configured, Declaration};
pub(crate) use hosts::Origin;
pub use hosts::{HostChange, HostDraft};
pub use methods::MethodDraft;
pub use plans::PlanDraft;
pub(crate) use subscriptions::MAX_SUBSCRIPTIONS;
pub use subscriptions::{SubscriptionDraft, origin_of};
pub use suspensions::{SuspensionDraft, SuspensionEnd};

use ringfence_db::Tx;
use serde_json::Value;

use crate::{Context, Engine, EngineError};

impl Engine {
    /// Puts a change of the configuration on record and commits both.
    pub(crate) async fn commit(
        &self,
        mut tx: Tx,
        action: &str,
        target: &str,
        detail: Value,
        by: &Context,
    ) -> Result<(), EngineError> {
        let entry = by.line(self.0.clock.now(), action, Some(target), None, detail);
        ringfence_db::append_audit(&mut tx, &entry).await?;
        Ok(tx.commit().await?)
    }
}

/// Comes after everything else that can be wrong with a request (RFC 9110, 13.2.1).
pub(crate) fn check_revision(given: Option<u64>, current: u64) -> Result<(), EngineError> {
    match given {
        Some(given) if given != current => Err(EngineError::Changed { given, current }),
        Some(_) | None => Ok(()),
    }
}

fn require_written(is_written: bool, given: u64) -> Result<(), EngineError> {
    if is_written {
        Ok(())
    } else {
        Err(EngineError::Changed {
            given,
            current: given + 1,
        })
    }
}
