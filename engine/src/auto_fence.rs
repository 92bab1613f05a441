//! Brings what `core` needs to fence a host automatically: its plan, and how its neighbours stand.

use chrono::TimeDelta;
use ringfence_core::{
    HostState, Input, Neighbourhood, OperationId, Timestamp, error_chain, fence_due, look_due,
};

use crate::ids::new_id;
use crate::{Context, Engine, EngineError};

impl Engine {
    /// Fences the host if its segment wants that and its time has come, and looks again at the safeguards that hold such a fence. What goes
    /// wrong is tried again when the host is ticked next.
    pub(crate) async fn fence_if_due(&self, state: &HostState) {
        let now = self.0.clock.now();
        let is_due = |due: Option<Timestamp>| due.is_some_and(|due| due <= now);
        let host_id = state.host.id;
        let done = if is_due(fence_due(state)) {
            self.auto_fence(state).await
        } else if is_due(look_due(state.operation.as_ref())) {
            self.look_again(state).await
        } else {
            return;
        };
        match done {
            Ok(()) => {}
            Err(EngineError::NotPermitted) => {
                tracing::debug!(%host_id, "another fence has taken the last permit; it is tried again");
            }
            Err(error) => {
                tracing::warn!(%host_id, error = %error_chain(&error), "a silent host could not be fenced; it is tried again");
            }
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
        let input = Input::AutoFence {
            operation_id: OperationId(new_id()),
            plan,
            sufficient_sets: self.sufficient_sets_of(&seen.state.host).await?,
            around: self.around(&seen.state).await?,
        };
        self.apply(seen, input, &Context::own("ringfence")).await?;
        Ok(())
    }

    async fn look_again(&self, state: &HostState) -> Result<(), EngineError> {
        let around = self.around(state).await?;
        let by = Context::own("ringfence");
        self.apply(state.host.id, Input::LookAgain { around }, &by)
            .await?;
        Ok(())
    }

    /// How the hosts of its segment and its cloud stand.
    pub(crate) async fn around(&self, state: &HostState) -> Result<Neighbourhood, EngineError> {
        let within_s = i64::from(state.policy.fencing.within_s);
        let now = self.0.clock.now();
        let since = now - TimeDelta::seconds(within_s);
        Ok(ringfence_db::neighbourhood(&mut self.0.db.reader(), &state.host, since, now).await?)
    }
}
