//! Kubernetes.

mod beat;
mod cluster;
mod faults;
mod lead;
mod node_fences;
mod gates;
mod objects;
mod pod;
mod preflight;
mod rights;
mod settings;
mod sightings;
mod steps;
mod version;
mod watching;

pub use cluster::Cluster;
pub use lead::Lead;
pub use node_fences::NodeFences;
pub use gates::GateNames;
pub use pod::PodToEvict;
pub use settings::ClusterSettings;
