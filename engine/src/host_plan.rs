//! The plan that applies to a host, with everything filled in.

use std::collections::BTreeSet;

use std::collections::BTreeMap;
use std::sync::Arc;

use ringfence_core::{
    Catalogue, FrozenPlan, Host, Method, Plan, Problems, ResolvedPlan, SufficientSet, default_sufficient_sets,
};
use ringfence_db::SeenHost;

use crate::known_plans::All;
use crate::{Engine, EngineError};

/// The plan that applies to a host, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct HostPlan {
    /// The plan, as far as it can be filled in.
    pub resolved: ResolvedPlan,
    /// Why a method's device is not the host's alone, by the name of the method.
    pub shared: Vec<(String, String)>,
}

impl HostPlan {
    /// The plan, if all of it can be carried out for the host.
    pub fn freeze(self, host: &Host) -> Result<FrozenPlan, EngineError> {
        let plan = self.resolved.name.clone();
        let broken = |problems| EngineError::PlanBroken {
            plan: plan.clone(),
            host: host.name.clone(),
            problems,
        };
        let frozen = self.resolved.freeze().map_err(broken)?;
        let mut problems = Problems::default();
        for (method, why) in self.shared {
            problems.add(format!("method {method}"), why);
        }
        problems.into_result().map_err(broken)?;
        Ok(frozen)
    }
}

/// A plan with the methods that it names.
enum Configured {
    Known(Arc<All>),
    Read(Option<Plan>, BTreeMap<String, Method>),
}

impl Configured {
    fn resolve(&self, drivers: &Catalogue, host: &Host) -> Option<ResolvedPlan> {
        let (plan, methods) = match self {
            Self::Known(all) => (all.plans.for_host(host), &all.methods),
            Self::Read(plan, methods) => (plan.as_ref(), methods),
        };
        Some(ResolvedPlan::new(drivers, plan?, methods, host))
    }

    fn known(&self) -> Option<&All> {
        match self {
            Self::Known(all) => Some(all),
            Self::Read(..) => None,
        }
    }
}

impl Engine {
    /// The plan for a host, with everything filled in.
    pub(crate) async fn plan_of(&self, seen: &SeenHost) -> Result<FrozenPlan, EngineError> {
        let host = &seen.state.host;
        let plan = self.host_plan(seen).await?;
        plan.ok_or_else(|| plan_missing(host))?.freeze(host)
    }

    /// The plan for a host, as far as it can be filled in; `None` if no plan applies to it.
    pub(crate) async fn host_plan(&self, seen: &SeenHost) -> Result<Option<HostPlan>, EngineError> {
        let host = &seen.state.host;
        let configured = self.configured_for(seen).await?;
        let Some(resolved) = configured.resolve(&self.0.drivers, host) else {
            return Ok(None);
        };
        let shared = self.shared(host, &resolved, configured.known()).await?;
        Ok(Some(HostPlan { resolved, shared }))
    }

    async fn configured_for(&self, seen: &SeenHost) -> Result<Configured, EngineError> {
        let host = &seen.state.host;
        if let Some(all) = self.0.known_plans.at(&self.0.db, seen.configuration).await? {
            return Ok(Configured::Known(all));
        }
        let mut reader = self.0.db.reader();
        let plan = ringfence_db::plan_for(&mut reader, &host.name, host.host_type.as_deref()).await?;
        let names = plan.as_ref().map(method_names).unwrap_or_default();
        let methods = ringfence_db::methods_by_name(&mut reader, names).await?;
        Ok(Configured::Read(plan, methods))
    }

    pub(crate) async fn sufficient_sets_of(&self, host: &Host) -> Result<Vec<SufficientSet>, EngineError> {
        let plan =
            ringfence_db::plan_for(&mut self.0.db.reader(), &host.name, host.host_type.as_deref()).await?;
        Ok(plan.map_or_else(default_sufficient_sets, |plan| plan.sufficient_sets))
    }
}

pub(crate) fn plan_missing(host: &Host) -> EngineError {
    EngineError::PlanMissing {
        host: host.name.clone(),
    }
}

/// The names of all methods that a plan uses.
pub(crate) fn method_names(plan: &Plan) -> BTreeSet<String> {
    let tasks = plan.stages.iter().flat_map(|stage| &stage.tasks);
    tasks
        .flat_map(|task| &task.levels)
        .flat_map(|level| level.methods.iter().cloned())
        .collect()
}
