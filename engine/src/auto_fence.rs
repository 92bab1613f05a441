//! Brings what `core` needs to fence a host automatically: its plan, and how its neighbours stand.

use chrono::TimeDelta;
use ringfence_core::{HostState, Input, OperationId, error_chain, fence_due};

use crate::ids::new_id;
use crate::{Context, Engine, EngineError};

impl Engine {
    /// Fences the host if its segment wants that and its time has come. What goes wrong is tried again when the host is ticked next.
    pub(crate) async fn fence_if_due(&self, state: &HostState) {
        if fence_due(state).is_none_or(|due| due > self.0.clock.now()) {
            return;
        }
        let host_id = state.host.id;
        if let Err(error) = self.auto_fence(state).await {
            tracing::warn!(%host_id, error = %error_chain(&error), "a silent host could not be fenced; it is tried again");
        }
    }

    async fn auto_fence(&self, state: &HostState) -> Result<(), EngineError> {
        let seen = self.see(&state.host.id.to_string()).await?;
        let plan = match self.plan_of(&seen).await {
            Ok(plan) => Ok(plan),
            Err(fault @ (EngineError::PlanMissing { .. } | EngineError::PlanBroken { .. })) => {
                Err(fault.to_string())
            }
            Err(other) => return Err(other),
        };
        let within_s = i64::from(seen.state.policy.fencing.within_s);
        let since = self.0.clock.now() - TimeDelta::seconds(within_s);
        let input = Input::AutoFence {
            operation_id: OperationId(new_id()),
            plan,
            sufficient_sets: self.sufficient_sets_of(&seen.state.host).await?,
            around: ringfence_db::neighbourhood(&mut self.0.db.reader(), &seen.state.host, since).await?,
        };
        self.apply(seen, input, &Context::own("ringfence")).await?;
        Ok(())
    }
}
