//! The rules for what an operator says of a host.

use std::collections::BTreeMap;

use crate::kdump::check_addresses;
use crate::label::check_labels;
use crate::method::check_parameters;
use crate::{
    Backend, Host, HostState, KDUMP, Labels, Parameters, Problems, Refusal, Timestamp, validate_name,
    validate_zone,
};

/// The most methods that a host may give parameters for: as many as one task can have (8 in each of 9 levels).
const MAX_METHODS: usize = 72;

/// What an operator says of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostDescription<'a> {
    /// Its name.
    pub name: &'a str,
    /// From where its devices can be reached.
    pub zone: &'a str,
    /// The group of hosts that share a plan.
    pub host_type: Option<&'a str>,
    /// Where its workloads live.
    pub backend: Backend,
    /// In which cloud or cluster of the configuration that is.
    pub cloud: Option<&'a str>,
    /// What its backend calls it.
    pub known_as: Option<&'a str>,
    /// What an operator tells it apart by.
    pub labels: &'a Labels,
    /// What it gives to the parameters of methods, by method name.
    pub parameters: &'a BTreeMap<String, Parameters>,
}

/// Checks what an operator says of a host.
///
/// # Errors
/// Every fault that was found, by field: a name that is not one, a secret in plain text, a control character, too many
/// entries. Whether the methods exist and the merged parameters suit their drivers shows when a plan is resolved.
pub fn validate_host(host: &HostDescription<'_>) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let named = [
        ("name", Some(host.name)),
        ("type", host.host_type),
        ("cloud", host.cloud),
        ("known_as", host.known_as),
    ];
    if let Err(problem) = validate_zone("zone", host.zone) {
        problems.0.push(problem);
    }
    for (field, value) in named {
        if let Some(Err(problem)) = value.map(|value| validate_name(field, value)) {
            problems.0.push(problem);
        }
    }
    let says_where = [("cloud", host.cloud), ("known_as", host.known_as)];
    for (field, value) in says_where {
        if host.backend == Backend::None
            && let Some(value) = value
        {
            problems.add(
                field,
                format!("is {value:?}, but the host's backend is none; nova or kubernetes is needed with it"),
            );
        }
    }
    check_labels(host.labels, &mut problems);
    check_host_parameters(host.parameters, &mut problems);
    problems.into_result()
}

/// Whether a host may be removed: nothing is remembered for it that something outside depends on.
///
/// # Errors
/// A live operation, FENCED, applied fencing of a fence that was stopped, or an attempt that may still act on the host: another host of its name
/// would not know of what that does.
pub fn may_remove(state: &HostState, now: Timestamp) -> Result<(), Refusal> {
    if let Some(live) = state.operation.as_ref().filter(|o| o.status.is_live()) {
        return Err(Refusal::live(live));
    }
    if state.host.fence.is_some() {
        return Err(Refusal::HostState("FENCED; rejoin it before it is removed"));
    }
    if !state.host.applied.is_empty() {
        return Err(Refusal::HostState(
            "partly fenced by an operation that was stopped; rejoin it before it is removed",
        ));
    }
    if state.host.in_flight.iter().any(|acting| acting.until > now) {
        return Err(Refusal::HostState(
            "acted on by an attempt whose time is not over; remove it later",
        ));
    }
    Ok(())
}

/// Whether what makes a host the one that it is may be changed: its name, its backend, and how its devices are found. A proof, an
/// operation, and what was taken from a host speak of the machine that was meant then.
///
/// # Errors
/// The first field that would be another one while something rests on it.
pub fn may_change(state: &HostState, new: &Host) -> Result<(), Refusal> {
    let known = &state.host;
    let changes = [
        ("name", known.name != new.name),
        ("backend", known.backend != new.backend),
        ("cloud", known.cloud != new.cloud),
        ("known_as", known.known_as != new.known_as),
        ("zone", known.zone != new.zone),
        ("parameters", known.parameters != new.parameters),
    ];
    let Some((field, _)) = changes.into_iter().find(|(_, is_other)| *is_other) else {
        return Ok(());
    };
    match in_use(state) {
        Some(why) => Err(Refusal::IdentityInUse { field, why }),
        None => Ok(()),
    }
}

fn in_use(state: &HostState) -> Option<&'static str> {
    let host = &state.host;
    if host.fence.is_some() {
        return Some("FENCED");
    }
    if state.operation.as_ref().is_some_and(|o| o.status.is_live()) {
        return Some("in an operation");
    }
    if !host.applied.is_empty() {
        return Some("partly fenced");
    }
    (!host.in_flight.is_empty()).then_some("being acted on")
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
        if method == KDUMP {
            check_addresses(values, problems);
        }
        match validate_name("parameters", method) {
            Ok(()) => check_parameters(&format!("parameters.{method}"), values, problems),
            Err(problem) => problems.0.push(problem),
        }
    }
}
