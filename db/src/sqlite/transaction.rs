//! Transactions that change hosts, on SQLite: a statement for each row, all of them in one go.

use std::sync::Arc;

use ringfence_core::OperationId;

use super::{Connection, OpenTransaction};
use crate::DbError;
use crate::audit::audit_rows;
use crate::changes::{Changes, Ended, Ending, HostTransaction, NotHad};
use crate::devices::{RELEASE, lease_each, lease_values, release_values};
use crate::events::event_rows;
use crate::host_write::host_rows;
use crate::idempotency::receipt_rows;
use crate::operations::{changed_operation_rows, new_operation_rows, proof_rows};
use crate::outbox::outbox_rows;
use crate::permits::{RETURN, permit_each, permit_values, return_values};
use crate::sqlite::connections::End;
use crate::table_rows::TableRows;
use crate::value::Value;

/// A transaction of the only writer.
pub(crate) struct Transaction {
    pub open: OpenTransaction,
    pub address: Arc<str>,
}

impl HostTransaction for Transaction {
    fn commit<'a>(self: Box<Self>, changes: &'a Changes<'a>) -> Ending<'a> {
        let statements = Statements::of(changes);
        Box::pin(async move {
            let ended = self.open.end(move |connection| statements.run(connection)).await;
            ended.map_err(|e| DbError::from_client(&self.address, e))
        })
    }
}

/// A statement, and the values to run it with one after the other.
type Each = (String, Vec<Vec<Value>>);

struct Statements {
    /// By device, by operation and by holder.
    leases: Vec<(String, Vec<Value>)>,
    permits: Vec<(OperationId, Vec<Value>)>,
    receipts: Vec<(uuid::Uuid, Vec<Value>)>,
    receipt: String,
    /// In an order that satisfies the foreign keys: operations, proofs, then the hosts that rest on them.
    others: Vec<Each>,
}

impl Statements {
    fn of(changes: &Changes<'_>) -> Self {
        let leases = changes.leases.iter();
        let leases = leases
            .map(|lease| (lease.device.clone(), lease_values(lease)))
            .collect();
        let permits = changes.permits.iter();
        let permits = permits
            .map(|new| (new.operation_id, permit_values(new)))
            .collect();
        let (receipt, receipts) = receipt_rows(&changes.receipts).for_each();
        let holders = changes.receipts.iter().map(|new| new.holder);
        // Those that change differ in which columns they have changed.
        let changed = changes.changed_operations.chunks(1).map(changed_operation_rows);
        let hosts = changes.hosts.chunks(1).map(host_rows);
        let writes = changed
            .chain([
                new_operation_rows(&changes.new_operations, ""),
                proof_rows(&changes.proofs),
            ])
            .chain(hosts)
            .chain([
                event_rows(&changes.events),
                outbox_rows(&changes.outbox),
                audit_rows(&changes.audit),
            ]);
        let writes = writes.filter(|rows| !rows.is_empty()).map(TableRows::for_each);
        let released = (RELEASE.to_owned(), release_values(&changes.released));
        let returned = (RETURN.to_owned(), return_values(&changes.returned));
        Self {
            leases,
            permits,
            receipts: holders.zip(receipts).collect(),
            receipt,
            others: [released, returned].into_iter().chain(writes).collect(),
        }
    }

    fn run(self, connection: &mut Connection) -> Result<End<Ended>, rusqlite::Error> {
        let mut not_had = NotHad::default();
        let lease = lease_each();
        for (device, values) in self.leases {
            if connection.rows(&lease, values)?.is_empty() {
                not_had.devices.push(device);
            }
        }
        let permit = permit_each();
        for (operation, values) in self.permits {
            if connection.rows(&permit, values)?.is_empty() {
                not_had.operations.push(operation);
            }
        }
        for (holder, values) in self.receipts {
            if connection.change(&self.receipt, values)? == 0 {
                not_had.holders.push(holder);
            }
        }
        if !not_had.is_empty() {
            return Ok(End::RollBack(Ended::Refused(not_had)));
        }
        for (sql, rows) in self.others {
            connection.change_each(&sql, rows)?;
        }
        Ok(End::Commit(Ended::Committed {
            are_events_announced: false,
        }))
    }
}
