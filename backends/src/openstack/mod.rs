//! OpenStack.

mod cloud;
mod nova;
mod settings;
mod time;

pub use cloud::Cloud;
pub use nova::{ComputeService, Evacuation, EvacuationStatus, Server, ServerAction, VmState, with_remains};
pub use settings::CloudSettings;
