//! OpenStack.

mod cinder;
mod cloud;
mod host;
mod ironic;
mod listing;
mod neutron;
mod nova;
mod platform;
mod preflight;
mod rights;
mod settings;
mod steps;
mod time;
mod token;
mod versions;

pub use cinder::{Attachment, AttachmentStatus, CINDER, HeldVolumes, Trust, Volume};
pub use cloud::Cloud;
pub use host::{Fenced, HostOf, ReadBack};
pub use ironic::{IRONIC, Node, NodePower, PowerTarget};
pub use neutron::{NEUTRON, Port, PortChange};
pub use nova::{
    ComputeService, Evacuation, EvacuationStatus, GateProbe, NovaVersions, Server, ServerAction,
    ServerVolume, VmState, with_remains,
};
pub use platform::Nova;
pub use rights::FailedCall;
pub use settings::CloudSettings;
