//! Whether the token of an open stream still works.

use std::time::Duration;

use actix_web::web;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::ApiError;
use crate::identity::{Credentials, Identity};
use crate::session;
use crate::state::State;

/// How long a stream goes on while it cannot be told whether its token works.
const MOST_UNCONFIRMED: Duration = Duration::from_secs(300);

/// Looks until the token does not work any more, or until it is dropped.
pub(crate) struct Watch {
    ended: CancellationToken,
    _looking: AbortOnDropHandle<()>,
}

impl Watch {
    pub fn start(state: web::Data<State>, credentials: Credentials, identity: Identity) -> Self {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let looking = tokio::spawn(async move {
            let _ended_whatever_happens = guard;
            look(&state, &credentials, identity).await;
        });
        Self {
            ended,
            _looking: AbortOnDropHandle::new(looking),
        }
    }

    /// Waits until the token does not work any more.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// Ends when the token does. It is asked for again as often as the configuration says; many streams of one token are one question.
async fn look(state: &State, credentials: &Credentials, identity: Identity) {
    let mut identity = identity;
    let mut confirmed_at = Instant::now();
    loop {
        let now = state.engine.clock().now();
        let left = identity
            .expires_at
            .map(|end| (end - now).to_std().unwrap_or_default());
        let every = state.recheck_every;
        tokio::time::sleep(left.map_or(every, |left| left.min(every))).await;
        let now = state.engine.clock().now();
        if let Some(own) = &credentials.session
            && matches!(session::stands(state, own, now).await, Ok(false))
        {
            return;
        }
        match state.front.authenticators.confirm(credentials, None, now).await {
            Ok(found) if found.role.is_ok() => {
                identity = found;
                confirmed_at = Instant::now();
            }
            Ok(_) | Err(ApiError::Unauthorized { .. }) => return,
            Err(error) if confirmed_at.elapsed() >= MOST_UNCONFIRMED => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a stream ends: Keystone could not be asked about its token"
                );
                return;
            }
            Err(_) if identity.expires_at.is_some_and(|end| end <= now) => return,
            Err(_) => {}
        }
    }
}
