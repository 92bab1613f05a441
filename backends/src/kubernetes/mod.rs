//! Kubernetes.

mod bare_metal;
mod beat;
mod cluster;
mod faults;
mod objects;
mod preflight;
mod rights;
mod settings;
mod sightings;
mod steps;
mod version;
mod watching;

pub use bare_metal::{BareMetalHost, BareMetalPower};
pub use cluster::Cluster;
pub use settings::ClusterSettings;
