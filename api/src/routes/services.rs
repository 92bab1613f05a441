//! `GET /services`: which engines run, and which zones have workers.

use actix_web::HttpResponse;

use crate::ApiError;
use crate::call::Call;
use crate::error::ErrorList;
use crate::role::Role;
use crate::view::services::ServicesView;

/// Shows the engines of the last day, and how many workers take the tasks of each zone.
#[utoipa::path(get, path = "/services", operation_id = "list_services", tag = "service",
    responses((status = 200, body = ServicesView), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let services = call.engine.services().await?;
    Ok(HttpResponse::Ok().json(ServicesView::from(services)))
}
