//! Adding, changing and removing plans.

use ringfence_core::{Plan, PlanId, PlanScope, PlanStage, SufficientSet, Timestamp, validate_plan};
use ringfence_db::DbError;
use serde_json::{Value, json};

use super::{check_revision, require_written};
use crate::host_plan::method_names;
use crate::idempotency::leave_receipt;
use crate::ids::new_id;
use crate::{Context, Engine, EngineError, Receipt};

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
    /// Adds a plan.
    pub async fn create_plan(&self, draft: PlanDraft, by: &Context) -> Result<Plan, EngineError> {
        let now = self.0.clock.now();
        let plan = plan_of(draft, PlanId(new_id()), 1, now, now);
        self.check_plan(&plan).await?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::insert_plan(&mut tx, &plan)
            .await
            .map_err(|e| plan_taken(e, &plan))?;
        leave_receipt(&mut tx, by, Receipt::Plan(plan.id)).await?;
        self.commit(tx, "plan.created", &plan.name, plan_detail(&plan), by)
            .await?;
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
        let plan = plan_of(
            draft,
            known.id,
            known.revision + 1,
            known.created_at,
            self.0.clock.now(),
        );
        self.check_plan(&plan).await?;
        check_revision(revision, known.revision)?;
        let mut tx = self.0.db.begin().await?;
        let is_written = ringfence_db::update_plan(&mut tx, &plan, known.revision)
            .await
            .map_err(|e| plan_taken(e, &plan))?;
        require_written(is_written, known.revision)?;
        self.commit(tx, "plan.updated", &plan.name, plan_detail(&plan), by)
            .await?;
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
        self.commit(tx, "plan.deleted", &known.name, Value::Null, by)
            .await
    }

    async fn known_plan(&self, id: &str) -> Result<Plan, EngineError> {
        ringfence_db::plan(&mut self.0.db.reader(), id)
            .await?
            .ok_or_else(|| EngineError::not_found("plan", id))
    }

    async fn check_plan(&self, plan: &Plan) -> Result<(), EngineError> {
        let methods = ringfence_db::methods_by_name(&mut self.0.db.reader(), method_names(plan)).await?;
        Ok(validate_plan(&self.0.drivers, plan, &methods)?)
    }
}

pub(super) fn plan_of(
    draft: PlanDraft,
    id: PlanId,
    revision: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
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

pub(super) fn plan_detail(plan: &Plan) -> Value {
    json!({ "scope": plan.scope, "stages": plan.stages, "sufficient_sets": plan.sufficient_sets })
}

fn plan_taken(error: DbError, plan: &Plan) -> EngineError {
    EngineError::or_duplicate(error, || {
        format!(
            "there is a plan named {:?}, or one with this scope, already",
            plan.name
        )
    })
}
