//! Drivers that cut hosts off from their volumes.

mod cinder;

pub use cinder::Cinder;
