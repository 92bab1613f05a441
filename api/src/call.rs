//! A request that a handler answers.

use std::future::{Ready, ready};
use std::ops::Deref;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use futures_util::future::LocalBoxFuture;
use ringfence_engine::Context;
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::ApiError;
use crate::auth::Caller;
use crate::conditional::if_match;
use crate::state::State;
use crate::tokens::Role;

/// A request by a caller whose token works, and what there is to answer it with.
pub(crate) struct Call {
    pub state: web::Data<State>,
    pub caller: Caller,
    pub request: HttpRequest,
}

impl Call {
    /// Refuses a caller whose role is not enough; else who it is, for the audit trail.
    pub fn require(&self, needs: Role) -> Result<Context, ApiError> {
        self.caller.require(needs)
    }

    /// The revision that `If-Match` demands.
    pub fn if_match(&self) -> Result<Option<u64>, ApiError> {
        if_match(&self.request)
    }

    /// Refuses a caller whose role is not enough for a change; else who it is, and that only the revision of `If-Match` is changed.
    pub fn require_to_change(&self, needs: Role) -> Result<Context, ApiError> {
        Ok(self.require(needs)?.only_at(self.if_match()?))
    }
}

impl Deref for Call {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl FromRequest for Call {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let state = request.app_data::<web::Data<State>>().cloned();
        let caller = Caller::from_request(request, payload);
        let request = request.clone();
        Box::pin(async move {
            let nothing = || ApiError::NoSuchPath(request.path().to_owned());
            let state = state.ok_or_else(nothing)?;
            Ok(Self {
                state,
                caller: caller.await?,
                request,
            })
        })
    }
}

/// What the path names, by its id or its name.
pub(crate) struct IdOrName(String);

impl Deref for IdOrName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl FromRequest for IdOrName {
    type Error = actix_web::Error;
    type Future = Ready<Result<Self, actix_web::Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let path = web::Path::<String>::from_request(request, payload).into_inner();
        ready(path.map(|id| Self(id.into_inner())))
    }
}

impl IntoParams for IdOrName {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let text = ObjectBuilder::new().schema_type(Type::String).build();
        let id = ParameterBuilder::new()
            .name("id")
            .parameter_in(ParameterIn::Path)
            .description(Some("id or name"))
            .required(Required::True)
            .schema(Some(text));
        vec![id.build()]
    }
}
