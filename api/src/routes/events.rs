//! `GET /events`.

use actix_web::{HttpResponse, web};
use ringfence_core::HostId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ApiError;
use crate::application::State;
use crate::auth::Caller;
use crate::error::ErrorList;
use crate::paging::{Link, limit};
use crate::tokens::Role;
use crate::view::event::EventView;

/// Some events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    events: Vec<EventView>,
    links: Vec<Link>,
}

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventQuery {
    /// Only with a number above this one; 0 if absent.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9_223_372_036_854_775_807_u64)]
    pub after: Option<String>,
    /// Only of the host with this id or name.
    pub host: Option<String>,
    /// The most rows, 1 to 1000; 100 if absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub limit: Option<String>,
}

/// A number of an event.
pub(crate) fn sequence(field: &str, text: &str) -> Result<u64, ApiError> {
    // The databases count with 63 bits.
    let number = text.parse::<u64>().ok().filter(|n| i64::try_from(*n).is_ok());
    number.ok_or_else(|| {
        ApiError::bad(
            field,
            format!("is {text:?}; the number of an event, 0 or more, is allowed"),
        )
    })
}

/// The id of a host that is named by id or name.
pub(crate) async fn host_id(state: &State, host: Option<&str>) -> Result<Option<HostId>, ApiError> {
    let Some(host) = host else { return Ok(None) };
    let row = ringfence_db::host_row(&mut state.engine.db().reader(), host).await?;
    row.map(|row| Some(row.host.id))
        .ok_or_else(|| ApiError::not_found("host", host))
}

/// Lists events.
#[utoipa::path(get, path = "/events", operation_id = "list_events", tag = "events", params(EventQuery),
    responses((status = 200, body = EventList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn list(
    state: web::Data<State>,
    caller: Caller,
    query: web::Query<EventQuery>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let after = query
        .after
        .as_deref()
        .map_or(Ok(0), |text| sequence("after", text))?;
    let limit = limit(query.limit.as_deref())?;
    let host_id = host_id(&state, query.host.as_deref()).await?;
    let rows = ringfence_db::events_after(&mut state.engine.db().reader(), after, host_id, limit).await?;
    let mut links = Vec::new();
    if let Some(last) = rows.last().filter(|_| rows.len() >= limit as usize) {
        let host = query
            .host
            .as_ref()
            .map(|host| format!("&host={host}"))
            .unwrap_or_default();
        links.push(Link {
            rel: "next".to_owned(),
            href: format!("/events?after={}&limit={limit}{host}", last.sequence),
        });
    }
    Ok(HttpResponse::Ok().json(EventList {
        events: rows.iter().map(EventView::from).collect(),
        links,
    }))
}
