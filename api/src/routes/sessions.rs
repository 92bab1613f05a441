//! `/sessions`: browsers sign in and out.

use actix_web::{HttpRequest, HttpResponse, web};
use ringfence_db::SessionRow;
use ringfence_engine::Context;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::error::ErrorList;
use crate::identity::Credentials;
use crate::keystone::Login;
use crate::paging::MAX_LIMIT;
use crate::request_log::note_actor;
use crate::role::Role;
use crate::session;
use crate::state::State;
use crate::view::session::{SessionList, SessionView, WaysView};

/// The path of the calls.
pub(crate) const PATH: &str = "/sessions";
/// What the path says for the session that asks.
const CURRENT: &str = "current";

/// What is signed in with: one of the three.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInBody {
    /// A token, as in X-Auth-Token.
    token: Option<String>,
    /// A user of Keystone, where one is configured.
    keystone: Option<UserBody>,
    /// What signs in once in the place of a token, as the link that the demonstration prints.
    ticket: Option<String>,
}

/// A user of Keystone.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserBody {
    user: String,
    #[serde(default = "default_domain")]
    user_domain: String,
    password: String,
    /// Absent: the user's default project.
    project: Option<String>,
    #[serde(default = "default_domain")]
    project_domain: String,
}

fn default_domain() -> String {
    "Default".to_owned()
}

/// Shows what can be signed in with.
#[utoipa::path(get, path = "/sessions/ways", operation_id = "list_ways_to_sign_in", tag = "sessions", security(()),
    responses((status = 200, body = WaysView)))]
pub(crate) async fn ways(state: web::Data<State>) -> HttpResponse {
    let keystone = state.front.authenticators.keystone.as_ref().map(|_| "keystone");
    let ways = ["token"].into_iter().chain(keystone).collect();
    HttpResponse::Ok().json(WaysView { ways })
}

/// Signs a browser in.
///
/// The answer sets a cookie, which no script can read, for this site alone. The session ends after 12 hours, with its token, with the
/// browser, or when it is ended. A caller has at most 32; the oldest ones end for new ones.
#[utoipa::path(post, path = "/sessions", operation_id = "sign_in", tag = "sessions", security(()), request_body = SignInBody,
    responses((status = 201, body = SessionView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, description = "It works and allows nothing here", body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn sign_in(
    state: web::Data<State>,
    request: HttpRequest,
    body: Body<SignInBody>,
) -> Result<HttpResponse, ApiError> {
    let credentials = Credentials {
        token: token_of(&state, &request, body.0).await?,
        service_token: None,
        session: None,
    };
    let address = request.peer_addr().map(|address| address.ip());
    let (authenticators, now) = (&state.front.authenticators, state.front.clock.now());
    let identity = authenticators.identify(&credentials, address, now).await?;
    note_actor(&identity.actor);
    let caller = Caller::new(identity.clone(), credentials.clone(), &request);
    let by = caller.require(Role::Reader)?;
    let (session, cookie) = session::begin(&request, &credentials.token, &identity, now)?;
    state.engine.begin_session(&session, &by).await?;
    let id = Some(session.id);
    let view = SessionView::new(session, id, caller.role().map(Role::as_str));
    let mut created = HttpResponse::Created();
    created
        .insert_header(("Cache-Control", "no-store"))
        .cookie(cookie);
    Ok(created.json(view))
}

async fn token_of(state: &State, request: &HttpRequest, body: SignInBody) -> Result<String, ApiError> {
    let one = || ApiError::bad("token", "one of token, keystone and ticket is needed");
    match (body.token, body.keystone, body.ticket) {
        (Some(token), None, None) => Ok(token),
        (None, Some(user), None) => token_of_user(state, request, &user).await,
        (None, None, Some(ticket)) => {
            let token = state.front.tickets.redeem(&ticket);
            token.ok_or_else(|| ApiError::unauthorized("the ticket is unknown or was used before"))
        }
        _ => Err(one()),
    }
}

/// One address cannot try passwords without end.
async fn token_of_user(state: &State, request: &HttpRequest, user: &UserBody) -> Result<String, ApiError> {
    let authenticators = &state.front.authenticators;
    let address = request.peer_addr().map(|address| address.ip());
    let none = || ApiError::bad("keystone", "no Keystone is configured; sign in with a token");
    let keystone = authenticators.keystone.as_ref().ok_or_else(none)?;
    authenticators.limits.may_fail(address)?;
    let login = Login {
        user: &user.user,
        user_domain: &user.user_domain,
        password: &user.password,
        project: user
            .project
            .as_deref()
            .map(|project| (project, user.project_domain.as_str())),
    };
    let token = keystone.log_in(&login).await?;
    token.ok_or_else(|| {
        authenticators.limits.failed(address);
        authenticators.unauthorized("Keystone refuses the user, the password or the project")
    })
}

/// Shows the sessions of the caller, the newest first.
#[utoipa::path(get, path = "/sessions", operation_id = "list_sessions", tag = "sessions",
    responses((status = 200, body = SessionList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    let sessions = own(&call).await?;
    let (current, role) = (current_id(&call), call.caller.role().map(Role::as_str));
    let sessions = sessions.into_iter();
    let sessions = sessions
        .map(|session| SessionView::new(session, current, role))
        .collect();
    Ok(HttpResponse::Ok().json(SessionList { sessions }))
}

/// Shows a session of the caller; `current` is the one that asks.
#[utoipa::path(get, path = "/sessions/{id}", operation_id = "show_session", tag = "sessions",
    params(("id" = String, Path, description = "id, or current")),
    responses((status = 200, body = SessionView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(call: Call, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (wanted, current) = (id_of(&call, &id)?, current_id(&call));
    let found = own(&call).await?.into_iter().find(|session| session.id == wanted);
    let found = found.ok_or_else(|| ApiError::not_found("session", &id))?;
    let role = call.caller.role().map(Role::as_str);
    Ok(HttpResponse::Ok().json(SessionView::new(found, current, role)))
}

/// Ends a session of the caller; `current` signs out.
#[utoipa::path(delete, path = "/sessions/{id}", operation_id = "end_session", tag = "sessions",
    params(("id" = String, Path, description = "id, or current")),
    responses((status = 204), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn end(call: Call, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Reader)?;
    let id = id_of(&call, &id)?;
    call.engine.end_session(id, &by).await?;
    let mut ended = HttpResponse::NoContent();
    if current_id(&call) == Some(id) {
        ended.cookie(session::forget(&call.request));
    }
    Ok(ended.finish())
}

fn current_id(call: &Call) -> Option<Uuid> {
    call.caller.session().map(|session| session.id)
}

fn id_of(call: &Call, given: &str) -> Result<Uuid, ApiError> {
    let id = match given {
        CURRENT => current_id(call),
        other => Uuid::parse_str(other).ok(),
    };
    id.ok_or_else(|| ApiError::not_found("session", given))
}

async fn own(call: &Call) -> Result<Vec<SessionRow>, ApiError> {
    let Context { actor, .. } = call.require(Role::Reader)?;
    let now = call.front.clock.now();
    Ok(ringfence_db::sessions_of(&mut call.engine.db().reader(), &actor, now, MAX_LIMIT).await?)
}
