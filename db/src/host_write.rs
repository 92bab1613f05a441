//! Hosts as they are written back.

use ringfence_core::{Fence, Host, ProofKind, SufficientSet, Timestamp, unanswered_condition};

use crate::DbError;
use crate::run::{Run, write};
use crate::table_rows::TableRows;
use crate::value::{Value, args};

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
const CONFIGURATION: &str = "name, segment_id, backend, cloud, known_as, host_type, zone, labels, parameters";
/// What observers say of it.
const FAILURE: &str = "sources, failure_state, failure_source, failure_observed_at, failure_since";
/// What sources say is wrong with it, and what follows.
const CONDITIONS: &str = "conditions, held_by_condition, ill_since";
/// Whether a person has suspended it.
const SUSPENSION: &str = "suspension";
/// How far it is fenced. Its proofs must be there already.
const FENCING: &str = "fencing_state, generation, fence, fenced_generation, fenced_proof, fenced_at, is_silence_answered, flapping, quarantined_at, braked_at, kdump";
/// Which of its problems come too often.
const ALARMS: &str = "alarms, alarmed_at";
/// What changes at every step.
const STEP: &str =
    "released_at, last_off_at, applied_fencing, in_flight, event_sequence, wake_at, revision, updated_at";

/// Writes hosts back.
pub async fn update_hosts(run: &mut impl Run, writes: &[HostWrite<'_>]) -> Result<(), DbError> {
    write(run, host_rows(writes)).await
}

/// Hosts as they are written back. Columns that none of the writes changes are left out: SQLite writes every index with a column that a
/// statement sets, even to its present value.
pub(crate) fn host_rows(writes: &[HostWrite<'_>]) -> TableRows {
    let groups = Groups::of(writes);
    let rows = writes.iter().map(|write| groups.values(write));
    TableRows::update("hosts", &groups.columns(), rows.collect(), 1, "")
}

/// Which columns have to be written for some hosts; those of [`STEP`] always have.
#[derive(Clone, Copy)]
struct Groups {
    configuration: bool,
    failure: bool,
    conditions: bool,
    suspension: bool,
    fencing: bool,
    alarms: bool,
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
            conditions: any(has_other_conditions),
            suspension: any(|host, known| host.suspension != known.suspension),
            fencing: any(is_fenced_otherwise),
            alarms: any(|host, known| host.alarms != known.alarms),
        }
    }

    /// The host's id, and those that are written.
    fn columns(self) -> String {
        let groups = [
            (true, "id"),
            (self.configuration, CONFIGURATION),
            (self.failure, FAILURE),
            (self.conditions, CONDITIONS),
            (self.suspension, SUSPENSION),
            (self.fencing, FENCING),
            (self.alarms, ALARMS),
            (true, STEP),
        ];
        let written = groups.into_iter().filter(|(is_written, _)| *is_written);
        written.map(|(_, columns)| columns).collect::<Vec<_>>().join(", ")
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
        if self.conditions {
            values.extend(conditions(host));
        }
        if self.suspension {
            values.push(suspension(host));
        }
        if self.fencing {
            values.extend(fencing(host));
        }
        if self.alarms {
            values.extend(alarms(host));
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
        || host.labels != known.labels
        || host.parameters != known.parameters
}

fn is_seen_otherwise(host: &Host, known: &Host) -> bool {
    host.sources != known.sources
        || host.failure_state != known.failure_state
        || host.failure_source != known.failure_source
        || host.failure_observed_at != known.failure_observed_at
        || host.failure_since != known.failure_since
}

/// A condition is answered by another generation.
fn has_other_conditions(host: &Host, known: &Host) -> bool {
    let may_be_answered = host.generation != known.generation && !host.conditions.is_empty();
    host.conditions != known.conditions || may_be_answered
}

fn is_fenced_otherwise(host: &Host, known: &Host) -> bool {
    host.generation != known.generation
        || host.fence != known.fence
        || host.is_silence_answered != known.is_silence_answered
        || host.flapping != known.flapping
        || host.braked_at != known.braked_at
        || host.kdump != known.kdump
}

pub(crate) fn configuration(host: &Host) -> Vec<Value> {
    args![
        &host.name,
        host.segment_id.0,
        host.backend.as_str(),
        host.cloud.clone(),
        host.known_as.clone(),
        host.host_type.clone(),
        &host.zone,
        Value::json(&host.labels),
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

fn conditions(host: &Host) -> Vec<Value> {
    let known = &host.conditions;
    let ill = unanswered_condition(host).map(|(_, _, condition)| condition.since);
    args![
        (!known.is_empty()).then(|| Value::document(known)),
        known.holds_scheduling().map(str::to_owned),
        ill
    ]
}

fn suspension(host: &Host) -> Value {
    Value::from(host.suspension.as_ref().map(Value::document))
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
        host.is_silence_answered,
        (!host.flapping.is_none()).then(|| Value::document(&host.flapping)),
        host.flapping.quarantined_at,
        host.braked_at,
        host.kdump.as_ref().map(Value::document)
    ]
}

fn alarms(host: &Host) -> Vec<Value> {
    let known = &host.alarms;
    args![(!known.is_none()).then(|| Value::document(known)), known.since()]
}

/// One of the proofs that have made the host FENCED. A fence without any is refused by the schema.
fn fenced_proof(fence: &Fence) -> Option<ProofKind> {
    let won: SufficientSet = fence.proofs.iter().map(|proof| proof.kind).collect();
    let complete = fence.sets.iter().filter(|set| set.is_subset(&won));
    complete.flatten().next().copied()
}

fn step(host: &Host, wake_at: Option<Timestamp>) -> Vec<Value> {
    args![
        host.released_at,
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
            conditions: bits & 4 > 0,
            suspension: bits & 8 > 0,
            fencing: bits & 16 > 0,
            alarms: bits & 32 > 0,
        }
    }

    #[test]
    fn what_is_written_is_what_has_changed() {
        assert_eq!(groups(0).columns(), format!("id, {STEP}"));
        assert_eq!(
            groups(17).columns(),
            format!("id, {CONFIGURATION}, {FENCING}, {STEP}")
        );
    }
}
