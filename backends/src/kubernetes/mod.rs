//! Kubernetes.

mod bare_metal;
mod beat;
mod cluster;
mod confirming;
mod definitions;
mod faults;
mod gates;
mod hosts;
mod lead;
mod network_fence;
mod node_fences;
mod objects;
mod pod;
mod preflight;
mod rights;
mod rook;
mod secrets;
mod settings;
mod sightings;
mod steps;
mod version;
mod volume_health;
mod watching;

pub use bare_metal::{BareMetalHost, BareMetalPower};
pub use cluster::Cluster;
pub use gates::{GateNames, WordGate, last_written};
pub use lead::Lead;
pub use network_fence::{FenceState, NetworkFenceReading, NetworkFencing};
pub use node_fences::NodeFences;
pub use secrets::FoundSecret;
pub use settings::{ClusterSettings, ClusterUses, VolumeSettings};
