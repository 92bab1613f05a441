//! Adding, changing and removing methods.

use std::collections::BTreeMap;

use ringfence_bus::{DeviceReply, DeviceRequest, ValidateRequest};
use ringfence_core::{
    DEFAULT_ZONE, FencingPolicy, Method, MethodId, MethodTimes, Parameters, Problems, Resource,
    SecretReference, Segment, Timestamp, validate_method,
};
use ringfence_db::DbError;
use serde_json::{Value, json};

use super::{check_revision, require_written};
use crate::devices::{VALIDATE_TIMEOUT, no_answer};
use crate::host_plan::method_names;
use crate::idempotency::leave_receipt;
use crate::ids::new_id;
use crate::{Context, Engine, EngineError, Receipt};

/// The most plans that are looked through.
const MAX_PLANS: u32 = 10_000;
/// The most segments that are looked through.
const MAX_SEGMENTS: u32 = 10_000;

#[derive(Clone, Debug)]
pub struct MethodDraft {
    /// Unique.
    pub name: String,
    /// What it acts on.
    pub resource: Resource,
    /// The name of the driver that speaks to the device.
    pub driver: String,
    /// The driver's parameters.
    pub parameters: Parameters,
    /// The driver's secrets.
    pub secrets: BTreeMap<String, SecretReference>,
    /// The zone whose workers reach the device.
    pub zone: Option<String>,
    /// Limits.
    pub times: MethodTimes,
}

impl Engine {
    /// Adds a method. Where only a worker's machine knows all parameters of its driver, a worker of the zone checks them.
    pub async fn create_method(&self, draft: MethodDraft, by: &Context) -> Result<Method, EngineError> {
        let now = self.0.clock.now();
        let method = draft.method(MethodId(new_id()), 1, now, now);
        self.check_method_draft(&method).await?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::insert_method(&mut tx, &method)
            .await
            .map_err(|e| taken(e, &method.name))?;
        leave_receipt(&mut tx, by, Receipt::Method(method.id)).await?;
        self.commit(tx, "method.created", &method.name, method_detail(&method), by)
            .await?;
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
        let now = self.0.clock.now();
        let method = draft.method(known.id, known.revision + 1, known.created_at, now);
        self.check_method_draft(&method).await?;
        check_revision(revision, known.revision)?;
        if method.name != known.name || method.resource != known.resource {
            self.refuse_if_planned(&known.name).await?;
        } else if method.driver != known.driver {
            self.refuse_if_asked(&known.name).await?;
        }
        let mut tx = self.0.db.begin().await?;
        let is_written = ringfence_db::update_method(&mut tx, &method, known.revision)
            .await
            .map_err(|e| taken(e, &method.name))?;
        require_written(is_written, known.revision)?;
        self.commit(tx, "method.updated", &method.name, method_detail(&method), by)
            .await?;
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
        self.commit(tx, "method.deleted", &known.name, Value::Null, by)
            .await
    }

    pub(crate) async fn method_of(&self, id: &str) -> Result<Method, EngineError> {
        ringfence_db::method(&mut self.0.db.reader(), id)
            .await?
            .ok_or_else(|| EngineError::not_found("method", id))
    }

    pub(super) async fn check_method_draft(&self, method: &Method) -> Result<(), EngineError> {
        let drivers = &self.0.drivers;
        validate_method(drivers, method)?;
        if drivers
            .get(&method.driver)
            .is_none_or(|declared| declared.others.is_none())
        {
            return Ok(());
        }
        let zone = method.zone.clone().unwrap_or_else(|| DEFAULT_ZONE.to_owned());
        let request = DeviceRequest::Validate(ValidateRequest {
            driver: method.driver.clone(),
            resource: method.resource,
            parameters: method.parameters.clone(),
            secrets: method.secrets.clone(),
        });
        match self
            .ask_worker(method.resource, &zone, &request, VALIDATE_TIMEOUT)
            .await?
        {
            DeviceReply::Validated { problems } => Ok(Problems(problems).into_result()?),
            other => Err(no_answer(other)),
        }
    }

    async fn refuse_if_planned(&self, method: &str) -> Result<(), EngineError> {
        let plans = ringfence_db::list_plans(&mut self.0.db.reader(), MAX_PLANS).await?;
        match plans.iter().find(|plan| method_names(plan).contains(method)) {
            Some(plan) => Err(EngineError::InUse(format!(
                "method {method:?} is named by plan {:?}",
                plan.name
            ))),
            None => self.refuse_if_asked(method).await,
        }
    }

    async fn refuse_if_asked(&self, method: &str) -> Result<(), EngineError> {
        let segments = ringfence_db::list_segments(&mut self.0.db.reader(), MAX_SEGMENTS).await?;
        for Segment { name, policy, .. } in segments {
            let FencingPolicy { ceph, queries, .. } = &policy.fencing;
            let lists = [
                ("fencing.ceph", ceph),
                ("fencing.queries", queries),
                ("heartbeats", &policy.heartbeats),
            ];
            for (list, names) in lists {
                if names.iter().any(|name| name == method) {
                    return Err(EngineError::InUse(format!(
                        "method {method:?} is named by policy.{list} of segment {name:?}"
                    )));
                }
            }
        }
        Ok(())
    }
}

impl MethodDraft {
    /// The method as it would be on record.
    #[must_use]
    pub fn method(self, id: MethodId, revision: u64, created_at: Timestamp, updated_at: Timestamp) -> Method {
        Method {
            id,
            name: self.name,
            resource: self.resource,
            driver: self.driver,
            parameters: self.parameters,
            secrets: self.secrets,
            zone: self.zone,
            times: self.times,
            revision,
            created_at,
            updated_at,
        }
    }
}

pub(super) fn method_detail(method: &Method) -> Value {
    json!({ "resource": method.resource, "driver": method.driver, "parameters": method.parameters, "zone": method.zone })
}

fn taken(error: DbError, name: &str) -> EngineError {
    EngineError::or_duplicate(error, || format!("there is a method named {name:?} already"))
}
