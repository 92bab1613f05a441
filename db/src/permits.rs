//! Permits: of each name there are only so many at one time, counted by the transaction that takes one.

use ringfence_core::{OperationId, Permit};

use crate::statement::{Form, Statement};
use crate::value::{Value, args};

/// A permit to take for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPermit<'a> {
    /// The operation.
    pub operation_id: OperationId,
    /// What it takes.
    pub permit: &'a Permit,
}

/// The lowest number that is free of those up to a permit's bound. Two transactions that find one number do not both have it: it is unique.
fn free_number(name: &str, at_most: &str) -> String {
    format!(
        "(SELECT min(taken.number) + 1 AS number
          FROM (SELECT 0 AS number UNION ALL SELECT permits.number FROM permits WHERE permits.name = {name}) AS taken
          WHERE NOT EXISTS (SELECT 1 FROM permits AS next WHERE next.name = {name} AND next.number = taken.number + 1)) AS free
         WHERE free.number <= {at_most}"
    )
}

/// Takes permits, and returns the operations that have got theirs. Every transaction takes them in one order, so that no two wait for each other.
pub(crate) fn push_permits(statement: &mut Statement, permits: &[NewPermit<'_>], form: Form) {
    let mut permits = permits.to_vec();
    permits.sort_by(|a, b| (&a.permit.of, a.operation_id).cmp(&(&b.permit.of, b.operation_id)));
    statement.push(
        "INSERT INTO permits (name, number, operation_id, is_kept)
         SELECT new.column1, free.number, new.column3, new.column4 FROM ",
    );
    statement.push_rows(permits.iter().map(permit_values).collect(), form);
    let free = free_number("new.column1", "new.column2");
    statement.push(&format!(
        " CROSS JOIN LATERAL {free} ORDER BY new.column1, new.column3 ON CONFLICT DO NOTHING RETURNING operation_id"
    ));
}

/// The statement for one permit, for SQLite.
pub(crate) fn permit_each() -> String {
    let free = free_number("$1", "$2");
    format!(
        "INSERT INTO permits (name, number, operation_id, is_kept) SELECT $1, free.number, $3, $4 FROM {free} RETURNING operation_id"
    )
}

pub(crate) fn permit_values(new: &NewPermit<'_>) -> Vec<Value> {
    args![
        &new.permit.of,
        new.permit.at_most,
        new.operation_id.0,
        new.permit.is_kept
    ]
}

/// Gives back the permits of operations, but those that are kept.
pub(crate) fn push_returns(statement: &mut Statement, operations: &[OperationId], form: Form) {
    statement.push(
        "DELETE FROM permits WHERE (name, number) IN
             (SELECT name, number FROM permits WHERE NOT is_kept AND operation_id IN (SELECT new.column1 FROM ",
    );
    statement.push_rows(return_values(operations), form);
    statement.push(") ORDER BY name, number FOR UPDATE)");
}

/// The statement for one operation, for SQLite.
pub(crate) const RETURN: &str = "DELETE FROM permits WHERE operation_id = $1 AND NOT is_kept";

pub(crate) fn return_values(operations: &[OperationId]) -> Vec<Vec<Value>> {
    operations.iter().map(|id| args![id.0]).collect()
}
