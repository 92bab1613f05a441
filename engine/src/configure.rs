//! What admins configure: hosts, segments, methods, plans. Everything is checked whole before anything is written.

use std::collections::BTreeMap;

use ringfence_bus::{DeviceReply, DeviceRequest, ValidateRequest};
use ringfence_core::{
    Backend, DEFAULT_SEGMENT_ID, Driver, EventKind, Host, HostId, Method, MethodId, MethodTimes, Parameters,
    Plan, PlanId, PlanScope, PlanStage, Problems, Refusal, Resource, SecretReference, Segment, SegmentId,
    SegmentPolicy, SufficientSet, validate_host, validate_method, validate_name, validate_plan,
    validate_policy,
};
use ringfence_db::{AuditEntry, DbError, NewEvent, Tx};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::requests::method_names;
use crate::{Context, Engine, EngineError};

/// A host to add.
#[derive(Clone, Debug)]
pub struct HostDraft {
    /// Unique.
    pub name: String,
    /// Id or name; the default segment if absent.
    pub segment: Option<String>,
    /// Where its workloads live.
    pub backend: Backend,
    /// The group of hosts that share a plan.
    pub host_type: Option<String>,
    /// From where its devices can be reached.
    pub zone: String,
    /// Values for the parameters of methods, by method name.
    pub parameters: BTreeMap<String, Parameters>,
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
    /// Its type; `Some(None)` takes it away.
    pub host_type: Option<Option<String>>,
    /// Its zone.
    pub zone: Option<String>,
    /// All its values for the parameters of methods.
    pub parameters: Option<BTreeMap<String, Parameters>>,
}

/// A segment to add or to put in the place of one.
#[derive(Clone, Debug)]
pub struct SegmentDraft {
    /// Unique.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What holds for its hosts.
    pub policy: SegmentPolicy,
}

/// A method to add or to put in the place of one.
#[derive(Clone, Debug)]
pub struct MethodDraft {
    /// Unique.
    pub name: String,
    /// What it acts on.
    pub resource: Resource,
    /// The code that speaks to the device.
    pub driver: Driver,
    /// The driver's parameters.
    pub parameters: Parameters,
    /// The driver's secrets.
    pub secrets: BTreeMap<String, SecretReference>,
    /// The zone whose workers reach the device.
    pub zone: Option<String>,
    /// Limits.
    pub times: MethodTimes,
}

/// A plan to add or to put in the place of one.
#[derive(Clone, Debug)]
pub struct PlanDraft {
    /// Unique.
    pub name: String,
    /// Which hosts it is for.
    pub scope: PlanScope,
    /// What is done, in order.
    pub stages: Vec<PlanStage>,
    /// The proofs that make a host FENCED.
    pub sufficient_sets: Vec<SufficientSet>,
}

impl Engine {
    /// Adds a host: UNFENCED, and UNKNOWN until somebody has seen it.
    pub async fn create_host(&self, draft: HostDraft, by: &Context) -> Result<Host, EngineError> {
        validate_host(
            &draft.name,
            &draft.zone,
            draft.host_type.as_deref(),
            &draft.parameters,
        )?;
        let segment = self.segment_or_default(draft.segment.as_deref()).await?;
        let now = self.0.clock.now();
        let host = Host {
            id: HostId(Uuid::new_v4()),
            name: draft.name,
            segment_id: segment.id,
            backend: draft.backend,
            host_type: draft.host_type,
            zone: draft.zone,
            parameters: draft.parameters,
            failure_state: ringfence_core::FailureState::Unknown,
            failure_source: None,
            failure_observed_at: None,
            failure_since: None,
            boot: None,
            fencing_state: ringfence_core::FencingState::Unfenced,
            generation: ringfence_core::Generation::default(),
            fenced_generation: None,
            fenced_at: None,
            boot_at_fence: None,
            needs_boot: false,
            standing: Vec::new(),
            in_flight: Vec::new(),
            event_sequence: 1,
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.0.db.begin().await?;
        ringfence_db::insert_host(&mut tx, &host).await.map_err(|e| {
            EngineError::or_duplicate(e, || format!("there is a host named {:?} already", host.name))
        })?;
        let data = json!({ "name": host.name, "segment": segment.name, "backend": host.backend });
        self.record_host(&mut tx, &host, EventKind::HostCreated, data, by)
            .await?;
        tx.commit().await?;
        self.0.events_written.notify_one();
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
            return Err(EngineError::NotFound {
                kind: "host",
                id: host.to_owned(),
            });
        };
        let mut host = state.host;
        check_revision(revision, host.revision)?;
        let changed = json!({
            "name": change.name, "segment": change.segment, "backend": change.backend, "type": change.host_type,
            "zone": change.zone, "parameters": change.parameters.as_ref().map(|p| p.keys().collect::<Vec<_>>()),
        });
        host.name = change.name.unwrap_or(host.name);
        host.segment_id = segment.unwrap_or(host.segment_id);
        host.backend = change.backend.unwrap_or(host.backend);
        host.host_type = change.host_type.unwrap_or(host.host_type);
        host.zone = change.zone.unwrap_or(host.zone);
        host.parameters = change.parameters.unwrap_or(host.parameters);
        validate_host(
            &host.name,
            &host.zone,
            host.host_type.as_deref(),
            &host.parameters,
        )?;
        let now = self.0.clock.now().max(host.updated_at);
        host.revision += 1;
        host.event_sequence += 1;
        host.updated_at = now;
        // Waking once too often does no harm: what is due is decided afresh.
        let wake_at = Some(now);
        ringfence_db::update_host(&mut tx, &host, None, wake_at)
            .await
            .map_err(|e| {
                EngineError::or_duplicate(e, || format!("there is a host named {:?} already", host.name))
            })?;
        self.record_host(&mut tx, &host, EventKind::HostUpdated, changed, by)
            .await?;
        tx.commit().await?;
        self.0.events_written.notify_one();
        Ok(host)
    }

