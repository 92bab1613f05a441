//! OpenStack.

mod cinder;
mod cloud;
mod ironic;
mod listing;
mod neutron;
mod nova;
mod rights;
mod settings;
mod time;
mod token;
mod versions;

pub use cinder::{Attachment, AttachmentStatus, Volume};
pub use cloud::Cloud;
pub use ironic::{Node, PowerTarget};
pub use neutron::{Port, PortChange};
pub use nova::{
    ComputeService, Evacuation, EvacuationStatus, NovaVersions, Server, ServerAction, ServerVolume, VmState,
    with_remains,
};
pub use rights::FailedCall;
pub use settings::CloudSettings;
