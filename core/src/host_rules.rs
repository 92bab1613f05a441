//! The rules for what an operator says of a host.

use std::collections::BTreeMap;

use crate::method::check_parameters;
use crate::{FencingState, HostState, Parameters, Problems, Refusal, validate_name};

/// The most methods that a host may give parameters for: as many as one task can have (8 in each of 9 levels).
const MAX_METHODS: usize = 72;

/// Checks a host's name, its zone, its type and what it gives to the parameters of methods (by method name).
///
/// # Errors
/// Every fault that was found, by field: a name that is not one, a secret in plain text, a control character, too many
/// entries. Whether the methods exist and the merged parameters suit their drivers shows when a plan is resolved.
pub fn validate_host(
    name: &str,
    zone: &str,
    host_type: Option<&str>,
    parameters: &BTreeMap<String, Parameters>,
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let named = [("name", Some(name)), ("zone", Some(zone)), ("type", host_type)];
    for (field, value) in named {
        if let Some(Err(problem)) = value.map(|value| validate_name(field, value)) {
            problems.0.push(problem);
        }
    }
    check_host_parameters(parameters, &mut problems);
    problems.into_result()
}

/// Whether a host may be removed: nothing is remembered for it that something outside depends on.
///
/// # Errors
/// A live operation, FENCED, or something that a stopped fence has taken and not given back.
pub fn may_remove(state: &HostState) -> Result<(), Refusal> {
    if let Some(live) = state.operation.as_ref().filter(|o| o.status.is_live()) {
        return Err(Refusal::OperationLive {
            kind: live.kind,
            id: live.id,
            status: live.status,
        });
    }
    if state.host.fencing_state == FencingState::Fenced {
        return Err(Refusal::HostState("FENCED; rejoin it before it is removed"));
    }
    if !state.host.standing.is_empty() {
        return Err(Refusal::HostState(
            "partly fenced by an operation that was stopped; rejoin it before it is removed",
        ));
    }
    Ok(())
}

fn check_host_parameters(parameters: &BTreeMap<String, Parameters>, problems: &mut Problems) {
    if parameters.len() > MAX_METHODS {
        problems.add(
            "parameters",
            format!(
                "names {} methods; at most {MAX_METHODS} are allowed",
                parameters.len()
            ),
        );
    }
    for (method, values) in parameters {
        match validate_name("parameters", method) {
            Ok(()) => check_parameters(&format!("parameters.{method}"), values, problems),
            Err(problem) => problems.0.push(problem),
        }
    }
}