    /// Removes a host. One that is FENCED, cut off, or in an operation is kept.
    pub async fn delete_host(
        &self,
        host: &str,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<(), EngineError> {
        let known = self.state_of(host).await?.host;
        let mut tx = self.0.db.begin().await?;
        let Some(state) = ringfence_db::lock_host(&mut tx, known.id).await? else {
            return Err(EngineError::NotFound {
                kind: "host",
                id: host.to_owned(),
            });
        };
        check_revision(revision, state.host.revision)?;
        if let Some(live) = &state.operation {
            return Err(Refusal::OperationLive {
                kind: live.kind,
                id: live.id,
                status: live.status,
            }
            .into());
        }
        if state.host.fencing_state == ringfence_core::FencingState::Fenced {
            return Err(Refusal::HostState("FENCED; rejoin it before it is removed").into());
        }
        if !state.host.standing.is_empty() {
            return Err(Refusal::HostState(
                "partly fenced by an operation that was stopped; rejoin it before it is removed",
            )
            .into());
        }
        let mut host = state.host;
        host.event_sequence += 1;
        self.record_host(
            &mut tx,
            &host,
            EventKind::HostDeleted,
            json!({ "name": host.name }),
            by,
        )
        .await?;
        ringfence_db::delete_host(&mut tx, host.id).await?;
        tx.commit().await?;
        self.0.events_written.notify_one();
        Ok(())
    }

    /// Adds a segment.
    pub async fn create_segment(&self, draft: SegmentDraft, by: &Context) -> Result<Segment, EngineError> {
        check_segment(&draft)?;
        let now = self.0.clock.now();
        let segment = Segment {
            id: SegmentId(Uuid::new_v4()),
            name: draft.name,
            description: draft.description,
            policy: draft.policy,
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        self.add_segment(&segment, by).await?;
        Ok(segment)
    }

    /// Makes the default segment if it is not there yet; called at every start.
    pub async fn ensure_default_segment(&self) -> Result<(), EngineError> {
        if ringfence_db::segment(&mut self.0.db.reader(), &DEFAULT_SEGMENT_ID.to_string())
            .await?
            .is_some()
        {
            return Ok(());
        }
        let now = self.0.clock.now();
        let segment = Segment {
            id: DEFAULT_SEGMENT_ID,
            name: "default".to_owned(),
            description: "Hosts that name no other segment".to_owned(),
            policy: SegmentPolicy::default(),
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        match self.add_segment(&segment, &Context::own("ringfence")).await {
            // Another service was a moment faster.
            Ok(()) | Err(EngineError::Duplicate(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    async fn add_segment(&self, segment: &Segment, by: &Context) -> Result<(), EngineError> {
        let mut tx = self.0.db.begin().await?;
        ringfence_db::insert_segment(&mut tx, segment)
            .await
            .map_err(|e| {
                EngineError::or_duplicate(e, || {
                    format!("there is a segment named {:?} already", segment.name)
                })
            })?;
        let detail = json!({ "policy": segment.policy });
        self.record(&mut tx, "segment.created", &segment.name, detail, by)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Puts a segment in the place of one. Live operations keep the policy that they began with.
    pub async fn update_segment(
        &self,
        id: &str,
        draft: SegmentDraft,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<Segment, EngineError> {
        check_segment(&draft)?;
        let known = self.segment_or_default(Some(id)).await?;
        check_revision(revision, known.revision)?;
        let segment = Segment {
            name: draft.name,
            description: draft.description,
            policy: draft.policy,
            revision: known.revision + 1,
            updated_at: self.0.clock.now(),
            ..known
        };
        let mut tx = self.0.db.begin().await?;
        let is_written = ringfence_db::update_segment(&mut tx, &segment, known.revision)
            .await
            .map_err(|e| {
                EngineError::or_duplicate(e, || {
                    format!("there is a segment named {:?} already", segment.name)
                })
            })?;
        require_written(is_written, known.revision)?;
        let detail = json!({ "policy": segment.policy });
        self.record(&mut tx, "segment.updated", &segment.name, detail, by)
            .await?;
        tx.commit().await?;
        Ok(segment)
    }

    /// Removes a segment that has no hosts.
    pub async fn delete_segment(
        &self,
        id: &str,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<(), EngineError> {
        let known = self.segment_or_default(Some(id)).await?;
        check_revision(revision, known.revision)?;
        let in_use = || EngineError::InUse(format!("segment {:?} has hosts", known.name));
        if known.id == DEFAULT_SEGMENT_ID {
            return Err(EngineError::InUse(
                "the default segment cannot be removed".to_owned(),
            ));
        }
        let mut tx = self.0.db.begin().await?;
        if ringfence_db::segment_has_hosts(&mut tx, known.id).await? {
            return Err(in_use());
        }
        ringfence_db::delete_segment(&mut tx, known.id)
            .await
            .map_err(|e| match e {
                DbError::Constraint { .. } => in_use(),
                other => EngineError::Db(other),
            })?;
        self.record(&mut tx, "segment.deleted", &known.name, Value::Null, by)
            .await?;
        Ok(tx.commit().await?)
    }

    async fn segment_or_default(&self, id: Option<&str>) -> Result<Segment, EngineError> {
        let wanted = id.map_or_else(|| DEFAULT_SEGMENT_ID.to_string(), ToOwned::to_owned);
        ringfence_db::segment(&mut self.0.db.reader(), &wanted)
            .await?
            .ok_or(EngineError::NotFound {
                kind: "segment",
                id: wanted,
            })
    }

    /// Adds a method. A fence agent's parameters are checked against its own metadata by a worker of the zone.
    pub async fn create_method(&self, draft: MethodDraft, by: &Context) -> Result<Method, EngineError> {
        let now = self.0.clock.now();
        let method = method_of(draft, MethodId(Uuid::new_v4()), 1, now, now);
        self.check_method_draft(&method).await?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::insert_method(&mut tx, &method).await.map_err(|e| {
            EngineError::or_duplicate(e, || format!("there is a method named {:?} already", method.name))
        })?;
        self.record(
            &mut tx,
            "method.created",
            &method.name,
            method_detail(&method),
            by,
        )
        .await?;
        tx.commit().await?;
        Ok(method)
    }

    /// Puts a method in the place of one. Live operations, and what stands of earlier ones, keep their frozen copy.
    pub async fn update_method(
        &self,
        id: &str,
        draft: MethodDraft,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<Method, EngineError> {
        let known = self.method_of(id).await?;
        check_revision(revision, known.revision)?;
        let now = self.0.clock.now();
        let method = method_of(draft, known.id, known.revision + 1, known.created_at, now);
        self.check_method_draft(&method).await?;
        if method.name != known.name || method.resource != known.resource {
            self.refuse_if_planned(&known.name).await?;
        }
        let mut tx = self.0.db.begin().await?;
        let is_written = ringfence_db::update_method(&mut tx, &method, known.revision)
            .await
            .map_err(|e| {
                EngineError::or_duplicate(e, || format!("there is a method named {:?} already", method.name))
            })?;
        require_written(is_written, known.revision)?;
        self.record(
            &mut tx,
            "method.updated",
            &method.name,
            method_detail(&method),
            by,
        )
        .await?;
        tx.commit().await?;
        Ok(method)
    }

    /// Removes a method that no plan names.
    pub async fn delete_method(
        &self,
        id: &str,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<(), EngineError> {
        let known = self.method_of(id).await?;
        check_revision(revision, known.revision)?;
        self.refuse_if_planned(&known.name).await?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::delete_method(&mut tx, known.id).await?;
        self.record(&mut tx, "method.deleted", &known.name, Value::Null, by)
            .await?;
        Ok(tx.commit().await?)
    }

    pub(crate) async fn method_of(&self, id: &str) -> Result<Method, EngineError> {
        ringfence_db::method(&mut self.0.db.reader(), id)
            .await?
            .ok_or_else(|| EngineError::NotFound {
                kind: "method",
                id: id.to_owned(),
            })
    }

    async fn check_method_draft(&self, method: &Method) -> Result<(), EngineError> {
        validate_method(method)?;
        if method.driver != Driver::FenceAgent {
            return Ok(());
        }
        let zone = method
            .zone
            .clone()
            .unwrap_or_else(|| ringfence_core::DEFAULT_ZONE.to_owned());
        let request = DeviceRequest::Validate(ValidateRequest {
            driver: method.driver,
            resource: method.resource,
            parameters: method.parameters.clone(),
            secrets: method.secrets.clone(),
        });
        match self
            .ask_worker(method.resource, &zone, &request, crate::devices::VALIDATE_TIMEOUT)
            .await?
        {
            DeviceReply::Validated { problems } => Ok(Problems(problems).into_result()?),
            DeviceReply::Failed { detail, .. } => Err(EngineError::DeviceFailed { detail }),
            DeviceReply::Checked { .. } => Err(EngineError::DeviceFailed {
                detail: "the worker answered another question".to_owned(),
            }),
        }
    }

    async fn refuse_if_planned(&self, method: &str) -> Result<(), EngineError> {
        let plans = ringfence_db::list_plans(&mut self.0.db.reader(), MAX_PLANS).await?;
        match plans.iter().find(|plan| method_names(plan).contains(method)) {
            Some(plan) => Err(EngineError::InUse(format!(
                "method {method:?} is named by plan {:?}",
                plan.name
            ))),
            None => Ok(()),
        }
    }

    /// Adds a plan.
    pub async fn create_plan(&self, draft: PlanDraft, by: &Context) -> Result<Plan, EngineError> {
        let now = self.0.clock.now();
        let plan = plan_of(draft, PlanId(Uuid::new_v4()), 1, now, now);
        self.check_plan(&plan).await?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::insert_plan(&mut tx, &plan)
            .await
            .map_err(|e| plan_taken(e, &plan))?;
        self.record(&mut tx, "plan.created", &plan.name, plan_detail(&plan), by)
            .await?;
        tx.commit().await?;
        Ok(plan)
    }

    /// Puts a plan in the place of one. Live operations keep their frozen copy.
    pub async fn update_plan(
        &self,
        id: &str,
        draft: PlanDraft,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<Plan, EngineError> {
        let known = self.known_plan(id).await?;
        check_revision(revision, known.revision)?;
        let plan = plan_of(
            draft,
            known.id,
            known.revision + 1,
            known.created_at,
            self.0.clock.now(),
        );
        self.check_plan(&plan).await?;
        let mut tx = self.0.db.begin().await?;
        let is_written = ringfence_db::update_plan(&mut tx, &plan, known.revision)
            .await
            .map_err(|e| plan_taken(e, &plan))?;
        require_written(is_written, known.revision)?;
        self.record(&mut tx, "plan.updated", &plan.name, plan_detail(&plan), by)
            .await?;
        tx.commit().await?;
        Ok(plan)
    }

    /// Removes a plan.
    pub async fn delete_plan(
        &self,
        id: &str,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<(), EngineError> {
        let known = self.known_plan(id).await?;
        check_revision(revision, known.revision)?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::delete_plan(&mut tx, known.id).await?;
        self.record(&mut tx, "plan.deleted", &known.name, Value::Null, by)
            .await?;
        Ok(tx.commit().await?)
    }

    async fn known_plan(&self, id: &str) -> Result<Plan, EngineError> {
        ringfence_db::plan(&mut self.0.db.reader(), id)
            .await?
            .ok_or_else(|| EngineError::NotFound {
                kind: "plan",
                id: id.to_owned(),
            })
    }

    async fn check_plan(&self, plan: &Plan) -> Result<(), EngineError> {
        let methods = ringfence_db::methods_by_name(&mut self.0.db.reader(), method_names(plan)).await?;
        Ok(validate_plan(plan, &methods)?)
    }

    async fn record(
        &self,
        tx: &mut Tx,
        action: &str,
        target: &str,
        detail: Value,
        by: &Context,
    ) -> Result<(), EngineError> {
        let entry = AuditEntry {
            at: self.0.clock.now(),
            actor: by.actor.clone(),
            origin: by.origin.clone(),
            request_id: by.request_id.clone(),
            action: action.to_owned(),
            target: Some(target.to_owned()),
            host_id: None,
            detail,
        };
        Ok(ringfence_db::append_audit(tx, &entry).await?)
    }

    async fn record_host(
        &self,
        tx: &mut Tx,
        host: &Host,
        kind: EventKind,
        data: Value,
        by: &Context,
    ) -> Result<(), EngineError> {
        let event = NewEvent {
            id: Uuid::new_v4(),
            host_id: host.id,
            host: host.name.clone(),
            segment_id: host.segment_id,
            host_sequence: host.event_sequence,
            kind,
            generation: host.generation,
            occurred_at: host.updated_at,
            data: data.clone(),
        };
        ringfence_db::append_events(tx, &[event]).await?;
        let entry = AuditEntry {
            at: host.updated_at,
            actor: by.actor.clone(),
            origin: by.origin.clone(),
            request_id: by.request_id.clone(),
            action: kind.as_str().to_owned(),
            target: Some(host.name.clone()),
            host_id: Some(host.id),
            detail: data,
        };
        Ok(ringfence_db::append_audit(tx, &entry).await?)
    }
}

/// The most plans that are looked through.
const MAX_PLANS: u32 = 10_000;
/// The longest description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1000;

fn check_revision(given: Option<u64>, current: u64) -> Result<(), EngineError> {
    match given {
        Some(given) if given != current => Err(EngineError::Changed { given, current }),
        Some(_) | None => Ok(()),
    }
}

fn require_written(is_written: bool, given: u64) -> Result<(), EngineError> {
    if is_written {
        Ok(())
    } else {
        Err(EngineError::Changed {
            given,
            current: given + 1,
        })
    }
}

fn check_segment(draft: &SegmentDraft) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if let Err(problem) = validate_name("name", &draft.name) {
        problems.0.push(problem);
    }
    if draft.description.chars().count() > MAX_DESCRIPTION_CHARS {
        problems.add(
            "description",
            format!("at most {MAX_DESCRIPTION_CHARS} characters are allowed"),
        );
    }
    if let Err(found) = validate_policy(&draft.policy) {
        problems.0.extend(found.0);
    }
    problems.into_result()
}

fn method_of(
    draft: MethodDraft,
    id: MethodId,
    revision: u64,
    created_at: ringfence_core::Timestamp,
    updated_at: ringfence_core::Timestamp,
) -> Method {
    Method {
        id,
        name: draft.name,
        resource: draft.resource,
        driver: draft.driver,
        parameters: draft.parameters,
        secrets: draft.secrets,
        zone: draft.zone,
        times: draft.times,
        revision,
        created_at,
        updated_at,
    }
}

fn method_detail(method: &Method) -> Value {
    json!({ "resource": method.resource, "driver": method.driver, "parameters": method.parameters, "zone": method.zone })
}

fn plan_of(
    draft: PlanDraft,
    id: PlanId,
    revision: u64,
    created_at: ringfence_core::Timestamp,
    updated_at: ringfence_core::Timestamp,
) -> Plan {
    Plan {
        id,
        name: draft.name,
        scope: draft.scope,
        stages: draft.stages,
        sufficient_sets: draft.sufficient_sets,
        revision,
        created_at,
        updated_at,
    }
}

fn plan_detail(plan: &Plan) -> Value {
    json!({ "scope": plan.scope, "stages": plan.stages, "sufficient_sets": plan.sufficient_sets })
}

fn plan_taken(error: DbError, plan: &Plan) -> EngineError {
    EngineError::or_duplicate(error, || {
        format!(
            "there is a plan named {:?}, or one for the same hosts, already",
            plan.name
        )
    })
}
