//! Hosts as they are listed: filtered, in order, with their live operations.

use ringfence_core::{
    Backend, FailureState, FencingState, Host, OperationId, OperationKind, OperationStatus,
};
use sqlx::AssertSqlSafe;

use crate::dialect::Dialect;
use crate::hosts;
use crate::listing::{Filter, Filters, Listing, Values, words};
use crate::row::Row;
use crate::run::{Run, fetch_optional};
use crate::value::key;
use crate::{DbError, Page, SortKey};

/// The list of hosts. Each filter with one value has an index with the name behind it.
pub static HOSTS: Listing = Listing {
    noun: "host",
    table: "hosts",
    filters: &[
        Filter::new(
            "fencing_state",
            "The fencing state",
            "hosts.fencing_state",
            Values::Words(|| words(FencingState::ALL, FencingState::as_str)),
        ),
        Filter::new(
            "failure_state",
            "The failure state",
            "hosts.failure_state",
            Values::Words(|| words(FailureState::ALL, FailureState::as_str)),
        ),
        Filter::new(
            "backend",
            "The backend",
            "hosts.backend",
            Values::Words(|| words(Backend::ALL, Backend::as_str)),
        )
        .looked_for(),
        Filter::new(
            "segment",
            "The id or name of a segment",
            "hosts.segment_id",
            Values::Rows("segments"),
        ),
        Filter::new("name", "A host's name", "hosts.name", Values::Names),
        Filter::new("type", "A type of hosts", "hosts.host_type", Values::Names).looked_for(),
        Filter::new("zone", "A zone", "hosts.zone", Values::Names).looked_for(),
        Filter::new(
            "generation",
            "The generation",
            "hosts.generation",
            Values::Numbers,
        )
        .looked_for(),
        Filter::new(
            "quarantined",
            "Whether it is in quarantine",
            "hosts.quarantined_at",
            Values::Flag,
        ),
        Filter::new(
            "alarmed",
            "Whether an alarm of it stands",
            "hosts.alarmed_at",
            Values::Flag,
        ),
        // A host that is not FENCED was not fenced at any time. There is an index over the few that are.
        Filter::new(
            "fenced_at",
            "When it was fenced",
            "hosts.fenced_at",
            Values::Times,
        )
        .implying("hosts.fencing_state", "FENCED"),
        Filter::new(
            "created_at",
            "When it was added",
            "hosts.created_at",
            Values::Times,
        ),
        Filter::new(
            "updated_at",
            "When it was last changed",
            "hosts.updated_at",
            Values::Times,
        ),
    ],
    sort_keys: &[SortKey::Name, SortKey::CreatedAt, SortKey::UpdatedAt],
    by_default: SortKey::Name.ascending(),
    is_read_in_order: true,
};

/// A host's live operation, as a list shows it.
pub type LiveOperation = (OperationId, OperationKind, OperationStatus);

/// A host as it is listed: with its segment's name and its live operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// The host.
    pub host: Host,
    /// Its segment's name.
    pub segment: String,
    /// Its live operation.
    pub operation: Option<LiveOperation>,
}

/// Hosts as they are listed; `rest` says which.
fn select(dialect: Dialect, rest: &str) -> AssertSqlSafe<String> {
    let (columns, live) = (hosts::columns!(), dialect.live_operation());
    AssertSqlSafe(format!(
        "SELECT {columns}, segments.name AS segment_name,
             operations.id AS live_id, operations.kind AS live_kind, operations.status AS live_status
         FROM hosts
         JOIN segments ON segments.id = hosts.segment_id
         {live}{rest}"
    ))
}

fn read_listed(row: &Row) -> Result<HostRow, DbError> {
    Ok(HostRow {
        host: hosts::read(row)?,
        segment: row.text("segment_name")?,
        operation: read_live(row)?,
    })
}

/// The live operation of a host that is read with `live_id`, `live_kind` and `live_status`.
pub(crate) fn read_live(row: &Row) -> Result<Option<LiveOperation>, DbError> {
    let Some(id) = row.opt_id("live_id")? else {
        return Ok(None);
    };
    let kind = row.word("live_kind", OperationKind::from_word)?;
    let status = row.word("live_status", OperationStatus::from_word)?;
    Ok(Some((OperationId(id), kind, status)))
}

/// The host with this id or name, as it is listed.
pub async fn host_row(run: &mut impl Run, id_or_name: &str) -> Result<Option<HostRow>, DbError> {
    let (column, key) = key(id_or_name);
    let sql = select(run.dialect(), &format!(" WHERE hosts.{column} = $1"));
    let row = fetch_optional(run, sql, vec![key]).await?;
    row.as_ref().map(read_listed).transpose()
}

/// A page of hosts.
pub async fn hosts_page(run: &mut impl Run, filters: &Filters, page: &Page) -> Result<Vec<HostRow>, DbError> {
    let rows = HOSTS.page(run, filters, page, select).await?;
    rows.iter().map(read_listed).collect()
}

/// The number of hosts, for metrics and limits.
pub async fn count_hosts(run: &mut impl Run, filters: &Filters) -> Result<u64, DbError> {
    HOSTS.count(run, filters).await
}

#[cfg(test)]
#[path = "host_list_tests.rs"]
mod tests;
