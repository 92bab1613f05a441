//! Why a host is in its state, and what a fence would do now. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringfence_bus::Queue;
use ringfence_core::{
    Explanation, Facts, FrozenMethod, Host, HostState, Input, LastCheck, MethodFacts, MethodId, PastTimes,
    Reply, ResolvedPlan, TaskQueue, Timestamp, default_sufficient_sets, error_chain, validate_reason,
};
use tokio::time::timeout;

use crate::configure::check_revision;
use crate::fence_request::FenceRequest;
use crate::host_plan::{HostPlan, plan_missing};
use crate::{Context, Engine, EngineError};

/// Past operations that are looked at: of the host, and, where a method has not been used for it, of all hosts.
const OWN_OPERATIONS: u32 = 20;
const OTHER_OPERATIONS: u32 = 50;
/// Queues that are looked into, and for how long in all; of others it is not known whether a worker serves them.
const MOST_QUEUES: usize = 16;
const QUEUES_WITHIN: Duration = Duration::from_secs(2);

/// What a fence of a host would do, with the facts of the decision.
#[derive(Debug)]
pub struct DryRun {
    /// The host as it was read.
    pub state: HostState,
    /// The moment for which everything holds.
    pub now: Timestamp,
    /// What is known of its plan.
    pub facts: Facts,
    /// Since when the host's platform has not named it; `None` if it does, or there is none.
    pub left_at: Option<Timestamp>,
    /// How long each part took the last time.
    pub past: PastTimes,
    /// The answer that the request would get.
    pub verdict: Result<Reply, EngineError>,
    request: Input,
}

impl DryRun {
    /// Why the host is in its state, and what a fence would do.
    #[must_use]
    pub fn explanation(&self) -> Explanation<'_> {
        Explanation::new(&self.state, self.request.clone(), &self.facts, self.now)
    }
}

impl Engine {
    /// What [`Engine::fence`] would do with these arguments.
    pub async fn dry_run_fence(&self, host: &str, reason: &str, by: &Context) -> Result<DryRun, EngineError> {
        validate_reason(reason)?;
        let seen = self.see(host).await?;
        let plan = self.host_plan(&seen).await?;
        let mut state = seen.state;
        state.clock_set_at = self.0.clock.set_at();
        let now = self.time_for(state.host.updated_at);
        let left_at = ringfence_db::left_at(&mut self.0.db.reader(), state.host.id).await?;
        let left_at = left_at.filter(|_| state.host.cloud.is_some());
        let past = self.past_times(&state.host, plan.as_ref()).await?;
        let facts = self.facts(&state, plan.as_ref()).await?;
        let frozen = match plan {
            Some(plan) => plan.freeze(&state.host),
            None => Err(plan_missing(&state.host)),
        };
        let FenceRequest { input, fault } = FenceRequest::new(frozen, reason, by);
        let decided = ringfence_core::decide(&state, input.clone(), now);
        // In the order in which a fence that is carried out looks at them.
        let answer = decided.map_err(EngineError::from).and_then(|decision| {
            check_revision(by.if_revision, state.host.revision)?;
            Ok(decision.answer)
        });
        Ok(DryRun {
            verdict: fault.told(answer),
            request: input,
            state,
            now,
            facts,
            left_at,
            past,
        })
    }

    async fn facts(&self, state: &HostState, plan: Option<&HostPlan>) -> Result<Facts, EngineError> {
        let host = &state.host;
        let around = self.around(state).await?;
        let opinions = self.opinions(state).await;
        let Some(plan) = plan else {
            return Ok(Facts {
                plan: None,
                sufficient_sets: default_sufficient_sets(),
                methods: BTreeMap::new(),
                around,
                opinions,
            });
        };
        Ok(Facts {
            plan: Some(plan.resolved.clone()),
            sufficient_sets: plan.resolved.sufficient_sets.clone(),
            methods: self.method_facts(host, plan).await?,
            around,
            opinions,
        })
    }

