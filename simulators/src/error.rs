//! Errors of the simulators.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use ringfence_core::{Problem, Resource};

use crate::PortState;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorError {
    /// No host has this name.
    #[error("there is no host {0:?}")]
    UnknownHost(String),
    /// No device has this name, or it does not act on this resource.
    #[error("there is no device {device:?} for {resource:?}")]
    UnknownDevice {
        /// The device's name.
        device: String,
        /// The resource of the request.
        resource: String,
    },
    /// A state that this resource cannot have.
    #[error("{resource} cannot be {state}", resource = resource.as_str(), state = state.as_str())]
    StateDoesNotFit {
        /// The resource.
        resource: Resource,
        /// The state.
        state: PortState,
    },
    /// A fault out of range.
    #[error("{0}")]
    Fault(String),
    /// A host or device that cannot be added.
    #[error("{0}")]
    Name(String),
    /// The simulators have no access control, so they stay on loopback.
    #[error("the simulators listen on loopback only, not on {0}")]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The state file cannot be read or written.
    #[error("cannot {verb} the simulators' state {path}", path = path.display())]
    StateFile {
        /// `read` or `write`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The state file has another content.
    #[error("{path} does not hold the simulators' state", path = path.display())]
    NotAState {
        /// The file.
        path: PathBuf,
        /// The problem.
        #[source]
        source: serde_json::Error,
    },
    /// The process ran out of threads, or is ending.
    #[error("the simulators are stopping")]
    Stopping,
}

impl From<Problem> for SimulatorError {
    fn from(problem: Problem) -> Self {
        Self::Name(problem.to_string())
    }
}
