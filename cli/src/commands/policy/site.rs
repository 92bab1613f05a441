//! The copy of the state, from the API. A reader's token is enough.

use std::collections::{BTreeMap, HashMap, HashSet};

use ringfence_core::{
    Backend, Condition, ConditionAction, ConditionStatus, FailureState, FencingPolicy, Generation, HostId,
    Method, MethodId, MethodTimes, OperationId, Plan, PlanId, PlanScope, PlanStage, Proof, ProofKind,
    Resource, SecretReference, Segment, SegmentDraft, SegmentId, SufficientSet, Suspension, Timestamp,
    Undoing,
};
use ringfence_simulation::{HostFacts, Seen, Site};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use crate::client::view::{Host, Operation};
use crate::client::{Client, Request};
use crate::commands::segment;
use crate::error::CliError;

/// The most hosts of a copy.
const MAX_HOSTS: usize = 10_000;
/// The most segments, methods and plans of a copy, each.
const MAX_OTHERS: usize = 10_000;
/// Rows of a page.
const PAGE: &str = "1000";
/// A fence that is due for so long and has not begun does not begin.
const CERTAINLY_DUE_S: i64 = 60;

/// The copy, and what it leaves out that was there.
pub struct Copied {
    pub site: Site,
    pub notes: Vec<String>,
}

