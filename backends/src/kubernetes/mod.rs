//! Kubernetes.

mod bare_metal;
mod beat;
mod cluster;
mod faults;
mod gates;
mod lead;
mod node_fences;
mod objects;
mod pod;
mod preflight;
mod rights;
mod settings;
mod sightings;
mod steps;
mod version;
mod watching;

pub use bare_metal::{BareMetalHost, BareMetalPower};
pub use cluster::Cluster;
pub use gates::GateNames;
pub use lead::Lead;
pub use node_fences::NodeFences;
pub use pod::PodToEvict;
pub use settings::ClusterSettings;
