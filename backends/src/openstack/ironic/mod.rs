//! Ironic: the power of nodes.

mod power;
mod rights;

pub use power::NodePower;

/// How errors and methods call it.
pub const IRONIC: &str = "ironic";
