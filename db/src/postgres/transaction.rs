//! Transactions that change hosts, on PostgreSQL: all changes are one statement.

use std::sync::Arc;

use ringfence_core::{HostId, OperationId};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use super::{Connections, OpenTransaction};
use crate::DbError;
use crate::audit::audit_rows;
use crate::changes::{Changes, Ended, Ending, HostTransaction, NotHad};
use crate::devices::{push_leases, push_releases};
use crate::error::ClientError;
use crate::events::{counted_event_rows, event_rows};
use crate::host_write::host_rows;
use crate::idempotency::receipt_rows;
use crate::operations::{changed_operation_rows, new_operation_rows, proof_rows};
use crate::outbox::outbox_rows;
use crate::permits::{push_permits, push_returns};
use crate::statement::{Form, Statement};
use crate::value::{args, for_postgres};

/// A new operation comes after the one that makes way for it: a host has one live operation.
const AFTER_CHANGED: &str = " WHERE (SELECT count(*) FROM changed_operations) IS NOT NULL";

/// A host that was read without a lock. The statement commits by itself.
pub(crate) struct Optimistic {
    pub connections: Connections,
    pub address: Arc<str>,
    pub host: HostId,
    /// The transaction that wrote its row.
    pub version: String,
}

impl Optimistic {
    async fn write(&self, statement: Statement) -> Result<Option<i64>, sqlx::Error> {
        let (sql, values) = statement.into_parts();
        let mut lent = self.connections.take().await?;
        let query = sqlx::query_scalar_with(AssertSqlSafe(sql), for_postgres(values)?);
        let rows: Vec<Option<i64>> = query.fetch_all(lent.connection()?).await?;
        lent.release();
        Ok(rows.into_iter().next().flatten())
    }
}

impl HostTransaction for Optimistic {
    fn commit<'a>(self: Box<Self>, changes: &'a Changes<'a>) -> Ending<'a> {
        Box::pin(async move {
            let mut parts = Parts::default();
            parts.begin_upon(self.host, &self.version, !changes.events.is_empty());
            parts.add_all(changes, Events::Counted);
            let statement = parts.end_unless_all_was_had(changes);
            let written = self.write(statement).await;
            match written.map_err(|e| DbError::from_client(&self.address, e)) {
                Ok(before) => Ok(Ended::Committed {
                    are_events_announced: before.is_some(),
                }),
                Err(DbError::Changed) => Ok(Ended::HostsChanged),
                Err(error) => Err(error),
            }
        })
    }
}

/// Hosts that are locked.
pub(crate) struct Pessimistic {
    pub open: OpenTransaction,
    pub address: Arc<str>,
}

impl Pessimistic {
    async fn end(mut self, changes: &Changes<'_>) -> Result<Ended, ClientError> {
        let mut parts = Parts::default();
        parts.add_all(changes, Events::Plain);
        let (sql, values) = parts.end(changes).into_parts();
        let query = sqlx::query_with(AssertSqlSafe(sql), for_postgres(values)?);
        let row = query.fetch_one(self.open.connection()?).await?;
        let refused = refused(changes, &row)?;
        if refused.is_none() {
            self.open.commit().await?;
        }
        Ok(refused.unwrap_or(Ended::Committed {
            are_events_announced: false,
        }))
    }
}

impl HostTransaction for Pessimistic {
    fn commit<'a>(self: Box<Self>, changes: &'a Changes<'a>) -> Ending<'a> {
        Box::pin(async move {
            let address = Arc::clone(&self.address);
            let ended = self.end(changes).await;
            ended.map_err(|e| DbError::from_client(&address, e))
        })
    }
}

/// What of the leases, permits and receipts was not to be had.
fn refused(changes: &Changes<'_>, row: &PgRow) -> Result<Option<Ended>, sqlx::Error> {
    let (leased, received): (Vec<String>, Vec<Uuid>) = (row.try_get("leased")?, row.try_get("received")?);
    let permitted: Vec<Uuid> = row.try_get("permitted")?;
    let devices = changes.leases.iter().map(|lease| &lease.device);
    let devices: Vec<_> = devices
        .filter(|device| !leased.contains(device))
        .cloned()
        .collect();
    let holders = changes.receipts.iter().map(|new| new.holder);
    let holders: Vec<_> = holders.filter(|holder| !received.contains(holder)).collect();
    let not_had = NotHad {
        devices,
        operations: operations_without(changes, &permitted),
        holders,
    };
    Ok((!not_had.is_empty()).then_some(Ended::Refused(not_had)))
}

/// The operations that have got fewer permits than they want.
fn operations_without(changes: &Changes<'_>, permitted: &[Uuid]) -> Vec<OperationId> {
    let wanted = |id: OperationId| {
        changes
            .permits
            .iter()
            .filter(|new| new.operation_id == id)
            .count()
    };
    let got = |id: OperationId| permitted.iter().filter(|one| **one == id.0).count();
    let ids = changes.permits.iter().map(|new| new.operation_id);
    ids.filter(|id| got(*id) < wanted(*id)).collect()
}

