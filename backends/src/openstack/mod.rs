//! OpenStack.

mod cloud;
mod nova;
mod settings;
mod time;
mod versions;

pub use cloud::Cloud;
pub use nova::{
    ComputeService, Evacuation, EvacuationStatus, NovaVersions, Server, ServerAction, VmState, with_remains,
};
pub use settings::CloudSettings;
