//! Ironic: the power of nodes.

mod power;
mod rights;

pub use power::NodePower;

/// The name in errors and methods.
pub const IRONIC: &str = "ironic";