#[derive(Clone, Copy)]
enum Events {
    /// They are numbered later.
    Plain,
    /// They are numbered by the statement if no other transaction numbers any.
    Counted,
}

/// The parts of one statement.
#[derive(Default)]
struct Parts {
    statement: Statement,
    count: usize,
}

impl Parts {
    /// Begins the part with this name.
    fn part(&mut self, name: &str) -> &mut Statement {
        let before = if self.count == 0 { "WITH" } else { ")," };
        self.count += 1;
        self.statement.push(&format!("{before} {name} AS (\n"));
        &mut self.statement
    }

    /// The function locks the host and gives a number; everything else needs it, so that every transaction locks hosts before anything else.
    fn begin_upon(&mut self, host: HostId, version: &str, has_events: bool) {
        let statement = self.part("begun");
        let values = statement.bind_all(args![host.0, version, has_events]);
        statement.push(&format!("SELECT begin_change_upon({values}) AS before"));
    }

    fn add_all(&mut self, changes: &Changes<'_>, events: Events) {
        let form = if changes.hosts.len() > 1 {
            Form::Arrays
        } else {
            Form::List
        };
        self.add_conditions(changes, form);
        if !changes.released.is_empty() {
            push_releases(self.part("released"), &changes.released, form);
        }
        if !changes.returned.is_empty() {
            push_returns(self.part("returned"), &changes.returned, form);
        }
        let has_changed = !changes.changed_operations.is_empty();
        if has_changed {
            let statement = self.part("changed_operations");
            changed_operation_rows(&changes.changed_operations).push_to(statement, form);
            statement.push(" RETURNING 1");
        }
        let after = if has_changed { AFTER_CHANGED } else { "" };
        let rows = [
            (
                "new_operations",
                new_operation_rows(&changes.new_operations, after),
            ),
            ("won_proofs", proof_rows(&changes.proofs)),
            ("changed_hosts", host_rows(&changes.hosts)),
            ("messages", outbox_rows(&changes.outbox)),
            ("lines", audit_rows(&changes.audit)),
        ];
        for (name, rows) in rows.into_iter().filter(|(_, rows)| !rows.is_empty()) {
            rows.push_to(self.part(name), form);
        }
        if !changes.events.is_empty() {
            let statement = self.part("new_events");
            match events {
                Events::Plain => event_rows(&changes.events).push_to(statement, form),
                Events::Counted => {
                    counted_event_rows(&changes.events).push_counted_to(statement, form, "begun");
                }
            }
        }
    }

    fn add_conditions(&mut self, changes: &Changes<'_>, form: Form) {
        if !changes.leases.is_empty() {
            push_leases(self.part("leased"), &changes.leases, form);
        }
        if !changes.permits.is_empty() {
            push_permits(self.part("permitted"), &changes.permits, form);
        }
        if !changes.receipts.is_empty() {
            let statement = self.part("received");
            receipt_rows(&changes.receipts).push_to(statement, form);
            statement.push(" RETURNING holder");
        }
    }

    /// Ends the statement with what was had of leases, permits and receipts.
    fn end(mut self, changes: &Changes<'_>) -> Statement {
        let leased = if changes.leases.is_empty() {
            ""
        } else {
            "SELECT device FROM leased"
        };
        let received = if changes.receipts.is_empty() {
            ""
        } else {
            "SELECT holder FROM received"
        };
        let permitted = if changes.permits.is_empty() {
            ""
        } else {
            "SELECT operation_id FROM permitted"
        };
        let array = |of: &str, kind| {
            if of.is_empty() {
                format!("ARRAY[]::{kind}[]")
            } else {
                format!("ARRAY({of})")
            }
        };
        let close = if self.count == 0 { "" } else { ")\n" };
        let (leased, received) = (array(leased, "text"), array(received, "uuid"));
        let permitted = array(permitted, "uuid");
        self.statement.push(&format!(
            "{close}SELECT {leased} AS leased, {permitted} AS permitted, {received} AS received"
        ));
        self.statement
    }

    /// Ends the statement with an error unless all leases, permits and receipts were had, in time.
    fn end_unless_all_was_had(mut self, changes: &Changes<'_>) -> Statement {
        let mut conditions = Vec::new();
        let counted = [
            ("leased", changes.leases.len()),
            ("permitted", changes.permits.len()),
            ("received", changes.receipts.len()),
        ];
        for (part, count) in counted.into_iter().filter(|(_, count)| *count > 0) {
            let count = self.statement.bind(i64::try_from(count).unwrap_or(i64::MAX));
            conditions.push(format!("(SELECT count(*) FROM {part}) = {count}"));
        }
        if let Some(at) = changes.not_after {
            conditions.push(format!("clock_timestamp() <= {}", self.statement.bind(at)));
        }
        let conditions = match conditions.as_slice() {
            [] => "true".to_owned(),
            some => format!("end_change_unless({})", some.join(" AND ")),
        };
        self.statement
            .push(&format!(")\nSELECT begun.before, {conditions} FROM begun"));
        self.statement
    }
}
