//! Nova: compute services, servers with their volumes, and evacuations.

mod actions;
mod evacuations;
mod hypervisors;
mod rights;
mod servers;
mod services;
mod volumes;

pub use actions::ServerAction;
pub use evacuations::{Evacuation, EvacuationStatus, with_remains};
pub use rights::{GateProbe, NovaVersions};
pub use servers::{Server, VmState};
pub use services::ComputeService;
pub use volumes::ServerVolume;

use osauth::services::COMPUTE;
use osauth::{ApiVersion, Error, ServiceRequestBuilder, Session};

use super::versions::{Range, header};

/// How errors call it.
const NOVA: &str = "nova";
const VERSION_HEADER: &str = "OpenStack-API-Version";
/// Before 2.68 an evacuation could be forced past the scheduler. Up to 2.94 an evacuated server is started again if it ran; from 2.95 on
/// it stays stopped.
pub(super) const VERSIONS: Range = Range {
    needs: ApiVersion(2, 68),
    wants: ApiVersion(2, 94),
};
/// For the volumes of a server: from 2.89 on Nova tells the ids of their attachments.
const WITH_ATTACHMENTS: Range = Range {
    needs: ApiVersion(2, 89),
    wants: ApiVersion(2, 94),
};
/// For lists of hypervisors: from 2.88 on Nova asks every host in them for its uptime, and waits a minute for one that is dead.
const WITHOUT_UPTIME: Range = Range {
    needs: ApiVersion(2, 53),
    wants: ApiVersion(2, 87),
};

type Request = ServiceRequestBuilder<osauth::services::ComputeService>;

async fn versioned(session: &Session, request: Request, range: Range) -> Result<Request, Error> {
    Ok(request.header(VERSION_HEADER, header(session, COMPUTE, range).await?))
}

async fn get(session: &Session, path: &[&str]) -> Result<Request, Error> {
    versioned(session, session.get(COMPUTE, path), VERSIONS).await
}

async fn put(session: &Session, path: &[&str]) -> Result<Request, Error> {
    versioned(session, session.put(COMPUTE, path), VERSIONS).await
}

async fn post(session: &Session, path: &[&str]) -> Result<Request, Error> {
    versioned(session, session.post(COMPUTE, path), VERSIONS).await
}

async fn delete(session: &Session, path: &[&str]) -> Result<Request, Error> {
    versioned(session, session.delete(COMPUTE, path), VERSIONS).await
}
