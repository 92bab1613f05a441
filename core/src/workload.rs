//! Workloads: what a host's backend has placed on it, and what became of one that was moved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::words;

/// How a workload stands, in the eyes of its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum WorkloadState {
    /// It runs, or would if its host did.
    Running,
    /// Its owner has stopped it.
    Stopped,
    /// The backend has given it up.
    Failed,
    /// In a state in which the backend does not move it: paused, suspended, being resized.
    Held,
}

words!(WorkloadState);

/// One workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its id in its backend, at most 64 characters.
    pub id: String,
    /// Its name, for people, at most 255 characters.
    pub name: String,
    /// What makes another in its place, for people, at most 255 characters; `None` where the backend has no such thing, or it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How it stands.
    pub state: WorkloadState,
    /// Of its metadata, what the segment's policy asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// What became of a workload that was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MoveReport {
    /// The host that has it now, as the backend calls it; `None` while none has, or if it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How it stood there when it had arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_after: Option<WorkloadState>,
    /// The id under which the backend's log has the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Whether no other host could take it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_room: bool,
    /// Whether the backend was asked, has not answered, and shows nothing of it: it may yet carry the request out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
    /// The move that the backend is still at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// The platform's id of a move that ends no more, since the host that it goes to is dead. An engine sets it: what a worker says of it
    /// counts for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

/// A move that has not come to an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// The platform's id of it.
    pub id: String,
    /// The host that it goes to, as the backend calls it.
    pub to: String,
}

/// What a task on workloads has found out beside the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The workloads of the host, at most [`MAX_LISTED`] of them.
    Workloads(Vec<Workload>),
    /// What became of one.
    Move(MoveReport),
    /// The platform could not be asked for anything, or had no host that could take anything: nothing was begun.
    Away,
}

/// The most workloads that one listing names. What is beyond shows when those are gone.
pub const MAX_LISTED: usize = 256;
