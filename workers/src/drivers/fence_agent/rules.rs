//! What no agent is believed in, whatever it prints.

use ringfence_core::{Parameters, Resource};

use super::metadata::Metadata;
use crate::WorkerError;

/// Agents whose "off" is not the host's.
const NO_PROOF: [(&str, &str); 8] = [
    (
        "fence_kdump",
        "says that the host is in its crash kernel, not that it is off",
    ),
    (
        "fence_crosslink",
        "says that a link is silent, not that the host is off",
    ),
    (
        "fence_heuristics_ping",
        "says that something answers a ping, not that the host is off",
    ),
    (
        "fence_ack_manual",
        "repeats what a person said; confirm the fence by hand instead",
    ),
    (
        "fence_sbd",
        "says that a message was left for the host, not that it is off; use a self-fencing timeout instead",
    ),
    (
        "fence_evacuate",
        "says that the host's compute service is down, not that the host is off",
    ),
    (
        "fence_compute",
        "says that the host's compute service is down, not that the host is off",
    ),
    (
        "fence_ringfence",
        "asks Ringfence itself, or confirms to it what was not done; it is for Pacemaker",
    ),
];

/// Why nothing that this agent says is a proof, if so.
pub(super) fn no_proof(agent: &str) -> Option<&'static str> {
    NO_PROOF
        .iter()
        .find(|(name, _)| *name == agent)
        .map(|(_, why)| *why)
}

/// What belongs to the task, and values with which an agent says what is not so. To an agent `-` in a name is `_`.
pub(super) fn refusal(name: &str, value: &str) -> Option<&'static str> {
    let is_true = matches!(value.to_ascii_lowercase().as_str(), "1" | "yes" | "on" | "true");
    match name.replace('-', "_").as_str() {
        "action" | "option" => Some("must not be given; the task decides what the agent does"),
        "method" if value.eq_ignore_ascii_case("cycle") => {
            Some("is \"cycle\", which never verifies that power went off; onoff is allowed")
        }
        // fence_azure_arm reads the network first, and the machine only where the network is open.
        "network_fencing" if is_true => {
            Some("makes a machine that runs read as off once its network is closed; false is allowed")
        }
        "missing_as_off" if is_true => Some("makes a plug that does not exist read as off; false is allowed"),
        _ => None,
    }
}

pub(super) fn check_parameters(
    agent: &str,
    parameters: &Parameters,
    resource: Resource,
) -> Result<(), WorkerError> {
    if let Some(why) = no_proof(agent) {
        return Err(WorkerError::refused(format!("{agent} {why}")));
    }
    if matches!(
        resource,
        Resource::Workloads | Resource::Query | Resource::Heartbeat
    ) {
        let resource = resource.as_str();
        return Err(WorkerError::refused(format!(
            "driver fence-agent cannot act on {resource}"
        )));
    }
    for (name, value) in parameters {
        if let Some(why) = refusal(name, value) {
            return Err(WorkerError::refused(format!("parameter {name} {why}")));
        }
    }
    Ok(())
}

/// What an agent must be able to do for what it is used for, said of the agent.
pub(super) fn shortcomings(metadata: &Metadata, resource: Resource) -> Vec<String> {
    let mut found = Vec::new();
    for action in ["status", "off", "on"]
        .into_iter()
        .filter(|action| metadata.action(action).is_none())
    {
        found.push(format!("has no action {action}, which Ringfence needs"));
    }
    if resource == Resource::Power && metadata.is_fabric() {
        found.push(
            "cuts a host off from a fabric and does not act on its power; use it for storage or network"
                .to_owned(),
        );
    }
    found
}

pub(super) fn check_metadata(
    agent: &str,
    metadata: &Metadata,
    resource: Resource,
) -> Result<(), WorkerError> {
    match shortcomings(metadata, resource).first() {
        Some(why) => Err(WorkerError::refused(format!("{agent} {why}"))),
        None => Ok(()),
    }
}
