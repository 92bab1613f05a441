//! What a request to fence asks of the rules, and what is told of their refusal: a dry run asks for it too.

use ringfence_core::{FrozenPlan, Input, OperationId, Refusal};

use crate::ids::new_id;
use crate::{Context, EngineError};

/// A request to fence a host.
pub(crate) struct FenceRequest {
    pub input: Input,
    pub fault: PlanFault,
}

/// What is wrong with the host's plan, if anything is.
pub(crate) struct PlanFault(Option<EngineError>);

impl FenceRequest {
    /// By a plan that can be carried out, or with the reason why there is none.
    pub fn new(plan: Result<FrozenPlan, EngineError>, reason: &str, by: &Context) -> Self {
        let (plan, fault) = match plan {
            Ok(plan) => (Some(plan), None),
            Err(fault) => (None, Some(fault)),
        };
        let input = Input::Fence {
            operation_id: OperationId(new_id()),
            plan,
            reason: reason.to_owned(),
            actor: by.actor(),
            heeds_safeguards: by.heeds_safeguards,
        };
        Self {
            input,
            fault: PlanFault(fault),
        }
    }
}

impl PlanFault {
    /// Who asks for what is so already, or is under way, does not need to hear what is wrong with the plan.
    pub fn told<T>(self, answer: Result<T, EngineError>) -> Result<T, EngineError> {
        match (answer, self.0) {
            (Err(EngineError::Refused(Refusal::PlanMissing)), Some(fault)) => Err(fault),
            (answer, _) => answer,
        }
    }
}
