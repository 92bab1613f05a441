//! `GET /metrics`: the numbers of this process, for Prometheus.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::ApiError;
use crate::auth::identify;
use crate::error::ErrorList;
use crate::metrics::answer;
use crate::role::Role;
use crate::state::Front;

/// The numbers of this process, in the form of OpenMetrics.
///
/// Needs no token where `metrics.public` is true.
#[utoipa::path(get, path = "/metrics", operation_id = "show_metrics", tag = "service",
    responses((status = 200, description = "OpenMetrics", content_type = "application/openmetrics-text", body = String),
        (status = 401, body = ErrorList), (status = 403, body = ErrorList)))]
pub(crate) async fn metrics(front: web::Data<Front>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    if !front.are_metrics_public {
        identify(&request).await?.require(Role::Reader)?;
    }
    Ok(answer(&front.exposition).await)
}
