//! `POST /bulk/hosts`: many hosts.

use actix_web::HttpResponse;
use ringfence_core::HostId;
use ringfence_engine::HostDraft;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{BulkBody, Read, outcomes, text_of, told};
use crate::ApiError;
use crate::call::Call;
use crate::error::ErrorBody;
use crate::role::Role;
use crate::routes::configured::NotCreated;
use crate::routes::hosts::HostBody;
use crate::state::State;

/// Hosts to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkHostsBody<'a> {
    /// Each as it is in `POST /hosts`, with a name of its own.
    #[serde(borrow)]
    #[schema(value_type = Vec<Object>, min_items = 1, max_items = 1000, example = json!([{ "name": "node-1", "zone": "east" }]))]
    hosts: Vec<&'a RawValue>,
}

/// What became of each host, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkHosts {
    hosts: Vec<BulkHost>,
}

/// What became of a host.
#[derive(Debug, Serialize, ToSchema)]
struct BulkHost {
    /// Its name, where it has one.
    name: Option<String>,
    /// 201 if it was added; else what `POST /hosts` would have answered.
    #[schema(example = 201)]
    status: u16,
    /// Its id if it was added.
    id: Option<Uuid>,
    /// Why it was not added.
    errors: Vec<ErrorBody>,
}

/// Adds many hosts.
///
/// Each is added as by `POST /hosts`, or refused for itself. Those that are added are added at once or, where the whole request fails, not at all.
/// Admins only.
#[utoipa::path(post, path = "/bulk/hosts", operation_id = "create_hosts", tag = "hosts", request_body = BulkHostsBody,
    responses((status = 200, body = BulkHosts), NotCreated))]
pub(crate) async fn create(call: Call, body: BulkBody) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let given = body.parse::<BulkHostsBody<'_>>()?.hosts;
    let Read { things, faults } = Read::<HostBody>::of("hosts", &given)?;
    let drafts = things.into_iter().map(HostDraft::from).collect();
    let outcomes = outcomes(faults, call.engine.create_hosts(drafts, &by).await?);
    let hosts = given.iter().zip(outcomes);
    let hosts =
        hosts.map(|(item, outcome)| BulkHost::of(text_of(item, "name"), &outcome.map(|host| host.id)));
    Ok(HttpResponse::Ok().json(BulkHosts {
        hosts: hosts.collect(),
    }))
}

/// What is known of a request that was carried out and whose answer was lost: the hosts that it has added. The others were refused.
pub(crate) async fn added(state: &State, ids: Vec<HostId>) -> Result<HttpResponse, ApiError> {
    let names = ringfence_db::host_names(&mut state.engine.db().reader(), ids).await?;
    let hosts = names
        .into_iter()
        .map(|(id, name)| BulkHost::of(Some(name), &Ok(id)));
    Ok(HttpResponse::Ok().json(BulkHosts {
        hosts: hosts.collect(),
    }))
}

impl BulkHost {
    fn of(name: Option<String>, done: &Result<HostId, ApiError>) -> Self {
        let (status, errors) = told(done, 201);
        Self {
            name,
            status,
            id: done.as_ref().ok().map(|id| id.0),
            errors,
        }
    }
}
