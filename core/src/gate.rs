//! Gates: may workloads be scheduled here, and may this host's workloads be started elsewhere?

use serde::{Deserialize, Serialize};

use crate::{FailureState, FencingState, Generation, HostState, InFlight, OperationKind, Timestamp};

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Whether it is open.
    pub allowed: bool,
    /// Why, in words.
    pub reason: String,
}

/// Both answers, for one generation of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gates {
    /// May workloads be scheduled here?
    pub schedule: Gate,
    /// May this host's workloads be started elsewhere?
    pub evacuate: Gate,
    /// The generation that the answers hold for.
    pub generation: Generation,
}

/// The gates of a host, by S3.
#[must_use]
pub fn gates(state: &HostState, now: Timestamp) -> Gates {
    let gate = |verdict: Result<String, String>| match verdict {
        Ok(reason) => Gate {
            allowed: true,
            reason,
        },
        Err(reason) => Gate {
            allowed: false,
            reason,
        },
    };
    Gates {
        schedule: gate(schedule(state, now)),
        evacuate: gate(evacuate(state, now)),
        generation: state.host.generation,
    }
}

fn schedule(state: &HostState, now: Timestamp) -> Result<String, String> {
    let host = &state.host;
    if host.fencing_state == FencingState::Fenced {
        return Err("the host is FENCED".to_owned());
    }
    if host.failure_state != FailureState::Up {
        return Err(format!("the host is {}, not UP", host.failure_state));
    }
    if let Some(operation) = &state.operation {
        let started_workloads =
            operation.kind == OperationKind::Rejoin && host.generation == operation.generation;
        if !(started_workloads && is_taken_back(state)) {
            return Err(format!(
                "a {} of the host is {}",
                operation.kind, operation.status
            ));
        }
    }
    if let Some(f) = host
        .in_flight
        .iter()
        .find(|f| f.until > now && f.kind.is_fencing())
    {
        return Err(format!("a {} may still be running until {}", f.kind, f.until));
    }
    if host.is_cut_off() {
        return Err(
            "a fence that was stopped has left the host without storage or network; rejoin it".to_owned(),
        );
    }
    Ok("the host is UP and UNFENCED".to_owned())
}

/// Within a rejoin, UNFENCED with nothing left standing means that only its workloads are still being started.
fn is_taken_back(state: &HostState) -> bool {
    state.host.fencing_state == FencingState::Unfenced && !state.host.is_cut_off()
}

fn evacuate(state: &HostState, now: Timestamp) -> Result<String, String> {
    let host = &state.host;
    if host.fencing_state != FencingState::Fenced {
        return Err("the host is not FENCED".to_owned());
    }
    if !host.is_fence_current() {
        return Err(format!(
            "the host was FENCED at generation {}, and what began at generation {} may have undone it; fence it again",
            host.fenced_generation.unwrap_or_default(),
            host.generation
        ));
    }
    if host.proof_spent {
        return Err(
            "the host was seen UP after it had been proven to have stopped, so that it may run again; fence it again"
                .to_owned(),
        );
    }
    // The fence's own power.on is part of a reboot and comes after the proof; one of an older generation may come any time.
    let is_older = |f: &&InFlight| f.until > now && f.kind.is_undoing() && f.generation < host.generation;
    if let Some(f) = host.in_flight.iter().find(is_older) {
        return Err(format!(
            "a {} of generation {} may still be running until {}",
            f.kind, f.generation, f.until
        ));
    }
    if host.failure_state != FailureState::Unreachable {
        return Err(format!("the host is {}, not UNREACHABLE", host.failure_state));
    }
    Ok("the host is FENCED and UNREACHABLE".to_owned())
}
