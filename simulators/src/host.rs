//! Simulated hosts, and how others see them.

use std::collections::BTreeMap;

use ringfence_core::FailureState;
use serde::{Deserialize, Serialize};

use crate::{Fault, PortState};

/// What really goes on in a host that has power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// It runs and answers.
    #[default]
    Running,
    /// It runs and writes, and answers nobody.
    Hung,
    /// It has stopped, and writes nothing.
    Crashed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub condition: Condition,
    /// Counts the boots.
    pub boot: u64,
    /// Whether it had power when we looked last, to notice when it comes.
    pub powered: bool,
}

impl Host {
    pub fn new() -> Self {
        Self {
            condition: Condition::Running,
            boot: 1,
            powered: true,
        }
    }

    pub fn set_condition(&mut self, condition: Condition) {
        if self.condition == Condition::Crashed && condition != Condition::Crashed {
            self.boot += 1;
        }
        self.condition = condition;
    }

    /// Notices power that came or went. A host that gets power boots and runs.
    pub fn set_powered(&mut self, powered: bool) {
        if powered && !self.powered {
            self.boot += 1;
            self.condition = Condition::Running;
        }
        self.powered = powered;
    }
}

/// What a monitor sees of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeenHost {
    /// Its name.
    pub name: String,
    /// `UP` if it has power and answers, `UNREACHABLE` otherwise.
    pub failure_state: FailureState,
    /// Changes with every boot; only a host that answers tells it.
    pub boot_id: Option<String>,
}

/// Everything about a host, as no monitor could see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostView {
    /// What a monitor sees.
    #[serde(flatten)]
    pub seen: SeenHost,
    /// How often it has booted.
    pub boot: u64,
    /// Whether any device gives it power.
    pub powered: bool,
    /// What goes on in it, if it has power.
    pub condition: Condition,
    /// Whether it can still write: the truth that a FENCED is measured by.
    pub may_write: bool,
    /// Its devices, as `device/resource`.
    pub devices: BTreeMap<String, DeviceView>,
}

/// One resource of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceView {
    /// The truth.
    pub state: PortState,
    /// How it misbehaves.
    pub fault: Option<Fault>,
}
