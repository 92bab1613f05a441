//! One resource of one device: a switch with a fault.

use chrono::TimeDelta;
use ringfence_core::{Resource, Timestamp};
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, FaultKind};

/// A state of a device, in commands and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum PortState {
    /// Gives power.
    On,
    /// Gives no power.
    Off,
    /// Cuts the host off.
    Fenced,
    /// Lets the host through.
    Unfenced,
}

ringfence_core::words!(PortState);

impl PortState {
    /// Whether the resource can have this state.
    #[must_use]
    pub fn fits(self, resource: Resource) -> bool {
        match resource {
            Resource::Power => matches!(self, Self::On | Self::Off),
            Resource::Storage | Resource::Network => matches!(self, Self::Fenced | Self::Unfenced),
            Resource::Workloads | Resource::Query | Resource::Heartbeat => false,
        }
    }

    /// Whether the state takes something from the host.
    #[must_use]
    pub fn takes_away(self) -> bool {
        matches!(self, Self::Off | Self::Fenced)
    }

    /// The state of a new device.
    pub(crate) fn initial(resource: Resource) -> Self {
        if resource == Resource::Power {
            Self::On
        } else {
            Self::Unfenced
        }
    }

    fn opposite(self) -> Self {
        match self {
            Self::On => Self::Off,
            Self::Off => Self::On,
            Self::Fenced => Self::Unfenced,
            Self::Unfenced => Self::Fenced,
        }
    }
}

/// A request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A reading of the state.
    Read,
    /// A command to change to a state.
    Command(PortState),
}

/// A device's reaction to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Obeys.
    Obey,
    /// Answers success and does nothing.
    Lie,
    /// Obeys after this number of milliseconds.
    ObeyAfter(u64),
    /// Never answers.
    Silence,
    /// Refuses.
    Refuse,
    /// Obeys, and undoes it after this number of milliseconds.
    TakeBackAfter(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Port {
    pub state: PortState,
    pub fault: Option<Fault>,
    /// When the state changes to its opposite by itself.
    pub turns_at: Option<Timestamp>,
    /// The state that is shown, if it is not the real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretended: Option<PortState>,
}

impl Port {
    pub fn new(resource: Resource) -> Self {
        Self {
            state: PortState::initial(resource),
            fault: None,
            turns_at: None,
            pretended: None,
        }
    }

    /// Reacts to one request. A fault that concerns the request fires.
    pub fn meet(&mut self, verb: Verb) -> Behaviour {
        let Some(fault) = &self.fault else {
            return Behaviour::Obey;
        };
        let behaviour = match (fault.kind, verb) {
            (FaultKind::Lie, Verb::Command(_)) => Behaviour::Lie,
            (FaultKind::Ghost, Verb::Command(state)) => {
                self.pretended = Some(state);
                Behaviour::Lie
            }
            (FaultKind::Flap, Verb::Command(state)) if state.takes_away() => {
                Behaviour::TakeBackAfter(fault.delay_ms)
            }
            (FaultKind::Lie | FaultKind::Flap | FaultKind::Ghost, Verb::Read | Verb::Command(_)) => {
                return Behaviour::Obey;
            }
            (FaultKind::Slow, _) => Behaviour::ObeyAfter(fault.delay_ms),
            (FaultKind::Silent, _) => Behaviour::Silence,
            (FaultKind::Refuse, _) => Behaviour::Refuse,
        };
        self.fault = self.fault.take().and_then(Fault::fired);
        behaviour
    }

    pub fn take_on(&mut self, state: PortState, turns_at: Option<Timestamp>) {
        self.state = state;
        self.turns_at = turns_at;
        self.pretended = None;
    }

    /// The state that a reading shows.
    pub fn shown(&self) -> PortState {
        self.pretended.unwrap_or(self.state)
    }

    /// Sets the fault, and shows the real state.
    pub fn set_fault(&mut self, fault: Option<Fault>) {
        self.fault = fault;
        self.pretended = None;
    }

    /// Does everything that is due by now.
    pub fn settle(&mut self, now: Timestamp) {
        if self.turns_at.is_some_and(|at| at <= now) {
            self.take_on(self.state.opposite(), None);
        }
    }
}

/// The time so many milliseconds after `now`, or the last possible time.
pub(crate) fn later(now: Timestamp, delay_ms: u64) -> Timestamp {
    i64::try_from(delay_ms)
        .ok()
        .and_then(TimeDelta::try_milliseconds)
        .and_then(|delay| now.checked_add_signed(delay))
        .unwrap_or(Timestamp::MAX_UTC)
}
