//! How the backend of a host is spoken to. Nobody configures a method for it: everything follows from the host and its segment.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::{
    Backend, Driver, EvacuationPolicy, FrozenMethod, Host, HostState, MethodId, MethodTimes, Parameters,
    Resource, TaskKind,
};

/// The one method of its kind, so that an id of its own is enough.
const ID: MethodId = MethodId(Uuid::from_u128(0x7269_6e67_6665_4e63_8000_776f_726b_6c64));
/// The longest that one attempt at anything may take, in seconds.
const LONGEST_ATTEMPT_S: u32 = 300;
/// The longest that all attempts at one task may take, in seconds.
const LONGEST_S: u32 = 900;

/// The method for a task on the host's workloads; `None` if nobody here speaks to its backend.
pub(crate) fn workload_method(state: &HostState, kind: TaskKind) -> Option<FrozenMethod> {
    let host = &state.host;
    let driver = match host.backend {
        Backend::Nova => Driver::Nova,
        Backend::Kubernetes | Backend::None => return None,
    };
    let cloud = host.cloud.clone()?;
    let policy = &state.policy;
    let mut parameters = Parameters::from([
        ("cloud".to_owned(), cloud.clone()),
        ("host".to_owned(), host.known_as().to_owned()),
    ]);
    if kind == TaskKind::WorkloadsList {
        parameters.insert("metadata_key".to_owned(), policy.evacuation.metadata_key.clone());
        parameters.insert("priority_key".to_owned(), policy.evacuation.priority_key.clone());
    }
    if kind == TaskKind::WorkloadsStart
        && let Some(fence) = &host.fence
    {
        // What was stopped by nobody after that is to run.
        parameters.insert("since".to_owned(), fence.at.to_rfc3339());
    }
    Some(FrozenMethod {
        id: ID,
        name: format!("{}:{cloud}", host.backend),
        resource: Resource::Workloads,
        driver,
        parameters,
        secrets: BTreeMap::new(),
        zone: policy.workloads_zone.clone().unwrap_or_else(|| host.zone.clone()),
        device: None,
        times: times(state, kind),
    })
}

fn times(state: &HostState, kind: TaskKind) -> MethodTimes {
    let evacuation = &state.policy.evacuation;
    match kind {
        TaskKind::WorkloadsMove => times_of_a_move(evacuation),
        // The host's own agent has to do it, which begins when it has started.
        TaskKind::WorkloadsCleanUp | TaskKind::WorkloadsForceUp | TaskKind::WorkloadsStart => MethodTimes {
            attempt_timeout_s: state.policy.rejoin_wait_s.clamp(30, LONGEST_ATTEMPT_S),
            timeout_s: state.policy.rejoin_wait_s.clamp(60, LONGEST_S),
            retries: 10,
            pause_ms: 1_000,
            ..MethodTimes::default()
        },
        TaskKind::WorkloadsForceDown
        | TaskKind::WorkloadsList
        | TaskKind::WorkloadsAddSpare
        | TaskKind::PowerOff
        | TaskKind::PowerOn
        | TaskKind::StorageFence
        | TaskKind::StorageUnfence
        | TaskKind::NetworkFence
        | TaskKind::NetworkUnfence => MethodTimes {
            attempt_timeout_s: 60,
            timeout_s: 300,
            retries: 5,
            pause_ms: 1_000,
            ..MethodTimes::default()
        },
    }
}

/// The time for one workload counts for every try of it.
pub(crate) fn times_of_a_move(policy: &EvacuationPolicy) -> MethodTimes {
    MethodTimes {
        attempt_timeout_s: policy.timeout_s.min(LONGEST_ATTEMPT_S),
        timeout_s: policy.timeout_s.saturating_mul(policy.retries + 1).min(LONGEST_S),
        retries: policy.retries,
        pause_ms: 1_000,
        ..MethodTimes::default()
    }
}

impl Host {
    /// The name by which its backend knows it.
    #[must_use]
    pub fn known_as(&self) -> &str {
        self.known_as.as_deref().unwrap_or(&self.name)
    }
}
