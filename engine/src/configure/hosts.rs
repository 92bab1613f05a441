//! Adding, changing and removing hosts.

use std::collections::BTreeMap;

use ringfence_core::{
    Alarms, Applied, Backend, Conditions, EventKind, FailureState, Flapping, Generation, Host,
    HostDescription, HostId, HostState, Labels, Parameters, Problems, Segment, SegmentId, Sources, Timestamp,
    may_change, may_remove, may_remove_departed, validate_host,
};
use ringfence_db::{AuditEntry, DbError, EventHost, HostWrite, NewEvent, Tx};
use serde_json::{Value, json};

use super::check_revision;
use crate::idempotency::leave_receipt;
use crate::ids::new_id;
use crate::{Context, Engine, EngineError, Receipt};

/// The index that lets a host of a cloud be here once.
const BY_CLOUD: &str = "hosts_by_cloud";

/// A host to add.
#[derive(Clone, Debug)]
pub struct HostDraft {
    /// Unique.
    pub name: String,
    /// Id or name; the default segment if absent.
    pub segment: Option<String>,
    /// Where its workloads live.
    pub backend: Backend,
    /// In which cloud or cluster of the configuration that is.
    pub cloud: Option<String>,
    /// What its backend calls it, where that is not its name.
    pub known_as: Option<String>,
    /// The group of hosts that share a plan.
    pub host_type: Option<String>,
    /// From where its devices can be reached.
    pub zone: String,
    /// What an operator tells it apart by.
    pub labels: Labels,
    /// Values for the parameters of methods, by method name.
    pub parameters: BTreeMap<String, Parameters>,
}

/// Why a host is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A caller asks for it.
    Asked,
    /// Its platform names it.
    Adopted,
    /// A record names it, and it had this id before.
    Restored(HostId),
}

/// What to change of a host; `None` leaves it as it is.
#[derive(Clone, Debug, Default)]
pub struct HostChange {
    /// Its name.
    pub name: Option<String>,
    /// Its segment, by id or name.
    pub segment: Option<String>,
    /// Where its workloads live.
    pub backend: Option<Backend>,
    /// In which cloud or cluster; `Some(None)` takes it away.
    pub cloud: Option<Option<String>>,
    /// What its backend calls it; `Some(None)` takes it away.
    pub known_as: Option<Option<String>>,
    /// Its type; `Some(None)` takes it away.
    pub host_type: Option<Option<String>>,
    /// Its zone.
    pub zone: Option<String>,
    /// All its labels.
    pub labels: Option<Labels>,
    /// All its values for the parameters of methods.
    pub parameters: Option<BTreeMap<String, Parameters>>,
}

impl HostChange {
    /// The host with the change made.
    fn of(self, host: &Host, segment: Option<SegmentId>) -> Host {
        let host = host.clone();
        Host {
            name: self.name.unwrap_or(host.name),
            segment_id: segment.unwrap_or(host.segment_id),
            backend: self.backend.unwrap_or(host.backend),
            cloud: self.cloud.unwrap_or(host.cloud),
            known_as: self.known_as.unwrap_or(host.known_as),
            host_type: self.host_type.unwrap_or(host.host_type),
            zone: self.zone.unwrap_or(host.zone),
            labels: self.labels.unwrap_or(host.labels),
            parameters: self.parameters.unwrap_or(host.parameters),
            ..host
        }
    }

    /// What is told of it.
    fn told(&self) -> Value {
        let parameters = self.parameters.as_ref();
        json!({
            "name": self.name, "segment": self.segment, "backend": self.backend, "cloud": self.cloud,
            "known_as": self.known_as, "type": self.host_type, "zone": self.zone, "labels": self.labels,
            "parameters": parameters.map(|parameters| parameters.keys().collect::<Vec<_>>()),
        })
    }
}

fn description(host: &Host) -> HostDescription<'_> {
    HostDescription {
        name: &host.name,
        zone: &host.zone,
        host_type: host.host_type.as_deref(),
        backend: host.backend,
        cloud: host.cloud.as_deref(),
        known_as: host.known_as.as_deref(),
        labels: &host.labels,
        parameters: &host.parameters,
    }
}

impl HostDraft {
    /// The host as it is added.
    pub(super) fn host(self, segment: &Segment, now: Timestamp) -> Result<Host, Problems> {
        let host = Host {
            id: HostId(new_id()),
            name: self.name,
            segment_id: segment.id,
            backend: self.backend,
            cloud: self.cloud,
            known_as: self.known_as,
            host_type: self.host_type,
            zone: self.zone,
            labels: self.labels,
            parameters: self.parameters,
            sources: Sources::default(),
            failure_state: FailureState::Unknown,
            failure_source: None,
            failure_observed_at: None,
            failure_since: None,
            generation: Generation::default(),
            fence: None,
            conditions: Conditions::default(),
            suspension: None,
            flapping: Flapping::default(),
            alarms: Alarms::default(),
            braked_at: None,
            kdump: None,
            is_silence_answered: false,
            released_at: None,
            last_off_at: None,
            applied: Applied::default(),
            in_flight: Vec::new(),
            event_sequence: 1,
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        validate_host(&description(&host))?;
        Ok(host)
    }
}

impl Engine {
    /// Adds a host: UNFENCED, and UNKNOWN until it is seen.
    pub async fn create_host(&self, draft: HostDraft, by: &Context) -> Result<Host, EngineError> {
        self.create_host_as(draft, Origin::Asked, by).await
    }

