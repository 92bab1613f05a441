//! `GET /events`.

use actix_web::{HttpResponse, web};
use ringfence_core::{EventKind, HostId};
use ringfence_db::EventTest;
use ringfence_engine::EngineError;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};

use crate::ApiError;
use crate::call::Call;
use crate::error::ErrorList;
use crate::paging::{Link, limit};
use crate::role::Role;
use crate::state::State;
use crate::view::event::EventView;

/// Some events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    events: Vec<EventView>,
    /// Events with a number up to this one have been removed, or are not told any more.
    removed_up_to: u64,
    links: Vec<Link>,
}

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventQuery {
    /// Only with a number above this one; absent: from the oldest that are kept.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9_223_372_036_854_775_807_u64)]
    pub after: Option<String>,
    /// Only of the host with this id or name.
    pub host: Option<String>,
    #[serde(rename = "type")]
    #[param(rename = "type", schema_with = kinds)]
    pub kind: Option<String>,
    /// sequence, sequence:asc or sequence:desc; sequence:asc if absent. With sequence:desc the newest come first, on one page.
    #[param(pattern = "^sequence(:(asc|desc))?$")]
    pub sort: Option<String>,
    /// The most rows, 1 to 1000; 100 if absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub limit: Option<String>,
}

/// All types of events.
fn kinds() -> Object {
    let all = EventKind::ALL.iter().map(|kind| kind.as_str());
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("Only events of this type."))
        .enum_values(Some(all))
        .build()
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

fn kind(text: Option<&str>) -> Result<Option<EventKind>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let known = EventKind::from_word(text).ok_or_else(|| {
        let allowed: Vec<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        ApiError::bad(
            "type",
            format!("is {text:?}; one of {} is allowed", allowed.join(", ")),
        )
    });
    known.map(Some)
}

fn is_newest_first(sort: Option<&str>) -> Result<bool, ApiError> {
    match sort {
        None | Some("sequence" | "sequence:asc") => Ok(false),
        Some("sequence:desc") => Ok(true),
        Some(text) => Err(ApiError::bad(
            "sort",
            format!("is {text:?}; sequence, sequence:asc or sequence:desc is allowed"),
        )),
    }
}

/// The id of a host that is named by id or name.
pub(crate) async fn host_id(state: &State, host: Option<&str>) -> Result<Option<HostId>, ApiError> {
    let Some(host) = host else { return Ok(None) };
    let row = ringfence_db::host_row(&mut state.engine.db().reader(), host).await?;
    row.map(|row| Some(row.host.id))
        .ok_or_else(|| ApiError::not_found("host", host))
}

/// A client that has read everything up to `after` must not believe that what is left is all that came since.
pub(crate) fn refuse_gap(after: u64, up_to: u64) -> Result<(), ApiError> {
    if after < up_to {
        return Err(EngineError::EventsGone { after, up_to }.into());
    }
    Ok(())
}

/// Lists events.
///
/// Where events after the number that was asked for have been removed, the answer is 410.
#[utoipa::path(get, path = "/events", operation_id = "list_events", tag = "events", params(EventQuery),
    responses((status = 200, body = EventList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList), (status = 410, body = ErrorList)))]
pub(crate) async fn list(call: Call, query: web::Query<EventQuery>) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let limit = limit(query.limit.as_deref())?;
    let host_id = host_id(&call, query.host.as_deref()).await?;
    let mut reader = call.engine.db().reader_of_what_grows();
    let given = query
        .after
        .as_deref()
        .map(|text| sequence("after", text))
        .transpose()?;
    let after = match given {
        Some(after) => after,
        None => ringfence_db::events_removed_up_to(&mut reader).await?,
    };
    let is_newest_first = is_newest_first(query.sort.as_deref())?;
    let test = EventTest {
        after,
        host_id,
        kind: kind(query.kind.as_deref())?,
    };
    let rows = ringfence_db::events_page(&mut reader, test, is_newest_first, limit).await?;
    // Read afterwards: what was removed before the rows were read shows here.
    let removed_up_to = ringfence_db::events_removed_up_to(&mut reader).await?;
    if given.is_some() {
        refuse_gap(after, removed_up_to)?;
    }
    let mut links = Vec::new();
    if let Some(last) = rows
        .last()
        .filter(|_| !is_newest_first && rows.len() >= limit as usize)
    {
        let kept = [("host", &query.host), ("type", &query.kind)];
        let kept = kept.map(|(name, value)| {
            value
                .as_ref()
                .map(|value| format!("&{name}={value}"))
                .unwrap_or_default()
        });
        links.push(Link {
            rel: "next".to_owned(),
            href: format!("/events?after={}&limit={limit}{}", last.sequence, kept.concat()),
        });
    }
    Ok(HttpResponse::Ok().json(EventList {
        events: rows
            .iter()
            .filter(|row| row.sequence > removed_up_to)
            .map(EventView::from)
            .collect(),
        removed_up_to,
        links,
    }))
}
