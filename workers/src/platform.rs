//! Workload steps: a platform at work, and what is reported of it.

use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::{Platform, StepOrder, StepReport};
use ringfence_core::{Observation, ObservedState, Outcome, PlatformHost};

use crate::driver::{Clock, Report};
use crate::text::cut;

/// Asks one platform.
#[derive(Clone)]
pub(crate) struct PlatformDriver {
    platform: Arc<dyn Platform>,
    clock: Clock,
}

impl PlatformDriver {
    pub fn new(platform: &Arc<dyn Platform>, clock: &Clock) -> Self {
        Self {
            platform: Arc::clone(platform),
            clock: Arc::clone(clock),
        }
    }

    /// Whether a host is on this platform.
    pub fn has(&self, at: &PlatformHost) -> bool {
        self.platform.kind() == at.backend && self.platform.name() == at.platform
    }

    pub async fn carry_out(&self, order: StepOrder<'_>, budget: Duration) -> Report {
        let StepReport {
            outcome,
            detail,
            finding,
        } = self.platform.carry_out(order, budget).await;
        let detail = cut(&detail);
        if outcome != Outcome::Confirmed {
            return Report {
                outcome,
                observation: None,
                finding,
                detail,
            };
        }
        let observation = Observation {
            state: ObservedState::Done,
            detail,
            observed_at: (self.clock)(),
            after_ms: 0,
            before: None,
            proves: false,
        };
        Report {
            outcome,
            observation: Some(observation),
            finding,
            detail: String::new(),
        }
    }
}
