//! Nova: compute services, servers with their volumes, and evacuations.

mod evacuations;
mod hypervisors;
mod servers;
mod services;
mod volumes;

pub use evacuations::{Evacuation, EvacuationStatus, with_remains};
pub use servers::{Server, VmState};
pub use services::ComputeService;
pub use volumes::ServerVolume;

use osauth::services::COMPUTE;
use osauth::{ServiceRequestBuilder, Session};

/// How errors call it.
const NOVA: &str = "nova";
/// The version of the API. Up to 2.94 an evacuated server is started again if it ran; from 2.95 on it stays stopped.
const VERSION: &str = "compute 2.90";
const VERSION_HEADER: &str = "OpenStack-API-Version";

type Request = ServiceRequestBuilder<osauth::services::ComputeService>;

fn versioned(request: Request) -> Request {
    request.header(VERSION_HEADER, VERSION)
}

fn get(session: &Session, path: &[&str]) -> Request {
    versioned(session.get(COMPUTE, path))
}

fn put(session: &Session, path: &[&str]) -> Request {
    versioned(session.put(COMPUTE, path))
}

fn post(session: &Session, path: &[&str]) -> Request {
    versioned(session.post(COMPUTE, path))
}

fn delete(session: &Session, path: &[&str]) -> Request {
    versioned(session.delete(COMPUTE, path))
}
