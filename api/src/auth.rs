//! Authentication.
//!
//! Only the token counts. Any client can send the headers that a proxy with Keystone's middleware would add (`X-User-Id`, `X-Roles`, ...),
//! so they are not read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::IpAddr;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::future::LocalBoxFuture;
use ringfence_engine::{Context, HeldKey};

use crate::ApiError;
use crate::identity::{Credentials, Identity};
use crate::request::RequestId;
use crate::request_log::note_actor;
use crate::role::Role;
use crate::session::{self, OwnSession};
use crate::state::{Front, State};
use crate::watch::Watch;

/// A caller whose token works.
#[derive(Clone)]
pub(crate) struct Caller {
    identity: Identity,
    credentials: Credentials,
    address: Option<IpAddr>,
    request_id: Option<RequestId>,
    key: Option<HeldKey>,
}

impl Caller {
    /// Whom these credentials belong to.
    pub fn new(identity: Identity, credentials: Credentials, request: &HttpRequest) -> Self {
        Self {
            identity,
            credentials,
            address: request.peer_addr().map(|address| address.ip()),
            request_id: request.extensions().get::<RequestId>().cloned(),
            key: None,
        }
    }

    /// Refuses a caller whose role is not enough; else who it is, for the audit trail.
    pub fn require(&self, needs: Role) -> Result<Context, ApiError> {
        let has = self
            .identity
            .role
            .as_ref()
            .map_err(|why| ApiError::NotEntitled(Arc::clone(why)))?;
        if *has < needs {
            return Err(ApiError::Forbidden { has: *has, needs });
        }
        Ok(Context {
            actor: self.identity.actor.to_string(),
            is_admin: *has == Role::Admin,
            origin: self.address.map(|address| address.to_string()),
            request_id: self.request_id.as_ref().map(|id| id.own.clone()),
            global_request_id: self.request_id.as_ref().and_then(|id| id.global.clone()),
            key: self.key.clone(),
            if_revision: None,
            heeds_safeguards: false,
        })
    }

    /// Looks from now on whether the token still works.
    pub fn watch(self, state: &web::Data<State>) -> Watch {
        Watch::start(state.clone(), self.credentials, self.identity)
    }

    /// The owner of the caller's idempotency keys: a name with another role is another owner, since it gets other answers. `None` if the
    /// caller may do nothing.
    pub fn owner(&self) -> Option<String> {
        let role = self.identity.role.as_ref().ok()?;
        Some(format!("{}:{}", role.as_str(), self.identity.actor))
    }

    /// The session that it asks with, if it is a browser that is signed in.
    pub fn session(&self) -> Option<&OwnSession> {
        self.credentials.session.as_ref()
    }

    /// The role, where it may do anything.
    pub fn role(&self) -> Option<Role> {
        self.identity.role.as_ref().ok().copied()
    }

    /// The caller's identity for a request that is to be carried out once.
    pub fn with_key(self, key: HeldKey) -> Self {
        Self {
            key: Some(key),
            ..self
        }
    }
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let known = request.extensions().get::<Self>().cloned();
        let request = request.clone();
        Box::pin(async move {
            match known {
                Some(caller) => Ok(caller),
                None => identify(&request).await,
            }
        })
    }
}

pub(crate) async fn identify(request: &HttpRequest) -> Result<Caller, ApiError> {
    let front = request
        .app_data::<web::Data<Front>>()
        .ok_or(ApiError::Unauthorized {
            why: "the service has no tokens and no Keystone configured",
            keystone: None,
        })?;
    let authenticators = &front.authenticators;
    let now = front.clock.now();
    let credentials = match credentials(request) {
        Some(credentials) => Some(credentials),
        None => session::credentials(request, now).await?,
    };
    let credentials = credentials.ok_or_else(|| {
        authenticators.unauthorized("a token is needed, in the header X-Auth-Token or Authorization: Bearer, or as the password of Basic")
    })?;
    let address = request.peer_addr().map(|address| address.ip());
    let identity = match &credentials.session {
        // What a session was signed in with is not guessed.
        Some(_) => authenticators.confirm(&credentials, address, now).await?,
        None => authenticators.identify(&credentials, address, now).await?,
    };
    note_actor(&identity.actor);
    authenticators.limits.request(&identity.actor)?;
    Ok(Caller::new(identity, credentials, request))
}

/// A scheduler of Kubernetes can only send what stands in the URL of its extender.
fn password(encoded: &str) -> Option<String> {
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

fn credentials(request: &HttpRequest) -> Option<Credentials> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let token = header("x-auth-token")
        .or_else(|| header("authorization")?.strip_prefix("Bearer "))
        .map(str::to_owned)
        .or_else(|| password(header("authorization")?.strip_prefix("Basic ")?))
        .filter(|token| !token.is_empty())?;
    let service_token = header("x-service-token").filter(|token| !token.is_empty());
    Some(Credentials {
        token,
        service_token: service_token.map(ToOwned::to_owned),
        session: None,
    })
}
