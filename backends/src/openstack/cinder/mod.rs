//! Cinder: who is connected to which volume.

mod attachments;
mod rights;
mod volumes;

pub use attachments::{Attachment, AttachmentStatus};
pub use volumes::Volume;

use osauth::services::ServiceType;
use osauth::{ServiceRequestBuilder, Session};

/// How errors call it.
const CINDER: &str = "cinder";
/// The version of the API: attachments are all there, and nothing later is needed.
const VERSION: &str = "volume 3.44";
const VERSION_HEADER: &str = "OpenStack-API-Version";

/// Cinder as catalogues name it. Its endpoint holds the project's id, which asking for versions would lose.
#[derive(Clone, Copy, Debug)]
struct Volumes;

impl ServiceType for Volumes {
    fn catalog_type(&self) -> &'static str {
        "volumev3"
    }

    fn version_discovery_supported(&self) -> bool {
        false
    }
}

type Request = ServiceRequestBuilder<Volumes>;

fn versioned(request: Request) -> Request {
    request.header(VERSION_HEADER, VERSION)
}

fn get(session: &Session, path: &[&str]) -> Request {
    versioned(session.get(Volumes, path))
}

fn post(session: &Session, path: &[&str]) -> Request {
    versioned(session.post(Volumes, path))
}

fn delete(session: &Session, path: &[&str]) -> Request {
    versioned(session.delete(Volumes, path))
}
