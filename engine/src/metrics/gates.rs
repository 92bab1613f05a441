//! The gates of platforms, counted by how they are. Platforms are not told apart: their names are a user's.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringfence_backends::{GateState, SeenGate};

use super::Words;
use super::behind::set;

#[derive(Default)]
pub(crate) struct PlatformGates {
    gates: Family<Words<2>, Gauge>,
    /// By platform.
    seen: Mutex<BTreeMap<String, Vec<SeenGate>>>,
}

impl PlatformGates {
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "platform_gates",
            "Gates within platforms that this process watches, by gate and by state (installed, missing, changed, not_available)",
            self.gates.clone(),
        );
    }

    /// What was seen of a platform; nothing if another process watches it.
    pub fn show(&self, platform: &str, gates: Vec<SeenGate>) {
        let mut seen = self.seen.lock();
        seen.insert(platform.to_owned(), gates);
        self.gates.clear();
        let mut counts: BTreeMap<(&'static str, &'static str), u64> = BTreeMap::new();
        for gate in seen.values().flatten() {
            for state in GateState::WORDS {
                *counts.entry((gate.name, state)).or_default() += u64::from(gate.state.word() == state);
            }
        }
        for ((gate, state), count) in counts {
            set(&self.gates, &[("gate", gate), ("state", state)], count);
        }
    }
}
