//! What the schedule gates of all hosts are decided from, in one statement.

use ringfence_core::{
    Applied, FailureState, FencingState, Generation, InFlight, OperationKind, OperationStatus, Placing,
};

use crate::DbError;
use crate::row::Row;
use crate::run::{Run, fetch_all};
use crate::value::args;

/// A host of a cloud, as far as its schedule gate goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacingRow {
    /// The cloud.
    pub cloud: String,
    /// What the cloud calls the host.
    pub known_as: String,
    failure_state: FailureState,
    fencing_state: FencingState,
    generation: Generation,
    operation: Option<(OperationKind, OperationStatus, Generation)>,
    applied: Applied,
    in_flight: Vec<InFlight>,
    held_by_condition: Option<String>,
}

impl PlacingRow {
    /// What the gate is decided from.
    #[must_use]
    pub fn placing(&self) -> Placing<'_> {
        Placing {
            failure_state: self.failure_state,
            fencing_state: self.fencing_state,
            generation: self.generation,
            operation: self.operation,
            applied: &self.applied,
            in_flight: &self.in_flight,
            held_by_condition: self.held_by_condition.as_deref(),
        }
    }
}

/// All hosts that belong to a cloud, each with its live operation, as they were at one moment.
pub async fn hosts_to_place(run: &mut impl Run) -> Result<Vec<PlacingRow>, DbError> {
    let sql = "SELECT hosts.cloud, coalesce(hosts.known_as, hosts.name) AS known_as, hosts.failure_state,
                      hosts.fencing_state, hosts.generation, hosts.applied_fencing, hosts.in_flight, hosts.held_by_condition,
                      operations.kind AS live_kind, operations.status AS live_status,
                      operations.generation AS live_generation
               FROM hosts
               LEFT JOIN operations ON operations.host_id = hosts.id AND operations.finished_at IS NULL
               WHERE hosts.cloud IS NOT NULL";
    let rows = fetch_all(run, sql, args![]).await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<PlacingRow, DbError> {
    let operation = match row.opt_generation("live_generation")? {
        Some(generation) => Some((
            row.word("live_kind", OperationKind::from_word)?,
            row.word("live_status", OperationStatus::from_word)?,
            generation,
        )),
        None => None,
    };
    Ok(PlacingRow {
        cloud: row.text("cloud")?,
        known_as: row.text("known_as")?,
        failure_state: row.word("failure_state", FailureState::from_word)?,
        fencing_state: row.word("fencing_state", FencingState::from_word)?,
        generation: row.generation("generation")?,
        operation,
        applied: row.document("applied_fencing")?,
        in_flight: row.document("in_flight")?,
        held_by_condition: row.opt_text("held_by_condition")?,
    })
}
