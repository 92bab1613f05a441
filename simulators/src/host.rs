//! Simulated hosts, and what monitors see of them.

use std::collections::BTreeMap;

use ringfence_core::FailureState;
use serde::{Deserialize, Serialize};

use crate::{Fault, PortState};

/// The condition of a host that has power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The host runs and answers.
    #[default]
    Running,
    /// The host runs and writes, and answers no request.
    Hung,
    /// The host has stopped, and writes nothing.
    Crashed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub condition: Condition,
    /// The number of boots.
    pub boot: u64,
    /// Whether the host had power at the last look.
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

    /// Records whether the host has power. A host that gets power boots and runs.
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
    /// The host's name.
    pub name: String,
    /// `UP` if it has power and answers, `UNREACHABLE` otherwise.
    pub failure_state: FailureState,
    /// The boot's id, which changes with every boot; only a host that answers has one.
    pub boot_id: Option<String>,
}

/// Everything about a host, also what no monitor can see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostView {
    /// What a monitor sees.
    #[serde(flatten)]
    pub seen: SeenHost,
    /// The number of the boot.
    pub boot: u64,
    /// Whether any device gives it power.
    pub powered: bool,
    /// The condition of the host, if it has power.
    pub condition: Condition,
    /// Whether the host can still write: the judge of a false FENCED.
    pub may_write: bool,
    /// The host's devices, as `device/resource`.
    pub devices: BTreeMap<String, DeviceView>,
}

/// One resource of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceView {
    /// The real state.
    pub state: PortState,
    /// The fault.
    pub fault: Option<Fault>,
}
