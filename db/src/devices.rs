//! One command at a time per device, whichever worker speaks to it.

use chrono::TimeDelta;
use ringfence_core::{AttemptId, Timestamp};

use crate::statement::{Form, Statement};
use crate::table_rows::TableRows;
use crate::value::{Value, args};

/// The longest lease; a worker that keeps its device says so again. A lease that ends later was taken before a clock was set back.
const LEASED_AT_MOST: TimeDelta = TimeDelta::seconds(60);

/// A device to lease to an attempt. One that is leased to the attempt already is leased anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLease {
    /// Its key.
    pub device: String,
    /// The attempt.
    pub attempt: AttemptId,
    /// When the lease begins.
    pub from: Timestamp,
    /// When it ends unless it is renewed.
    pub until: Timestamp,
}

/// What is done about a lease that is there: it is replaced if it is over, or the attempt's own.
fn replace_if_free(from: &str, out_of_reach: &str) -> String {
    format!(
        " ON CONFLICT (device) DO UPDATE
             SET operation_id = excluded.operation_id, attempt = excluded.attempt, until = excluded.until
             WHERE device_leases.until <= {from} OR device_leases.until > {out_of_reach}
                OR (device_leases.operation_id = excluded.operation_id AND device_leases.attempt = excluded.attempt)
             RETURNING device"
    )
}

fn lease_rows(leases: &[DeviceLease]) -> TableRows {
    let rows = leases.iter().map(|lease| {
        let attempt = lease.attempt;
        args![&lease.device, attempt.operation_id.0, attempt.number, lease.until]
    });
    let columns = "device, operation_id, attempt, until";
    TableRows::insert("device_leases", columns, rows.collect(), "")
}

/// Leases devices, each of which is named once, and returns those that were free. Every transaction leases them in one order, so that
/// no two wait for each other.
pub(crate) fn push_leases(statement: &mut Statement, leases: &[DeviceLease], form: Form) {
    let mut leases = leases.to_vec();
    leases.sort_by(|a, b| a.device.cmp(&b.device));
    lease_rows(&leases).push_to(statement, form);
    let from = leases.first().map(|lease| lease.from);
    let (now, out_of_reach) = (
        statement.bind(from),
        statement.bind(from.map(|at| at + LEASED_AT_MOST)),
    );
    statement.push(&replace_if_free(&now, &out_of_reach));
}

/// The statement for one lease, for SQLite.
pub(crate) fn lease_each() -> String {
    lease_rows(&[]).for_each().0 + &replace_if_free("$5", "$6")
}

pub(crate) fn lease_values(lease: &DeviceLease) -> Vec<Value> {
    let attempt = lease.attempt;
    args![
        &lease.device,
        attempt.operation_id.0,
        attempt.number,
        lease.until,
        lease.from,
        lease.from + LEASED_AT_MOST
    ]
}

/// Ends the leases of attempts, in the order in which every transaction leases.
pub(crate) fn push_releases(statement: &mut Statement, attempts: &[AttemptId], form: Form) {
    statement.push(
        "DELETE FROM device_leases WHERE device IN
             (SELECT device FROM device_leases WHERE (operation_id, attempt) IN (SELECT new.column1, new.column2 FROM ",
    );
    statement.push_rows(release_values(attempts), form);
    statement.push(") ORDER BY device FOR UPDATE)");
}

/// The statement for the leases of one attempt, for SQLite.
pub(crate) const RELEASE: &str = "DELETE FROM device_leases WHERE operation_id = $1 AND attempt = $2";

pub(crate) fn release_values(attempts: &[AttemptId]) -> Vec<Vec<Value>> {
    let values = attempts
        .iter()
        .map(|attempt| args![attempt.operation_id.0, attempt.number]);
    values.collect()
}
