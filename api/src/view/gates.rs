//! Gates.

use ringfence_core::{Gate, Gates};
use serde::Serialize;
use utoipa::ToSchema;

/// Both gates.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GatesView {
    /// May workloads be scheduled here?
    pub schedule: GateView,
    /// May this host's workloads be started elsewhere?
    pub evacuate: GateView,
    /// The generation that the answers hold for.
    pub generation: u32,
}

/// One gate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GateView {
    pub allowed: bool,
    pub reason: String,
}

impl From<Gates> for GatesView {
    fn from(gates: Gates) -> Self {
        Self {
            schedule: gates.schedule.into(),
            evacuate: gates.evacuate.into(),
            generation: gates.generation.0,
        }
    }
}

impl From<Gate> for GateView {
    fn from(gate: Gate) -> Self {
        Self {
            allowed: gate.allowed,
            reason: gate.reason,
        }
    }
}
