//! Brings what `core` needs to fence a host automatically: its plan, and how its neighbours stand.

use chrono::TimeDelta;
use ringfence_core::{
    HostId, HostState, Input, Neighbourhood, OperationId, Opinions, Timestamp, asks_others, error_chain,
    fence_due, look_due,
};

use crate::ids::new_id;
use crate::{Context, Engine, EngineError};

impl Engine {
    /// Fences the host if its segment wants that and its time has come, and looks again at the safeguards that hold such a fence. Where others have to be asked
    /// before, that is done beside it. What goes wrong is tried again when the host is ticked next.
    pub(crate) async fn fence_if_due(&self, state: &HostState) {
        let now = self.0.clock.now();
        if !Due::of(state, now).is_any() {
            return;
        }
        let done = match self.has_to_ask(state).await {
            Ok(true) => return self.0.asking.want(state.host.id),
            Ok(false) => self.fence_or_look(state, Opinions::default()).await,
            Err(error) => Err(error),
        };
        tell(state, done);
    }

    /// As [`Engine::fence_if_due`], and others that have to be asked are waited for.
    pub(crate) async fn fence_now_if_due(&self, state: &HostState) {
        if !Due::of(state, self.0.clock.now()).is_any() {
            return;
        }
        let done = match self.has_to_ask(state).await {
            Ok(true) => return self.fence_when_asked(state.host.id).await,
            Ok(false) => self.fence_or_look(state, Opinions::default()).await,
            Err(error) => Err(error),
        };
        tell(state, done);
    }

    /// What [`Engine::fence_if_due`] does when others have been asked.
    pub(crate) async fn fence_when_asked(&self, host_id: HostId) {
        let state = match self.state_of(&host_id.to_string()).await {
            Ok(state) => state,
            Err(EngineError::NotFound { .. }) => return,
            Err(error) => {
                let error = error_chain(&error);
                return tracing::warn!(%host_id, error, "a silent host could not be read; it is tried again");
            }
        };
        if Due::of(&state, self.0.clock.now()).is_any() {
            let opinions = self.opinions(&state).await;
            tell(&state, self.fence_or_look(&state, opinions).await);
        }
    }

    async fn has_to_ask(&self, state: &HostState) -> Result<bool, EngineError> {
        if !state.policy.fencing.asks_others() {
            return Ok(false);
        }
        let around = self.around(state).await?;
        Ok(asks_others(state, &around, self.0.clock.now()))
    }

    async fn fence_or_look(&self, state: &HostState, opinions: Opinions) -> Result<(), EngineError> {
        if Due::of(state, self.0.clock.now()).fence {
            self.auto_fence(state, opinions).await
        } else {
            self.look_again(state, opinions).await
        }
    }

    async fn auto_fence(&self, state: &HostState, opinions: Opinions) -> Result<(), EngineError> {
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
            opinions,
        };
        self.apply(seen, input, &Context::own("ringfence")).await?;
        Ok(())
    }

    /// The policy may have changed while others were asked: what is counted is counted by the present one.
    async fn look_again(&self, state: &HostState, opinions: Opinions) -> Result<(), EngineError> {
        let seen = self.see(&state.host.id.to_string()).await?;
        let around = self.around(&seen.state).await?;
        let by = Context::own("ringfence");
        self.apply(seen, Input::LookAgain { around, opinions }, &by)
            .await?;
        Ok(())
    }

    /// How the hosts of its segment and its cloud stand.
    pub(crate) async fn around(&self, state: &HostState) -> Result<Neighbourhood, EngineError> {
        let within_s = i64::from(state.policy.fencing.within_s);
        let now = self.0.clock.now();
        let since = now - TimeDelta::seconds(within_s);
        let mut reader = self.0.db.reader();
        let around = ringfence_db::neighbourhood(&mut reader, &state.host, since, now).await?;
        let not_quiet_since = match state.policy.fencing.quiet_s {
            Some(quiet_s) => {
                ringfence_db::segment_not_quiet_since(&mut reader, &state.host, quiet_s, now).await?
            }
            None => None,
        };
        let groups = ringfence_db::group_counts(&mut reader, &state.host, &state.policy.fencing, now).await?;
        Ok(Neighbourhood {
            not_quiet_since,
            groups,
            sights: self.sights(state).await?,
            ..around
        })
    }
}

/// What of a host's automatic fence has become due.
struct Due {
    fence: bool,
    look: bool,
}

impl Due {
    fn of(state: &HostState, now: Timestamp) -> Self {
        let is_due = |due: Option<Timestamp>| due.is_some_and(|due| due <= now);
        Self {
            fence: is_due(fence_due(state)),
            look: is_due(look_due(state.operation.as_ref())),
        }
    }

    fn is_any(&self) -> bool {
        self.fence || self.look
    }
}

fn tell(state: &HostState, done: Result<(), EngineError>) {
    let host_id = state.host.id;
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
