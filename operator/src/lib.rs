//! The doors of a Kubernetes cluster to the engine: objects that ask for a fence, and objects and Events that show one.
//!
//! A scheduler hook asks the clusters through this room too.
//!
//! The room holds watches and no rules. `core` decides, and `engine` writes: a request of an object goes through the engine's public
//! methods, as a request to the API does. What an object shows is read from the database, and never from the object.

mod cluster_lookup;
mod condition;
mod definitions;
mod door;
mod error;
mod events;
mod fence_config;
mod health_check_lease;
mod key;
mod marks;
mod node_fence;
mod operator;
mod queue;
mod refusal;
mod remediation;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod schema_fields;
mod session;
mod shown_operation;
mod taking_back;
mod text;

pub use cluster_lookup::HookClusters;
pub use definitions::definitions;
pub use error::OperatorError;
pub use fence_config::{ConfigFault, ConfigFinding, examine as examine_fence_config};
pub use operator::Operator;
