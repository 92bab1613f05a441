//! Queries: what others outside Ringfence are asked about a fence of one host, and what they answer.

use serde::{Deserialize, Serialize};

use crate::{Cause, FailureState, HostId, Timestamp};

/// What those who are asked about a fence are told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The host's name.
    pub host: String,
    /// Its id.
    pub host_id: HostId,
    /// The name of its segment.
    pub segment: String,
    /// Its zone.
    pub zone: String,
    /// Why it would be fenced.
    pub cause: Cause,
    /// Its failure state.
    pub failure_state: FailureState,
    /// Since when that is so.
    pub failure_since: Option<Timestamp>,
    /// Other hosts by name that are FENCED or being fenced, in whichever segment.
    pub gone: Vec<String>,
}

/// What one of them answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether the fence may begin.
    pub is_allowed: bool,
    /// Why, in words, at most 500 characters.
    pub reason: String,
}
