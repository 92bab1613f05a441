//! OpenStack.

mod beyond;
mod cinder;
mod cloud;
mod faults;
mod host;
mod ironic;
mod neutron;
mod nova;
mod platform;
mod preflight;
mod rights;
mod settings;
mod steps;
mod time;

pub use beyond::{
    Attachment, AttachmentStatus, ComputeService, Evacuation, EvacuationStatus, Port, PortChange,
    PowerTarget, Server, ServerAction, ServerVolume, VmState, Volume, with_remains,
};
pub use cinder::{CINDER, HeldVolumes, Trust};
pub use cloud::Cloud;
pub use host::{Fenced, HostOf, ReadBack};
pub use ironic::{IRONIC, NodePower};
pub use neutron::NEUTRON;
pub use nova::{GateProbe, NovaVersions};
pub use platform::Nova;
pub use rights::FailedCall;
pub use settings::CloudSettings;
