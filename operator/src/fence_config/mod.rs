//! How nodes are fenced, as objects of the cluster say it: ConfigMaps with steps, methods, templates and policies, Secrets with credentials,
//! and what nodes say of themselves.
//!
//! ConfigMaps and Secrets are read from Ringfence's own namespace. What is declared goes through the engine's public methods. What of it is
//! right is found out by a pure reading, which `ringfence doctor` uses as well.

mod asking;
mod checking;
mod cloud;
mod clouds;
mod configurations;
mod dumps;
mod examining;
mod method;
mod names;
mod policy;
mod properties;
mod reading;
mod segments;
mod serving;
mod sources;
mod steps;
mod telling;
#[cfg(test)]
mod tests;

pub(crate) use asking::{Asking, NodeObject, nodes, seen};
pub use examining::{ConfigFault, ConfigFinding, examine};
pub(crate) use names::is_own;
pub(crate) use serving::{Known, apply, serve, serve_segments};
