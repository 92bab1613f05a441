//! Requests that the crate `openstack` lacks, made in its session.
//!
//! The crate gives the session: Keystone's tokens, the catalogue, the versions that a service has. Everything that Nova, Cinder, Neutron,
//! Ironic, Placement and Keystone are asked is here, in types that hold what is needed and nothing more. Each file says
//! what the crate lacks; `docs/adr/0052-openstack-crate.md` says where.

mod actions;
mod agents;
mod attachments;
mod evacuations;
mod hypervisors;
mod listing;
mod nodes;
mod ports;
mod request;
mod roles;
mod server_volumes;
mod servers;
mod service;
mod services;
mod token;
mod volumes;

pub use actions::ServerAction;
pub use attachments::{Attachment, AttachmentStatus};
pub use evacuations::{Evacuation, EvacuationStatus, with_remains};
pub use nodes::{Node, PowerTarget};
pub use ports::{Port, PortChange};
pub use server_volumes::ServerVolume;
pub use servers::{Server, VmState};
pub use services::ComputeService;
pub use volumes::Volume;

pub(super) use service::{CINDER_API, NEUTRON_API, NOVA, NOVA_WITHOUT_UPTIME, VERSIONS, pick};
