//! `POST /nova/filter`: which of these hosts may get workloads, from memory.

use actix_web::{HttpResponse, web};
use ringfence_core::Timestamp;
use ringfence_scheduler_hook::{Filtered, Hook};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use crate::ApiError;
use crate::auth::Caller;
use crate::body::LongBody;
use crate::error::ErrorList;
use crate::role::Role;
use crate::routes::host_name::HostName;

/// The most hosts of one question.
const MAX_HOSTS: usize = 10_000;
/// The longest question, in bytes. It bounds the answer too, which those who ask read up to 4 MiB of.
pub(crate) const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;

/// The question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilterQuestion<'a> {
    /// By what name Ringfence knows the cloud
    #[serde(borrow)]
    #[schema(value_type = String)]
    cloud: HostName<'a>,
    /// What the cloud calls the hosts; at most 10000
    #[serde(borrow)]
    #[schema(value_type = Vec<String>)]
    hosts: Vec<HostName<'a>>,
}

/// The answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct FilterAnswer<'a> {
    /// They may get workloads
    allowed: &'a [&'a str],
    /// They may not
    #[serde(serialize_with = "refused")]
    #[schema(value_type = Vec<RefusedHost>)]
    refused: &'a [(&'a str, &'a str)],
    /// When it was so: what came later need not have been seen
    #[schema(value_type = String, format = DateTime)]
    as_of: Timestamp,
}

/// A host that may get no workloads.
#[derive(Serialize, ToSchema)]
pub(crate) struct RefusedHost<'a> {
    host: &'a str,
    /// For people
    reason: &'a str,
}

fn refused<S: Serializer>(refused: &[(&str, &str)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(refused.len()))?;
    for (host, reason) in refused {
        list.serialize_element(&RefusedHost { host, reason })?;
    }
    list.end()
}

/// Which of these hosts may get workloads?
///
/// Served by `ringfence scheduler-hook` and `ringfence standalone`. Answered from memory; 503 if that is older than
/// `scheduler_hook.max_age_ms`. A host that Ringfence does not know is refused unless `scheduler_hook.unknown_hosts` says otherwise; a
/// cloud that it does not know has no host that is allowed.
#[utoipa::path(post, path = "/nova/filter", operation_id = "filter_hosts", tag = "scheduler hook", request_body = FilterQuestion<'_>,
    responses((status = 200, body = FilterAnswer<'_>), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList), (status = 503, body = ErrorList)))]
pub(crate) async fn filter(
    hook: web::Data<Hook>,
    caller: Caller,
    body: LongBody<MAX_BODY_BYTES>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let question: FilterQuestion<'_> = body.parse()?;
    if question.hosts.len() > MAX_HOSTS {
        let found = question.hosts.len();
        let why = format!("has {found} names; at most {MAX_HOSTS} are allowed");
        return Err(ApiError::bad("hosts", why));
    }
    let snapshot = hook.snapshot()?;
    let hosts = question.hosts.iter().map(|host| &*host.0);
    let filtered = hook.filter(&snapshot, &question.cloud.0, hosts);
    let answer = answer(&filtered);
    hook.confirm(&filtered).await?;
    // Last of all: what has grown too old meanwhile does not go out.
    hook.require_fresh(&snapshot)?;
    Ok(answer)
}

fn answer(filtered: &Filtered<'_>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(("Cache-Control", "no-store"))
        .json(FilterAnswer {
            allowed: &filtered.allowed,
            refused: &filtered.refused,
            as_of: filtered.as_of,
        })
}
