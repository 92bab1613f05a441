//! What the API server was told of one node, as it has written it down itself: by whom, when and in which order.

use chrono::{DateTime, Utc};
use ringfence_lab::AuditedCall;
use serde_json::Value;
use tokio::task::block_in_place;

use super::plant::Plant;

pub const FENCED: &str = "ringfence.io/fenced";
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The marks of a node after one change.
#[derive(Clone, Debug)]
pub struct MarksTold {
    version: u64,
    pub at: DateTime<Utc>,
    pub user: String,
    /// Cordoned, and with Ringfence's taint.
    pub is_isolated: bool,
    /// The value of the out-of-service taint.
    pub out_of_service: Option<String>,
}

/// A deletion that the API server has taken.
#[derive(Clone, Debug)]
pub struct Deletion {
    pub at: DateTime<Utc>,
    pub user: String,
    pub name: String,
    /// The object that was deleted.
    pub uid: String,
    /// The object that was meant, if the caller has said so.
    pub only_uid: Option<String>,
    pub is_forced: bool,
}

pub fn taint<'a>(node: &'a Value, key: &str) -> Option<&'a Value> {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.find(|taint| taint["key"] == key)
}

pub fn is_isolated(node: &Value) -> bool {
    node["spec"]["unschedulable"] == true && taint(node, FENCED).is_some()
}

/// The marks of a node after each change of them, the oldest first.
pub fn marks(plant: &Plant, node: &str) -> Vec<MarksTold> {
    let calls = calls(plant, |call| call.resource == "nodes" && call.name == node);
    let mut told: Vec<MarksTold> = calls.iter().map(marks_after).collect();
    told.sort_by_key(|marks| marks.version);
    told
}

fn marks_after(call: &AuditedCall) -> MarksTold {
    let node = &call.response;
    let value = |taint: &Value| taint["value"].as_str().unwrap_or_default().to_owned();
    MarksTold {
        version: node["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap(),
        at: call.at.parse().unwrap(),
        user: call.user.clone(),
        is_isolated: is_isolated(node),
        out_of_service: taint(node, OUT_OF_SERVICE).map(value),
    }
}

/// The deletions of objects of this sort, the oldest first.
pub fn deletions(plant: &Plant, resource: &str) -> Vec<Deletion> {
    let calls = calls(plant, |call| call.resource == resource && call.verb == "delete");
    calls.into_iter().map(deletion).collect()
}

fn deletion(call: AuditedCall) -> Deletion {
    let (of_object, of_status) = (
        &call.response["metadata"]["uid"],
        &call.response["details"]["uid"],
    );
    let uid = of_object.as_str().or(of_status.as_str());
    let only_uid = call.request["preconditions"]["uid"].as_str();
    Deletion {
        at: call.at.parse().unwrap(),
        uid: uid.unwrap_or_default().to_owned(),
        only_uid: only_uid.map(str::to_owned),
        is_forced: call.request["gracePeriodSeconds"] == 0,
        user: call.user,
        name: call.name,
    }
}

fn calls(plant: &Plant, is_it: impl Fn(&AuditedCall) -> bool) -> Vec<AuditedCall> {
    let mut calls = block_in_place(|| plant.plane.audited().unwrap());
    calls.retain(|call| (200..300).contains(&call.code) && is_it(call));
    calls
}
