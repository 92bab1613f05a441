//! Hosts as they are written back.

use ringfence_core::{Fence, Host, ProofKind, SufficientSet, Timestamp};
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::run::{Write, write};
use crate::value::{NewValues, Value, args, pieces};

/// What a decision writes of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostWrite<'a> {
    /// The host.
    pub host: &'a Host,
    /// What is known of it in the database, if anything is.
    pub known: Option<&'a Host>,
    /// When time alone will change something.
    pub wake_at: Option<Timestamp>,
}

/// What people say of it.
const CONFIGURATION: [&str; 8] = [
    "name",
    "segment_id",
    "backend",
    "cloud",
    "known_as",
    "host_type",
    "zone",
    "parameters",
];
/// What observers say of it.
const FAILURE: [&str; 5] = [
    "sources",
    "failure_state",
    "failure_source",
    "failure_observed_at",
    "failure_since",
];
/// How far it is fenced. Its proofs must be there already.
const FENCING: [&str; 7] = [
    "fencing_state",
    "generation",
    "fence",
    "fenced_generation",
    "fenced_proof",
    "fenced_at",
    "is_silence_answered",
];
/// What changes at every step.
const STEP: [&str; 8] = [
    "given_back_at",
    "last_off_at",
    "standing",
    "in_flight",
    "event_sequence",
    "wake_at",
    "revision",
    "updated_at",
];

/// Writes hosts back. Columns that are as they were are left alone: SQLite writes every index with a column that it is told to set,
/// even to the same value.
pub async fn update_hosts(to: &mut impl Write, writes: &[HostWrite<'_>]) -> Result<(), DbError> {
    for writes in pieces(writes) {
        let groups = Groups::of(writes);
        let new = NewValues::of(writes.len());
        let (assigned, columns) = groups.assigned(new);
        let (from, id) = (new.from(writes.len(), columns), new.name(1));
        let sql = format!("UPDATE hosts SET {assigned}{from} WHERE hosts.id = {id}");
        let values = writes.iter().flat_map(|write| groups.values(write)).collect();
        write(to, AssertSqlSafe(sql), values).await?;
    }
    Ok(())
}

/// Which columns have to be written for some hosts; those of [`STEP`] always have.
#[derive(Clone, Copy)]
struct Groups {
    configuration: bool,
    failure: bool,
    fencing: bool,
}

impl Groups {
    fn of(writes: &[HostWrite<'_>]) -> Self {
        let any = |differ: fn(&Host, &Host) -> bool| {
            let mut writes = writes.iter();
            writes.any(|write| write.known.is_none_or(|known| differ(write.host, known)))
        };
        Self {
            configuration: any(is_configured_otherwise),
            failure: any(is_seen_otherwise),
            fencing: any(is_fenced_otherwise),
        }
    }

    fn columns(self) -> Vec<&'static str> {
        let groups: [(bool, &[&'static str]); 4] = [
            (self.configuration, &CONFIGURATION),
            (self.failure, &FAILURE),
            (self.fencing, &FENCING),
            (true, &STEP),
        ];
        let written = groups.into_iter().filter(|(is_written, _)| *is_written);
        written.flat_map(|(_, columns)| columns.iter().copied()).collect()
    }

    /// The assignments, and how many values each host has; the first one is its id.
    fn assigned(self, new: NewValues) -> (String, usize) {
        let columns = self.columns();
        let assigned = columns.iter().zip(2..);
        let assigned = assigned.map(|(column, at)| format!("{column} = {}", new.name(at)));
        (assigned.collect::<Vec<_>>().join(", "), columns.len() + 1)
    }

    fn values(self, write: &HostWrite<'_>) -> Vec<Value> {
        let host = write.host;
        let mut values = args![host.id.0];
        if self.configuration {
            values.extend(configuration(host));
        }
        if self.failure {
            values.extend(failure(host));
        }
        if self.fencing {
            values.extend(fencing(host));
        }
        values.extend(step(host, write.wake_at));
        values
    }
}

fn is_configured_otherwise(host: &Host, known: &Host) -> bool {
    host.name != known.name
        || host.segment_id != known.segment_id
        || host.backend != known.backend
        || host.cloud != known.cloud
        || host.known_as != known.known_as
        || host.host_type != known.host_type
        || host.zone != known.zone
        || host.parameters != known.parameters
}

fn is_seen_otherwise(host: &Host, known: &Host) -> bool {
    host.sources != known.sources
        || host.failure_state != known.failure_state
        || host.failure_source != known.failure_source
        || host.failure_observed_at != known.failure_observed_at
        || host.failure_since != known.failure_since
}

fn is_fenced_otherwise(host: &Host, known: &Host) -> bool {
    host.generation != known.generation
        || host.fence != known.fence
        || host.is_silence_answered != known.is_silence_answered
}

fn configuration(host: &Host) -> Vec<Value> {
    args![
        &host.name,
        host.segment_id.0,
        host.backend.as_str(),
        host.cloud.clone(),
        host.known_as.clone(),
        host.host_type.clone(),
        &host.zone,
        Value::json(&host.parameters)
    ]
}

fn failure(host: &Host) -> Vec<Value> {
    args![
        Value::document(&host.sources),
        host.failure_state.as_str(),
        host.failure_source.clone(),
        host.failure_observed_at,
        host.failure_since
    ]
}

fn fencing(host: &Host) -> Vec<Value> {
    let fence = host.fence.as_ref();
    args![
        host.fencing_state().as_str(),
        host.generation.0,
        fence.map(Value::document),
        fence.map(|fence| fence.generation.0),
        fence.and_then(fenced_proof).map(ProofKind::as_str),
        fence.map(|fence| fence.at),
        host.is_silence_answered
    ]
}

/// One of the proofs that have made the host FENCED. A fence without any is refused by the schema.
fn fenced_proof(fence: &Fence) -> Option<ProofKind> {
    let won: SufficientSet = fence.proofs.iter().map(|proof| proof.kind).collect();
    let complete = fence.sets.iter().filter(|set| set.is_subset(&won));
    complete.flatten().next().copied()
}

fn step(host: &Host, wake_at: Option<Timestamp>) -> Vec<Value> {
    args![
        host.given_back_at,
        host.last_off_at,
        Value::document(&host.applied),
        Value::document(&host.in_flight),
        host.event_sequence,
        wake_at,
        host.revision,
        host.updated_at
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(bits: u8) -> Groups {
        Groups {
            configuration: bits & 1 > 0,
            failure: bits & 2 > 0,
            fencing: bits & 4 > 0,
        }
    }

    #[test]
    fn what_is_assigned_is_what_has_changed() {
        let (assigned, values) = groups(0).assigned(NewValues::Columns);
        assert!(assigned.starts_with("given_back_at = new.column2, last_off_at = new.column3"));
        assert_eq!(values, 9);
        let (assigned, values) = groups(5).assigned(NewValues::Columns);
        assert!(assigned.starts_with("name = new.column2, "));
        assert!(assigned.contains("fencing_state = new.column10, "));
        assert!(!assigned.contains("failure_state"));
        assert_eq!(values, 24);
        let (assigned, values) = groups(4).assigned(NewValues::Arguments);
        assert!(assigned.starts_with("fencing_state = $2, generation = $3, fence = $4"));
        assert_eq!(values, 16);
    }
}
