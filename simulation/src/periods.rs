//! How long each host's operation waited, and for what.

use ringfence_core::{HostState, Operation, OperationStatus, Timestamp};

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Safeguards hold it.
    Held,
    /// An operator: the storm brake has held it.
    StormBrake,
    /// An operator, for another reason.
    Operator,
}

/// A time for which an operation waited.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Period {
    /// For what.
    pub waits_for: Wait,
    /// The safeguards that held it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<&'static str>,
    /// Why, in words, as it was when this began.
    pub detail: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when; `None`: it waited still when the simulation ended.
    pub until: Option<Timestamp>,
}

impl Period {
    fn of(state: &HostState, now: Timestamp) -> Option<Self> {
        let live = state.operation.as_ref().filter(|live| live.status.is_live())?;
        let (waits_for, by) = match live.status {
            OperationStatus::Held => (Wait::Held, safeguards(live)),
            OperationStatus::NeedsOperator if live.is_held_by_brake() => (Wait::StormBrake, Vec::new()),
            OperationStatus::NeedsOperator => (Wait::Operator, Vec::new()),
            OperationStatus::Running | OperationStatus::Succeeded | OperationStatus::Cancelled => {
                return None;
            }
        };
        Some(Self {
            waits_for,
            by,
            detail: live.detail.clone(),
            since: now,
            until: None,
        })
    }

    fn goes_on_as(&self, other: &Self) -> bool {
        self.until.is_none() && self.waits_for == other.waits_for && self.by == other.by
    }
}

fn safeguards(live: &Operation) -> Vec<&'static str> {
    let held = live.held();
    let by = held.map(|held| held.by.as_slice()).unwrap_or_default();
    let mut by: Vec<&'static str> = by.iter().map(|ruling| ruling.safeguard.as_str()).collect();
    by.dedup();
    by
}

/// What was seen of one host's waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Periods(pub Vec<Period>);

impl Periods {
    /// Notes how the host stands; the new wait, if one began beside or after another.
    pub fn note(&mut self, state: &HostState, now: Timestamp) -> Option<Period> {
        let present = Period::of(state, now);
        let last = self.0.last_mut().filter(|last| last.until.is_none());
        let was_waiting = last.is_some();
        if let Some(last) = last {
            if present.as_ref().is_some_and(|present| last.goes_on_as(present)) {
                return None;
            }
            last.until = Some(now);
        }
        let present = present?;
        self.0.push(present.clone());
        was_waiting.then_some(present)
    }
}
