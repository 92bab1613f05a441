//! What came of a simulation.

use ringfence_core::{FailureState, FencingState, HostState, OperationStatus, Timestamp, fence_due};
use serde::Serialize;
use serde_json::Value;

use crate::Period;

/// What came of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// When the story began.
    pub began_at: Timestamp,
    /// Until when it was followed.
    pub ended_at: Timestamp,
    /// Every host to which something happened, by name.
    pub hosts: Vec<HostOutcome>,
    /// What happened, in order.
    pub timeline: Vec<Entry>,
}

/// What came of one host.
#[derive(Clone, Debug, Serialize)]
pub struct HostOutcome {
    /// Its name.
    pub host: String,
    /// Its segment's name.
    pub segment: String,
    /// When it first fell silent in the story.
    pub silent_at: Option<Timestamp>,
    /// When it became FENCED, each time.
    pub fenced_at: Vec<Timestamp>,
    /// For what its operations waited, and how long.
    pub waits: Vec<Period>,
    /// How it stands in the end.
    pub end: End,
}

/// How a host stands when a simulation ends.
#[derive(Clone, Debug, Serialize)]
pub struct End {
    /// In a word.
    pub word: Word,
    /// What its sources see.
    #[serde(serialize_with = "in_a_word")]
    pub failure_state: FailureState,
    /// What has been proven.
    #[serde(serialize_with = "proven")]
    pub fencing_state: FencingState,
    /// Why, in words.
    pub detail: String,
}

/// How a host stands, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It is FENCED.
    Fenced,
    /// A safeguard holds its operation.
    Held,
    /// An operation of it waits for an operator.
    NeedsOperator,
    /// An operation of it runs.
    Running,
    /// It was not fenced, or was taken back.
    Unfenced,
}

impl Word {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fenced => "FENCED",
            Self::Held => "held",
            Self::NeedsOperator => "needs_operator",
            Self::Running => "running",
            Self::Unfenced => "UNFENCED",
        }
    }
}

fn in_a_word<S: serde::Serializer>(state: &FailureState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

fn proven<S: serde::Serializer>(state: &FencingState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// The host.
    pub host: String,
    /// The type of the event that Ringfence would send.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What goes with it.
    pub data: Value,
}

/// How a host stands, and why.
pub(crate) fn end_of(state: &HostState, now: Timestamp) -> End {
    let host = &state.host;
    let live = state.operation.as_ref().filter(|live| live.status.is_live());
    let (word, detail) = match (live, &host.fence) {
        (Some(live), _) if live.status == OperationStatus::Held => (Word::Held, live.detail.clone()),
        (Some(live), _) if live.status == OperationStatus::NeedsOperator => {
            (Word::NeedsOperator, live.detail.clone())
        }
        (Some(live), None) => (Word::Running, format!("a {} runs", live.kind())),
        (_, Some(fence)) => {
            let proofs = fence
                .proofs
                .iter()
                .map(|proof| format!("{} by {}", proof.kind, proof.source));
            (Word::Fenced, proofs.collect::<Vec<_>>().join(", "))
        }
        (None, None) => (Word::Unfenced, why_unfenced(state, now)),
    };
    End {
        word,
        failure_state: host.failure_state,
        fencing_state: host.fencing_state(),
        detail,
    }
}

fn why_unfenced(state: &HostState, now: Timestamp) -> String {
    let host = &state.host;
    match host.failure_state {
        FailureState::Up => "it answers".to_owned(),
        FailureState::Unknown => "no source says whether it answers".to_owned(),
        FailureState::Unreachable if !state.policy.fencing.automatic => {
            "its segment fences no host by itself".to_owned()
        }
        FailureState::Unreachable => match fence_due(state) {
            Some(due) if due > now => format!("a fence would begin at {}", due.format("%FT%TZ")),
            Some(_) => "a fence is due, and is tried again".to_owned(),
            None => {
                "its silence was answered before: no fence begins by itself until it was seen UP".to_owned()
            }
        },
    }
}
