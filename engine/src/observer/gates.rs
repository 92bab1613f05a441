//! The gates of a platform that hold while every process of Ringfence is down: a change of them is told.

use std::collections::BTreeMap;
use std::time::Duration;

use ringfence_backends::{GateState, Platform};
use tokio::time::Instant;

use crate::Engine;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(60);

/// What one engine knows of the gates of one platform.
#[derive(Default)]
pub(super) struct Gates {
    looked_at: Option<Instant>,
    known: BTreeMap<&'static str, GateState>,
}

impl Gates {
    /// Looks at them, where it is time.
    pub async fn look(&mut self, engine: &Engine, platform: &dyn Platform) {
        if self.looked_at.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.looked_at = Some(Instant::now());
        match platform.gates().await {
            Ok(gates) => {
                for gate in &gates {
                    let known = self.known.insert(gate.name, gate.state.clone());
                    tell(platform.name(), gate.name, known.as_ref(), &gate.state);
                }
                engine.0.metrics.platform_gates.show(platform.name(), gates);
            }
            Err(error) => {
                // What is not known is no number.
                engine.0.metrics.platform_gates.show(platform.name(), Vec::new());
                tracing::debug!(platform = platform.name(), %error, "the platform's gates cannot be looked at");
            }
        }
    }

    /// Another engine looks at them from now on.
    pub fn begin_anew(&mut self, engine: &Engine, platform: &dyn Platform) {
        if self.looked_at.take().is_some() {
            engine.0.metrics.platform_gates.show(platform.name(), Vec::new());
        }
    }
}

fn tell(platform: &str, gate: &str, known: Option<&GateState>, state: &GateState) {
    if known == Some(state) {
        return;
    }
    match state {
        GateState::Missing => tracing::warn!(
            platform,
            gate,
            "a gate is not installed in the platform and holds nothing; install it: docs/kubernetes-gates.md"
        ),
        GateState::Changed(what) => tracing::warn!(
            platform,
            gate,
            what,
            "a gate of the platform is not as it was shipped, and may hold less; install it again: docs/kubernetes-gates.md"
        ),
        GateState::Installed if known.is_some() => {
            tracing::info!(platform, gate, "the gate is installed and unchanged again");
        }
        GateState::Installed | GateState::NotAvailable => {}
    }
}
