//! What an admin should know of what was just configured: it is taken, and something would keep hosts from being fenced by it.
//!
//! Nothing here refuses anything, and a look that fails is told in the log alone: what was asked for is done by then.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{
    Host, HostId, Method, Plan, PlanScope, error_chain, host_warnings, plan_warnings, resolve, target_key,
};
use ringfence_db::{Asked, Filters, HOSTS, Page, SortKey, Test};

use crate::host_plan::method_names;
use crate::{Engine, EngineError};

/// The most plans and methods that are looked at.
const MOST_PARTS: u32 = 10_000;
/// The most hosts of a plan that are looked at, and the most that may share a device with one host.
const MOST_HOSTS: u32 = 1000;
const MOST_ALIKE: u32 = 8;

impl Engine {
    /// What would keep a host from being fenced.
    pub async fn host_warnings(&self, host: &Host) -> Vec<String> {
        told(self.of_host(host).await)
    }

    /// What would keep hosts from being fenced by a plan.
    pub async fn plan_warnings(&self, plan: &Plan) -> Vec<String> {
        told(self.of_plan(plan).await)
    }

    /// What would keep hosts from being fenced by the plans that name a method.
    pub async fn method_warnings(&self, method: &Method) -> Vec<String> {
        told(self.of_method(method).await)
    }

    async fn of_host(&self, host: &Host) -> Result<Vec<String>, EngineError> {
        let (plans, methods) = self.plans_and_methods().await?;
        let mut warnings = host_warnings(&self.0.drivers, host, &plans, &methods);
        let mut reader = self.0.db.reader();
        let Some(own) = self.targets(host).await? else {
            return Ok(warnings);
        };
        let alike = ringfence_db::hosts_with_like_parameters(&mut reader, host.id, MOST_ALIKE).await?;
        for other in alike.into_iter().collect::<BTreeSet<HostId>>() {
            warnings.extend(self.shared_with(&own, other).await?);
        }
        Ok(warnings)
    }

    /// The devices that the host and another one are both fenced by.
    async fn shared_with(
        &self,
        own: &BTreeMap<String, String>,
        other: HostId,
    ) -> Result<Vec<String>, EngineError> {
        let seen = ringfence_db::see_host(&mut self.0.db.reader(), &other.to_string()).await?;
        let Some(other) = seen.map(|seen| seen.state.host) else {
            return Ok(Vec::new());
        };
        let theirs = self.targets(&other).await?.unwrap_or_default();
        let shared = own.iter().filter(|(target, _)| theirs.contains_key(*target));
        let told = |(_, method): (&String, &String)| {
            format!(
                "method {method} acts on the device that it acts on for host {} too: its proof for one host would count for the other, and \
                 fences of both are refused until one method is mended",
                other.name
            )
        };
        Ok(shared.map(told).collect())
    }

    /// What the host's plan acts on, each with the method; `None` if it has no plan that can be carried out.
    async fn targets(&self, host: &Host) -> Result<Option<BTreeMap<String, String>>, EngineError> {
        let mut reader = self.0.db.reader();
        let plan = ringfence_db::plan_for(&mut reader, &host.name, host.host_type.as_deref()).await?;
        let Some(plan) = plan else { return Ok(None) };
        let methods = ringfence_db::methods_by_name(&mut reader, method_names(&plan)).await?;
        let frozen = resolve(&self.0.drivers, &plan, &methods, host).ok();
        Ok(frozen.map(|plan| {
            let targets = plan
                .methods()
                .map(|method| (target_key(&self.0.drivers, method), method.name.clone()));
            targets.collect()
        }))
    }

    async fn of_plan(&self, plan: &Plan) -> Result<Vec<String>, EngineError> {
        let (plans, methods) = self.plans_and_methods().await?;
        let of = |name: &str, value: &String| {
            HOSTS.filter(name).map_or_else(Filters::default, |filter| {
                Filters::default().and(filter, Test::is(Asked::Text(value.clone())))
            })
        };
        let filters = match &plan.scope {
            PlanScope::Host(name) => of("name", name),
            PlanScope::HostType(word) => of("type", word),
            PlanScope::Default => Filters::default(),
        };
        let page = Page {
            limit: MOST_HOSTS,
            marker: None,
            sort: vec![SortKey::Name.ascending()],
        };
        let rows = ringfence_db::hosts_page(&mut self.0.db.reader(), &filters, &page).await?;
        let hosts: Vec<Host> = rows.into_iter().map(|row| row.host).collect();
        Ok(plan_warnings(&self.0.drivers, plan, &plans, &methods, &hosts))
    }

    async fn of_method(&self, method: &Method) -> Result<Vec<String>, EngineError> {
        let plans = ringfence_db::list_plans(&mut self.0.db.reader(), MOST_PARTS).await?;
        let mut warnings = Vec::new();
        for plan in plans
            .iter()
            .filter(|plan| method_names(plan).contains(&method.name))
        {
            let of_plan = self.of_plan(plan).await?.into_iter();
            let is_its = |warning: &String| warning.contains(&format!("method {}:", method.name));
            warnings.extend(
                of_plan
                    .filter(is_its)
                    .map(|warning| format!("plan {}: {warning}", plan.name)),
            );
        }
        Ok(warnings)
    }

    async fn plans_and_methods(&self) -> Result<(Vec<Plan>, BTreeMap<String, Method>), EngineError> {
        let mut reader = self.0.db.reader();
        let plans = ringfence_db::list_plans(&mut reader, MOST_PARTS).await?;
        let methods = ringfence_db::list_methods(&mut reader, MOST_PARTS).await?;
        let by_name = methods.into_iter().map(|method| (method.name.clone(), method));
        Ok((plans, by_name.collect()))
    }
}

fn told(found: Result<Vec<String>, EngineError>) -> Vec<String> {
    found.unwrap_or_else(|error| {
        tracing::warn!(
            error = error_chain(&error),
            "cannot look whether what was configured can be used"
        );
        Vec::new()
    })
}
