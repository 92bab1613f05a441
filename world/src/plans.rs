//! Short ways to write methods, plans and hosts.

use std::collections::BTreeMap;

use chrono::TimeZone;
use ringfence_core::*;
use uuid::Uuid;

/// All scenarios begin here.
pub fn start() -> Timestamp {
    chrono::Utc.with_ymd_and_hms(2030, 1, 1, 12, 0, 0).unwrap()
}

pub fn method_with(name: &str, resource: Resource, times: MethodTimes) -> FrozenMethod {
    FrozenMethod {
        id: MethodId(Uuid::new_v5(&Uuid::nil(), name.as_bytes())),
        name: name.to_owned(),
        resource,
        driver: "simulated".to_owned(),
        parameters: BTreeMap::from([("device".to_owned(), name.to_owned())]),
        secrets: BTreeMap::new(),
        zone: "here".to_owned(),
        device: Some(format!("simulated/{name}")),
        service_of: None,
        can_prove: true,
        times: MethodTimes {
            lingers_s: times.lingers_s.or(Some(10)),
            ..times
        },
    }
}

pub fn task_with(kind: FencingKind, levels: &[&[&str]], times: MethodTimes) -> FrozenTask {
    let method = |name: &&str| method_with(name, kind.resource(), times);
    FrozenTask {
        kind,
        levels: levels
            .iter()
            .map(|level| level.iter().map(method).collect())
            .collect(),
    }
}

pub fn task(kind: FencingKind, levels: &[&[&str]]) -> FrozenTask {
    task_with(kind, levels, MethodTimes::default())
}

/// A plan whose stages follow each other without delay and whose sufficient sets are the default ones.
pub fn plan(stages: Vec<Vec<FrozenTask>>) -> FrozenPlan {
    FrozenPlan {
        name: "plan".to_owned(),
        stages: stages
            .into_iter()
            .map(|tasks| FrozenStage { delay_s: 0, tasks })
            .collect(),
        sufficient_sets: default_sufficient_sets(),
    }
}

pub fn power_plan() -> FrozenPlan {
    plan(vec![vec![task(FencingKind::PowerOff, &[&["bmc"]])]])
}

pub fn reboot_plan() -> FrozenPlan {
    plan(vec![
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
        vec![task(FencingKind::PowerOn, &[])],
    ])
}

pub fn cut_off_plan() -> FrozenPlan {
    plan(vec![vec![
        task(FencingKind::StorageFence, &[&["ceph"]]),
        task(FencingKind::NetworkFence, &[&["switch"]]),
    ]])
}

pub fn host() -> Host {
    Host {
        id: HostId(Uuid::from_u128(0x51)),
        name: "compute1".to_owned(),
        segment_id: DEFAULT_SEGMENT_ID,
        backend: Backend::None,
        cloud: None,
        known_as: None,
        host_type: None,
        labels: Labels::new(),
        zone: "here".to_owned(),
        parameters: BTreeMap::new(),
        sources: Sources::default(),
        failure_state: FailureState::Unknown,
        failure_source: None,
        failure_observed_at: None,
        failure_since: None,
        generation: Generation(0),
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
        event_sequence: 0,
        revision: 0,
        created_at: start() - chrono::TimeDelta::days(1),
        updated_at: start(),
    }
}

pub fn person(name: &str) -> Actor {
    Actor {
        name: name.to_owned(),
        is_admin: false,
    }
}

pub fn admin(name: &str) -> Actor {
    Actor {
        name: name.to_owned(),
        is_admin: true,
    }
}

/// A segment whose proofs count at once.
pub fn policy() -> SegmentPolicy {
    SegmentPolicy {
        settle_s: 0,
        ..SegmentPolicy::default()
    }
}