#[derive(Deserialize)]
struct SegmentRow {
    id: Uuid,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct MethodRow {
    id: Uuid,
    name: String,
    resource: Resource,
    driver: String,
    parameters: BTreeMap<String, String>,
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    zone: Option<String>,
    times: Value,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct PlanRow {
    id: Uuid,
    name: String,
    scope: PlanScope,
    stages: Vec<PlanStage>,
    sufficient_sets: Vec<SufficientSet>,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct Suspensions {
    everything: Option<Suspension>,
    segments: Vec<SuspendedSegment>,
}

#[derive(Deserialize)]
struct SuspendedSegment {
    id: Uuid,
    suspension: Suspension,
}

/// Reads all of it.
pub async fn copy(client: &Client, now: Timestamp) -> Result<Copied, CliError> {
    let mut site = Site::default();
    for row in all(client, "segments", MAX_OTHERS).await? {
        let draft = segment::as_it_is(&row)?;
        let SegmentRow { id, created_at } = read("segments", row)?;
        site.copy
            .segments
            .push(in_force(draft, SegmentId(id), created_at));
    }
    for row in all(client, "methods", MAX_OTHERS).await? {
        site.copy.methods.push(method(read("methods", row)?)?);
    }
    for row in all(client, "plans", MAX_OTHERS).await? {
        site.copy.plans.push(plan(read("plans", row)?));
    }
    let suspended: Suspensions = client.send(Request::get(&["suspensions"])).await?.view()?;
    site.copy.everything = suspended.everything;
    let of_segments = suspended.segments.into_iter();
    site.copy.suspensions = of_segments
        .map(|one| (SegmentId(one.id), one.suspension))
        .collect();
    let given_up = given_up(client).await?;
    let mut notes = Vec::new();
    hosts(client, now, &given_up, &mut site, &mut notes).await?;
    Ok(Copied { site, notes })
}

/// All rows of a collection.
async fn all(client: &Client, noun: &str, most: usize) -> Result<Vec<Value>, CliError> {
    let limit = (noun == "hosts").then(|| PAGE.to_owned());
    let all = client.collect(noun, &[("limit", limit)], most + 1).await?;
    let rows = all[noun].as_array().cloned().unwrap_or_default();
    if rows.len() > most {
        return Err(CliError::Usage(format!(
            "the service has more than {most} {noun}; a simulation copies at most {most}"
        )));
    }
    Ok(rows)
}

fn read<T: DeserializeOwned>(noun: &str, row: Value) -> Result<T, CliError> {
    serde_json::from_value(row).map_err(|error| CliError::Answer {
        url: format!("/{noun}"),
        why: error.to_string(),
    })
}

/// A segment of the copy: its evacuations do not begin by themselves, since workloads are not simulated.
pub fn in_force(draft: SegmentDraft, id: SegmentId, created_at: Timestamp) -> Segment {
    let SegmentDraft {
        name,
        description,
        mut policy,
    } = draft;
    policy.evacuation.automatic = false;
    Segment {
        id,
        name,
        description,
        policy,
        revision: 1,
        created_at,
        updated_at: created_at,
    }
}

fn method(row: MethodRow) -> Result<Method, CliError> {
    let times: MethodTimes = read("methods", row.times)?;
    let secrets = row.secrets.into_iter();
    let secrets = secrets.map(|(name, text)| {
        let reference: SecretReference = read("methods", Value::String(text))?;
        Ok((name, reference))
    });
    Ok(Method {
        id: MethodId(row.id),
        name: row.name,
        resource: row.resource,
        driver: row.driver,
        parameters: row.parameters,
        secrets: secrets.collect::<Result<_, CliError>>()?,
        zone: row.zone,
        times,
        revision: 1,
        created_at: row.created_at,
        updated_at: row.created_at,
    })
}

fn plan(row: PlanRow) -> Plan {
    Plan {
        id: PlanId(row.id),
        name: row.name,
        scope: row.scope,
        stages: row.stages,
        sufficient_sets: row.sufficient_sets,
        revision: 1,
        created_at: row.created_at,
        updated_at: row.created_at,
    }
}

/// Hosts by id whose fence waits for an operator because its devices failed.
async fn given_up(client: &Client) -> Result<HashSet<String>, CliError> {
    let query = [
        ("status", Some("needs_operator".to_owned())),
        ("kind", Some("fence".to_owned())),
        ("limit", Some(PAGE.to_owned())),
    ];
    let found = client.collect("operations", &query, MAX_HOSTS).await?;
    let operations: Vec<Operation> = crate::commands::session::views(&found, "operations")?;
    let failed = operations.into_iter().filter(|live| !live.is_held_by_brake);
    Ok(failed.map(|live| live.host_id).collect())
}

async fn hosts(
    client: &Client,
    now: Timestamp,
    given_up: &HashSet<String>,
    site: &mut Site,
    notes: &mut Vec<String>,
) -> Result<(), CliError> {
    let mut unreadable = 0;
    let segments: HashMap<String, (SegmentId, FencingPolicy)> = site
        .copy
        .segments
        .iter()
        .map(|segment| (segment.name.clone(), (segment.id, segment.policy.fencing.clone())))
        .collect();
    let (mut moving, mut waiting) = (0_usize, 0_usize);
    for row in all(client, "hosts", MAX_HOSTS).await? {
        let host: Host = read("hosts", row)?;
        // Added since the segments were read, or moved into one that was added since.
        let Some((segment_id, policy)) = segments.get(&host.segment) else {
            unreadable += 1;
            continue;
        };
        let live = host
            .operation
            .as_ref()
            .map(|live| (live.kind.as_str(), live.status.as_str()));
        let is_given_up = given_up.contains(&host.id);
        let mut facts = facts(&host, *segment_id)?;
        facts.is_silence_answered = is_given_up || is_answered(&facts, policy, live, now);
        match live {
            Some(("fence", "running")) if facts.fenced.is_none() => {
                site.being_fenced.insert(facts.id);
            }
            Some(("rejoin" | "evacuation", _)) => moving += 1,
            _ => {}
        }
        waiting += usize::from(is_given_up);
        site.add(facts);
    }
    let mut note = |count: usize, what: &str| {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    };
    note(site.being_fenced.len(), "fences that run begin anew in the copy");
    note(
        moving,
        "rejoins and evacuations that run are left out of the copy",
    );
    note(
        waiting,
        "fences that wait for an operator after their devices failed are left out of the copy: their hosts stay silent",
    );
    note(
        unreadable,
        "hosts were added or moved while the state was read, and are left out of the copy",
    );
    Ok(())
}

/// Whether the host would have been fenced by now if it were to be.
fn is_answered(
    facts: &HostFacts,
    policy: &FencingPolicy,
    live: Option<(&str, &str)>,
    now: Timestamp,
) -> bool {
    let due_s = i64::from(policy.after_s) + CERTAINLY_DUE_S;
    let is_long = facts
        .seen
        .since
        .is_some_and(|since| (now - since).num_seconds() > due_s);
    let is_silent = facts.seen.state == FailureState::Unreachable;
    is_silent && policy.automatic && is_long && live.is_none()
}

fn facts(host: &Host, segment_id: SegmentId) -> Result<HostFacts, CliError> {
    let unknown = |what: &str| CliError::Answer {
        url: "/hosts".to_owned(),
        why: format!("host {:?} has {what} that this program does not know", host.name),
    };
    let id = Uuid::parse_str(&host.id).map_err(|_| unknown("an id"))?;
    let state = FailureState::from_word(&host.failure_state).ok_or_else(|| unknown("a failure state"))?;
    let backend = Backend::from_word(&host.backend).ok_or_else(|| unknown("a backend"))?;
    let generation = Generation(host.generation);
    let proofs: Option<Vec<Proof>> = host.proofs.iter().map(|known| proof(known, generation)).collect();
    let proofs = proofs.ok_or_else(|| unknown("a proof"))?;
    let conditions: Option<Vec<_>> = host.conditions.iter().map(condition).collect();
    let suspension = host.suspension.as_ref().map(|known| Suspension {
        since: known.since,
        until: known.until,
        by: known.by.clone(),
        reason: known.reason.clone(),
    });
    let fenced_at = host.fenced_at.filter(|_| host.is_fenced() && !proofs.is_empty());
    Ok(HostFacts {
        backend,
        cloud: host.cloud.clone(),
        known_as: host.known_as.clone(),
        host_type: host.host_type.clone(),
        zone: host.zone.clone(),
        labels: host.labels.clone(),
        parameters: host.parameters.clone(),
        generation,
        fenced: fenced_at.map(|at| (at, proofs)),
        suspension,
        quarantined_at: host.quarantined_at,
        seen: Seen {
            state,
            since: host.failure_since.or(host.failure_observed_at),
            needs_boot: host.needs_boot,
            sources: host.sources.iter().map(|source| source.name.clone()).collect(),
            conditions: conditions.ok_or_else(|| unknown("a condition"))?,
        },
        ..HostFacts::new(HostId(id), &host.name, segment_id, host.created_at)
    })
}

fn proof(known: &crate::client::view::Proof, generation: Generation) -> Option<Proof> {
    let at = known.observed_at?;
    let ended = known.ended.as_ref().map(|ended| ringfence_core::Ended {
        undoing: Undoing::SignOfLife {
            source: ended.by.clone(),
            observed_at: ended.at,
        },
        at: ended.at,
    });
    Some(Proof {
        kind: ProofKind::from_word(&known.kind)?,
        source: known.source.clone(),
        observed_at: at,
        read_at: at,
        claimed_at: None,
        settle_s: 0,
        operation_id: OperationId(known.operation_id.unwrap_or_else(Uuid::new_v4)),
        generation,
        detail: known.detail.clone(),
        ended,
    })
}

fn condition(known: &crate::client::view::Condition) -> Option<(String, String, Condition)> {
    let condition = Condition {
        status: ConditionStatus::from_word(&known.status)?,
        since: known.since,
        reason: known.reason.clone(),
        generation: None,
        action: known.action.as_deref().and_then(ConditionAction::from_word),
    };
    Some((known.source.clone(), known.name.clone(), condition))
}