    async fn method_facts(
        &self,
        host: &Host,
        plan: &HostPlan,
    ) -> Result<BTreeMap<String, MethodFacts>, EngineError> {
        let methods: Vec<_> = usable(&plan.resolved).collect();
        let checks = self.last_checks(host, &methods).await?;
        let served = self.served(&methods).await;
        let shared: BTreeMap<_, _> = plan.shared.iter().cloned().collect();
        let of = |method: &&FrozenMethod| {
            let facts = MethodFacts {
                check: checks.get(&method.id).cloned(),
                shared: shared.get(&method.name).cloned(),
                is_served: served.get(&task_queue(method)).copied(),
            };
            (method.name.clone(), facts)
        };
        Ok(methods.iter().map(of).collect())
    }

    /// What the device of each method last answered. A service that answers for a whole cloud is asked about one host of that cloud.
    async fn last_checks(
        &self,
        host: &Host,
        methods: &[&FrozenMethod],
    ) -> Result<BTreeMap<MethodId, LastCheck>, EngineError> {
        let mut reader = self.0.db.reader();
        let ids: BTreeSet<_> = methods.iter().map(|method| method.id).collect();
        let ids: Vec<_> = ids.into_iter().collect();
        let own = ringfence_db::last_checks_of_host(&mut reader, &ids, host.id).await?;
        let mut checks: BTreeMap<_, _> = own.into_iter().collect();
        for method in methods {
            if let Some(cloud) = &method.service_of
                && !checks.contains_key(&method.id)
            {
                let of_cloud = ringfence_db::last_check_of_cloud(&mut reader, method.id, cloud).await?;
                checks.extend(of_cloud.map(|check| (method.id, check)));
            }
        }
        Ok(checks)
    }

    /// Whether a worker takes tasks from the queue of each method, as far as the bus tells in time.
    async fn served(&self, methods: &[&FrozenMethod]) -> BTreeMap<TaskQueue, bool> {
        let mut served = BTreeMap::new();
        let queues: BTreeSet<_> = methods.iter().map(|method| task_queue(method)).collect();
        let look = async {
            for wanted in queues.into_iter().take(MOST_QUEUES) {
                let queue = Queue::Tasks {
                    resource: wanted.resource,
                    zone: wanted.zone.clone(),
                };
                match self.0.bus.queue_load(&queue).await {
                    Ok(Some(load)) => drop(served.insert(wanted, load.consumers > 0)),
                    // A broker makes a queue for its first worker. The bus within a process shows none of its queues.
                    Ok(None) if self.0.bus.began().is_none() => drop(served.insert(wanted, false)),
                    Ok(None) => {}
                    Err(error) => {
                        tracing::debug!(error = %error_chain(&error), "a queue could not be looked into");
                        return;
                    }
                }
            }
        };
        let _ = timeout(QUEUES_WITHIN, look).await;
        served
    }

    async fn past_times(&self, host: &Host, plan: Option<&HostPlan>) -> Result<PastTimes, EngineError> {
        let mut reader = self.0.db.reader();
        let own = ringfence_db::newest_operations_of_host(&mut reader, host.id, OWN_OPERATIONS).await?;
        let times = PastTimes::new(&own, &[]);
        let is_known = |method: &FrozenMethod| times.knows(method.id);
        if plan.is_none_or(|plan| usable(&plan.resolved).all(is_known)) {
            return Ok(times);
        }
        let others = ringfence_db::newest_operations(&mut reader, OTHER_OPERATIONS).await?;
        Ok(PastTimes::new(&own, &others))
    }
}

fn usable(plan: &ResolvedPlan) -> impl Iterator<Item = &FrozenMethod> {
    plan.methods().filter_map(|method| method.filled_in.as_ref().ok())
}

fn task_queue(method: &FrozenMethod) -> TaskQueue {
    TaskQueue {
        resource: method.resource,
        zone: method.zone.clone(),
    }
}
