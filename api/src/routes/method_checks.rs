//! `GET /methods/{id}/checks`.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::ApiError;
use crate::call::{Call, IdOrName};
use crate::error::ErrorList;
use crate::paging::{Link, limit, next_link};
use crate::role::Role;
use crate::view::method_check::MethodCheckView;

/// A page of last answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodCheckList {
    checks: Vec<MethodCheckView>,
    links: Vec<Link>,
}

/// Which answers.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct MethodCheckQuery {
    /// true: only those that were not good; false: only the others.
    #[param(value_type = Option<bool>)]
    failing: Option<String>,
    /// The most rows, 1 to 1000; 100 if absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// The id of the last row of the page before.
    #[param(value_type = Option<Uuid>)]
    marker: Option<String>,
}

impl MethodCheckQuery {
    fn failing(&self) -> Result<Option<bool>, ApiError> {
        match self.failing.as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(text) => Err(ApiError::bad(
                "failing",
                format!("is {text:?}; true or false is allowed"),
            )),
        }
    }

    fn marker(&self) -> Result<Option<Uuid>, ApiError> {
        let text = self.marker.as_deref();
        text.map(Uuid::parse_str).transpose().map_err(|_| {
            ApiError::bad(
                "marker",
                format!(
                    "is {:?}; the id of the last row of the page before is allowed",
                    text.unwrap_or_default()
                ),
            )
        })
    }
}

/// Lists what a method's devices last answered, by host.
#[utoipa::path(get, path = "/methods/{id}/checks", operation_id = "list_method_checks", tag = "configuration",
    params(IdOrName, MethodCheckQuery),
    responses((status = 200, body = MethodCheckList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn list(
    call: Call,
    id: IdOrName,
    query: web::Query<MethodCheckQuery>,
) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let limit = limit(query.limit.as_deref())?;
    let (failing, marker) = (query.failing()?, query.marker()?);
    let mut reader = call.engine.db().reader();
    let method = ringfence_db::method(&mut reader, &id)
        .await?
        .ok_or_else(|| ApiError::not_found("method", &id))?;
    let rows = ringfence_db::method_checks_page(&mut reader, method.id, failing, marker, limit).await?;
    let links = next_link(&call.request, limit, &rows, |row| row.id);
    let now = call.engine.clock().now();
    Ok(HttpResponse::Ok().json(MethodCheckList {
        checks: rows
            .into_iter()
            .map(|row| MethodCheckView::new(row, now))
            .collect(),
        links,
    }))
}
