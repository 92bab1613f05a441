//! The gates that hold inside a cluster while every process of Ringfence is down.

mod text;

pub use text::GateNames;