    pub(crate) async fn create_host_as(
        &self,
        draft: HostDraft,
        origin: Origin,
        by: &Context,
    ) -> Result<Host, EngineError> {
        self.require_record(&draft)?;
        let segment = self.segment_or_default(draft.segment.as_deref()).await?;
        let mut host = draft.host(&segment, self.0.clock.now())?;
        if let Origin::Restored(id) = origin {
            host.id = id;
        }
        let mut tx = self.0.db.begin().await?;
        ringfence_db::insert_host(&mut tx, &host)
            .await
            .map_err(|e| taken(e, &host))?;
        if origin != Origin::Asked {
            ringfence_db::set_adopted(&mut tx, host.id).await?;
        }
        let data = created(&host, &segment.name);
        self.record_host(&mut tx, &host, EventKind::HostCreated, data, by)
            .await?;
        leave_receipt(&mut tx, by, Receipt::Host(host.id)).await?;
        tx.commit().await?;
        self.events_written();
        Ok(host)
    }

    /// Changes what is configured of a host. `revision`, if given, has to be its present one.
    pub async fn update_host(
        &self,
        host: &str,
        change: HostChange,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<Host, EngineError> {
        let known = self.state_of(host).await?.host;
        let segment = match &change.segment {
            Some(segment) => Some(self.segment_or_default(Some(segment)).await?.id),
            None => None,
        };
        let mut tx = self.0.db.begin().await?;
        let Some(state) = ringfence_db::lock_host(&mut tx, known.id).await? else {
            return Err(EngineError::not_found("host", host));
        };
        let told = change.told();
        let mut host = change.of(&state.host, segment);
        validate_host(&description(&host))?;
        may_change(&state, &host)?;
        check_revision(revision, host.revision)?;
        let now = self.time_for(host.updated_at);
        host.revision += 1;
        host.event_sequence += 1;
        host.updated_at = now;
        let write = HostWrite {
            host: &host,
            known: Some(&state.host),
            // Waking once too often does no harm: what is due is decided afresh.
            wake_at: Some(now),
        };
        ringfence_db::update_hosts(&mut tx, &[write])
            .await
            .map_err(|e| taken(e, &host))?;
        self.record_host(&mut tx, &host, EventKind::HostUpdated, told, by)
            .await?;
        tx.commit().await?;
        self.events_written();
        Ok(host)
    }

    /// Removes a host. One that is FENCED, cut off, in an operation, or still acted on is kept.
    pub async fn delete_host(
        &self,
        host: &str,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<(), EngineError> {
        let known = self.state_of(host).await?.host;
        self.remove_host(known.id, json!({ "name": known.name }), by, |state| {
            check_revision(revision, state.host.revision)?;
            Ok(may_remove(state, self.time_for(state.host.updated_at))?)
        })
        .await
    }

    /// Removes a host that its platform does not name any more, as it was at this revision.
    pub(crate) async fn remove_departed_host(
        &self,
        host: &Host,
        why: &str,
        by: &Context,
    ) -> Result<(), EngineError> {
        let told = json!({ "name": host.name, "reason": why });
        self.remove_host(host.id, told, by, |state| {
            check_revision(Some(host.revision), state.host.revision)?;
            Ok(may_remove_departed(state, self.time_for(state.host.updated_at))?)
        })
        .await
    }

    /// `may` is asked of the host as it is locked.
    async fn remove_host(
        &self,
        id: HostId,
        told: Value,
        by: &Context,
        may: impl FnOnce(&HostState) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut tx = self.0.db.begin().await?;
        let Some(state) = ringfence_db::lock_host(&mut tx, id).await? else {
            return Err(EngineError::not_found("host", id.to_string()));
        };
        may(&state)?;
        let mut host = state.host;
        host.updated_at = self.time_for(host.updated_at);
        host.event_sequence += 1;
        self.record_host(&mut tx, &host, EventKind::HostDeleted, told, by)
            .await?;
        ringfence_db::delete_host(&mut tx, host.id).await?;
        tx.commit().await?;
        self.events_written();
        self.remove_record(&host).await;
        Ok(())
    }

    async fn record_host(
        &self,
        tx: &mut Tx,
        host: &Host,
        kind: EventKind,
        data: Value,
        by: &Context,
    ) -> Result<(), EngineError> {
        ringfence_db::append_events(tx, &[event(host, kind, data.clone())]).await?;
        Ok(ringfence_db::append_audit(tx, &line(host, kind, data, by)).await?)
    }
}

/// What is told of a new host.
pub(super) fn created(host: &Host, segment: &str) -> Value {
    json!({ "name": host.name, "segment": segment, "backend": host.backend })
}

pub(super) fn event(host: &Host, kind: EventKind, data: Value) -> NewEvent {
    NewEvent {
        id: new_id(),
        host: Some(EventHost {
            id: host.id,
            name: host.name.clone(),
            segment_id: host.segment_id,
            sequence: host.event_sequence,
            generation: host.generation,
        }),
        kind,
        occurred_at: host.updated_at,
        data,
    }
}

pub(super) fn line(host: &Host, kind: EventKind, data: Value, by: &Context) -> AuditEntry {
    by.line(
        host.updated_at,
        kind.as_str(),
        Some(&host.name),
        Some(host.id),
        data,
    )
}

fn taken(error: DbError, host: &Host) -> EngineError {
    let is_in_cloud =
        matches!(&error, DbError::Constraint { constraint, .. } if constraint.contains(BY_CLOUD));
    EngineError::or_duplicate(error, || twice(host, is_in_cloud))
}

/// What is said of a host that cannot be added because of another one.
pub(super) fn twice(host: &Host, is_in_cloud: bool) -> String {
    let (name, cloud) = (&host.name, host.cloud.as_deref().unwrap_or_default());
    if is_in_cloud {
        let known_as = host.known_as();
        format!("the host that cloud {cloud:?} knows as {known_as:?} is here already, under another name")
    } else {
        format!("there is a host named {name:?} already")
    }
}
