//! `PUT /bulk/failure-states`: what an outside monitor saw of many hosts.

use actix_web::HttpResponse;
use chrono::{DateTime, Utc};
use ringfence_core::{FailureState, HostState, Report};
use ringfence_engine::check_source;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{BulkBody, Read, outcomes, text_of, told, unless_all_failed};
use crate::ApiError;
use crate::call::Call;
use crate::error::{ErrorBody, ErrorList};
use crate::moment;
use crate::role::Role;
use crate::routes::failure_state::report_of;

/// What was seen of hosts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailureStatesBody<'a> {
    /// The monitor's name, up to 255 characters.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    source: String,
    /// Each has `host`, an id or a name, and beside it what is in `PUT /hosts/{id}/failure-state`, without `source`.
    #[serde(borrow)]
    #[schema(value_type = Vec<Object>, min_items = 1, max_items = 1000,
        example = json!([{ "host": "node-1", "failure_state": "UP", "observed_at": "2026-11-21T01:31:22Z" }]))]
    reports: Vec<&'a RawValue>,
}

/// What was seen of one host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportBody {
    host: String,
    failure_state: FailureState,
    #[serde(deserialize_with = "moment::required")]
    observed_at: DateTime<Utc>,
    #[serde(default, deserialize_with = "moment::optional")]
    last_seen_at: Option<DateTime<Utc>>,
    #[serde(default)]
    boot_id: Option<String>,
    #[serde(default, deserialize_with = "moment::optional")]
    booted_at: Option<DateTime<Utc>>,
}

impl ReportBody {
    fn of(self, source: &str) -> (String, Report) {
        let report = report_of(
            self.failure_state,
            source.to_owned(),
            (self.observed_at, self.last_seen_at),
            (self.boot_id, self.booted_at),
        );
        (self.host, report)
    }
}

/// What became of each report, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureStates {
    reports: Vec<Reported>,
}

/// What became of a report.
#[derive(Debug, Serialize, ToSchema)]
struct Reported {
    /// The host as the report named it, where it names one.
    host: Option<String>,
    /// 200 if it was taken down; else what `PUT /hosts/{id}/failure-state` would have answered.
    #[schema(example = 200)]
    status: u16,
    /// The verdict over all sources of the host, if it was taken down: UP, UNREACHABLE or UNKNOWN.
    #[schema(value_type = Option<String>, example = "UP")]
    failure_state: Option<FailureState>,
    /// Why it was not taken down.
    errors: Vec<ErrorBody>,
}

/// Takes down what a monitor saw of many hosts.
///
/// Each report is taken down as by `PUT /hosts/{id}/failure-state`, or refused for itself.
#[utoipa::path(put, path = "/bulk/failure-states", operation_id = "report_failure_states", tag = "hosts", request_body = FailureStatesBody,
    responses((status = 200, body = FailureStates), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn report(call: Call, body: BulkBody) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Service)?;
    let FailureStatesBody { source, reports } = body.parse()?;
    check_source(&source)?;
    let Read { things, faults } = Read::<ReportBody>::of("reports", &reports)?;
    let wanted = things.into_iter().map(|report| report.of(&source)).collect();
    let outcomes = outcomes(faults, call.engine.report_failure_states(wanted, &by).await?);
    let outcomes = unless_all_failed(outcomes)?;
    let reports = reports.iter().zip(&outcomes);
    let reports = reports.map(|(item, outcome)| Reported::of(text_of(item, "host"), outcome));
    Ok(HttpResponse::Ok().json(FailureStates {
        reports: reports.collect(),
    }))
}

impl Reported {
    fn of(host: Option<String>, done: &Result<HostState, ApiError>) -> Self {
        let (status, errors) = told(done, 200);
        Self {
            host,
            status,
            failure_state: done.as_ref().ok().map(|state| state.host.failure_state),
            errors,
        }
    }
}
