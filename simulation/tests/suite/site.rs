//! A small site, and stories in a few words.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{
    FailureState, FencingKind, HostId, Level, Method, MethodId, MethodTimes, Plan, PlanId, PlanScope,
    PlanStage, Resource, Segment, SegmentId, SegmentPolicy, TaskSpec, Timestamp, default_sufficient_sets,
};
use ringfence_simulation::{
    Assumptions, Happening, HostFacts, HostOutcome, Outcome, Site, Story, What, simulate,
};
use serde_json::{Value, json};
use uuid::Uuid;

pub fn begin() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

pub fn segment_id() -> SegmentId {
    SegmentId(Uuid::from_u128(0xa))
}

pub fn host_id(nth: u128) -> HostId {
    HostId(Uuid::from_u128(0x100 + nth))
}

/// A policy with these settings for fences, and the rest as given.
pub fn policy(fencing: Value, rest: Value) -> SegmentPolicy {
    let mut all =
        json!({ "fencing": { "automatic": true, "after_s": 30, "at_most": 100, "at_most_percent": 100 } });
    let merge = |into: &mut Value, from: Value| {
        into.as_object_mut()
            .unwrap()
            .extend(from.as_object().unwrap().clone());
    };
    merge(&mut all["fencing"], fencing);
    merge(&mut all, rest);
    serde_json::from_value(all).unwrap()
}

fn method(name: &str) -> Method {
    Method {
        id: MethodId(Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())),
        name: name.to_owned(),
        resource: Resource::Power,
        driver: "simulated".to_owned(),
        parameters: BTreeMap::from([("device".to_owned(), format!("${{host.name}}-{name}"))]),
        secrets: BTreeMap::new(),
        zone: None,
        times: MethodTimes {
            retries: 1,
            ..MethodTimes::default()
        },
        revision: 1,
        created_at: begin(),
        updated_at: begin(),
    }
}

/// Hosts h1, h2, ... that answer, each with a BMC, and a second way to its power.
pub fn site(hosts: u128, policy: SegmentPolicy) -> Site {
    let mut site = Site::default();
    site.copy.segments.push(Segment {
        id: segment_id(),
        name: "rack".to_owned(),
        description: String::new(),
        policy,
        revision: 1,
        created_at: begin(),
        updated_at: begin(),
    });
    site.copy.methods = vec![method("bmc"), method("pdu")];
    let level = |level, name: &str| Level {
        level,
        methods: vec![name.to_owned()],
    };
    let task = TaskSpec {
        kind: FencingKind::PowerOff,
        levels: vec![level(1, "bmc"), level(2, "pdu")],
    };
    site.copy.plans.push(Plan {
        id: PlanId(Uuid::from_u128(0xb)),
        name: "power".to_owned(),
        scope: PlanScope::Default,
        stages: vec![PlanStage {
            delay_s: 0,
            tasks: vec![task],
        }],
        sufficient_sets: default_sufficient_sets(),
        revision: 1,
        created_at: begin(),
        updated_at: begin(),
    });
    for nth in 1..=hosts {
        site.add(facts(nth));
    }
    site
}

pub fn facts(nth: u128) -> HostFacts {
    HostFacts::new(
        host_id(nth),
        &format!("h{nth}"),
        segment_id(),
        begin() - TimeDelta::days(30),
    )
}

/// What happens to host h`nth` after so many seconds.
pub fn then(seconds: i64, nth: u128, what: What) -> Happening {
    Happening {
        after: TimeDelta::seconds(seconds),
        host_id: host_id(nth),
        what,
    }
}

pub fn silent(seconds: i64, nth: u128) -> Happening {
    then(seconds, nth, What::Seen(FailureState::Unreachable))
}

pub fn back(seconds: i64, nth: u128) -> Happening {
    then(seconds, nth, What::Seen(FailureState::Up))
}

pub async fn simulated(
    site: &Site,
    minutes: i64,
    happenings: Vec<Happening>,
    assumptions: Assumptions,
) -> Outcome {
    let story = Story {
        begins_at: begin(),
        lasts: TimeDelta::minutes(minutes),
        happenings,
    };
    simulate(site, &story, assumptions, ringfence_workers::catalogue())
        .await
        .unwrap()
}

pub fn of<'a>(outcome: &'a Outcome, host: &str) -> &'a HostOutcome {
    let found = outcome.hosts.iter().find(|known| known.host == host);
    found.unwrap_or_else(|| panic!("nothing happened to {host}: {outcome:#?}"))
}

/// Seconds since the beginning.
pub fn s(at: Timestamp) -> i64 {
    (at - begin()).num_seconds()
}
