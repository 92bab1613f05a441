//! `PUT /hosts/{id}/conditions`: what a source says is wrong with a host.

use actix_web::HttpResponse;
use ringfence_core::{ConditionStatus, ReportedCondition};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::role::Role;
use crate::routes::configured::NotChanged;
use crate::routes::hosts;
use crate::view::host::HostView;

/// All conditions that a source has of a host.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConditionsBody {
    /// The name of the source, up to 255 characters.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    source: String,
    /// One that is not named is no more; at most 64.
    #[schema(max_items = 64)]
    conditions: Vec<ConditionBody>,
}

/// A condition.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConditionBody {
    /// What it is about; 1 to 316 characters without blanks, and each name once.
    #[schema(min_length = 1, max_length = 316, example = "KernelDeadlock")]
    name: String,
    /// Whether that is so: True, False or Unknown
    #[schema(value_type = String, pattern = "^(True|False|Unknown)$", example = "True")]
    status: ConditionStatus,
    /// Why; up to 255 characters.
    #[serde(default)]
    #[schema(max_length = 255, example = "DockerHung")]
    reason: String,
}

/// Takes down what a source says is wrong with a host.
///
/// Conditions say nothing of whether the host is alive. What is done about one is what the segment's rules for conditions say. Each source says
/// all that it knows: a condition that it does not name any more is over. `conditions` of the host shows those of all sources.
#[utoipa::path(put, path = "/hosts/{id}/conditions", operation_id = "report_conditions", tag = "hosts", request_body = ConditionsBody, params(IdOrName),
    responses((status = 200, body = HostView), NotChanged))]
pub(crate) async fn report(
    call: Call,
    id: IdOrName,
    body: Body<ConditionsBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let ConditionsBody { source, conditions } = body.0;
    let conditions = conditions.into_iter().map(|condition| ReportedCondition {
        name: condition.name,
        status: condition.status,
        reason: condition.reason,
    });
    let state = call
        .engine
        .report_conditions(&id, &source, (conditions.collect(), None), &by)
        .await?;
    hosts::answer(&call, &state.host.id.to_string(), HttpResponse::Ok()).await
}
