//! Refusals of the engine, as conditions name them.

use ringfence_core::error_chain;
use ringfence_engine::EngineError;

/// Why something is not done: a word for programs, and what to tell people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub reason: String,
    pub message: String,
}

impl Why {
    pub fn new(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}

/// What a refusal says; an error that is no refusal stays one, and the request is made again.
pub(crate) fn told(error: EngineError) -> Result<Why, EngineError> {
    let reason = match &error {
        EngineError::Refused(refusal) => camel_case(refusal.code()),
        EngineError::Invalid(_) => "Invalid".to_owned(),
        EngineError::PlanMissing { .. } => "PlanMissing".to_owned(),
        EngineError::PlanBroken { .. } => "PlanBroken".to_owned(),
        EngineError::NotFound { .. } => "HostUnknown".to_owned(),
        _ => return Err(error),
    };
    let message = error_chain(&error);
    Ok(Why { reason, message })
}

/// `host.not_up` is `HostNotUp`.
fn camel_case(code: &str) -> String {
    let words = code.split(['.', '_']);
    words
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ringfence_core::{FailureState, Refusal};

    use super::*;

    #[test]
    fn the_code_of_a_refusal_is_the_reason_of_a_condition() {
        let why = told(EngineError::Refused(Refusal::NotUp(FailureState::Unknown))).unwrap();
        assert_eq!(why, Why::new("HostNotUp", "the host is UNKNOWN, not UP"));
    }

    #[test]
    fn a_fault_is_no_refusal() {
        assert!(told(EngineError::NoWrites).is_err());
    }
}
