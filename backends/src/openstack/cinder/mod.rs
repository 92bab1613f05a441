//! Cinder: who is connected to which volume.

mod attachments;
mod cutting;
mod held;
mod note;
mod releasing;
mod rights;
mod volumes;

pub use attachments::{Attachment, AttachmentStatus};
pub use held::HeldVolumes;
pub(super) use releasing::release_reserves_of;
pub use volumes::Volume;

use osauth::services::ServiceType;
use osauth::{ServiceRequestBuilder, Session};
use ringfence_core::Parameters;

/// How errors and methods call it.
pub const CINDER: &str = "cinder";
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

/// What an operator vouches for.
#[derive(Debug)]
pub struct Trust<'a> {
    /// Backends that let a host write no more once it is disconnected.
    backends: Vec<&'a str>,
    /// Whether the disks of servers that are no volumes are on their host alone.
    local_disks: bool,
}

impl<'a> Trust<'a> {
    /// As the parameters of a method say.
    #[must_use]
    pub fn of(parameters: &'a Parameters) -> Self {
        let value = |name: &str| parameters.get(name).map_or("", String::as_str);
        let backends = value("trusted_backends").split(',').map(str::trim);
        Self {
            backends: backends.filter(|name| !name.is_empty()).collect(),
            local_disks: value("local_disks") == "true",
        }
    }
}
