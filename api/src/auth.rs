//! Who asks.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use ringfence_engine::Context;

use crate::ApiError;
use crate::application::State;
use crate::request::RequestId;
use crate::request_log::note_actor;
use crate::tokens::Role;

/// A caller whose token works.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    name: String,
    role: Role,
    origin: Option<String>,
    request_id: Option<String>,
}

impl Caller {
    /// Refuses a caller whose role is not enough; else who it is, for the audit trail.
    pub fn require(&self, needs: Role) -> Result<Context, ApiError> {
        if self.role < needs {
            return Err(ApiError::Forbidden {
                has: self.role,
                needs,
            });
        }
        Ok(Context {
            actor: self.name.clone(),
            is_admin: self.role == Role::Admin,
            origin: self.origin.clone(),
            request_id: self.request_id.clone(),
        })
    }
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(identify(request))
    }
}

pub(crate) fn identify(request: &HttpRequest) -> Result<Caller, ApiError> {
    let state = request
        .app_data::<web::Data<State>>()
        .ok_or(ApiError::Unauthorized(
            "the service is not configured to know anyone",
        ))?;
    let token = token(request).ok_or(ApiError::Unauthorized(
        "a token is needed, in the header X-Auth-Token or Authorization: Bearer",
    ))?;
    let (name, role) = state
        .tokens
        .find(token, state.engine.clock().now())
        .ok_or(ApiError::Unauthorized("the token is unknown, revoked or expired"))?;
    note_actor(&name);
    Ok(Caller {
        name,
        role,
        origin: request.peer_addr().map(|address| address.ip().to_string()),
        request_id: request.extensions().get::<RequestId>().map(|id| id.0.clone()),
    })
}

fn token(request: &HttpRequest) -> Option<&str> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    header("x-auth-token")
        .or_else(|| header("authorization")?.strip_prefix("Bearer "))
        .filter(|token| !token.is_empty())
}
