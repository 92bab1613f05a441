//! Simulated hosts and the devices that fence them, for tests and the demonstration.
//!
//! [`World`] is the truth: which host has power, which device misbehaves and how, and, whatever the devices say, which host may
//! still write ([`World::may_write`], the judge of a false FENCED). It is pure; time is an argument. [`Simulators`] shows it
//! over HTTP on loopback and keeps it in a file, so that a killed process goes on where it was.

mod error;
mod fault;
mod host;
mod port;
mod routes;
mod server;
mod store;
mod world;

pub use error::SimulatorError;
pub use fault::{Fault, FaultKind, MAX_DELAY_MS, MAX_TIMES};
pub use host::{Condition, DeviceView, HostView, SeenHost};
pub use port::{Behaviour, PortState, Verb};
pub use server::{Handle, Observer, Simulators};
pub use world::{MAX_DEVICES, MAX_HOSTS, World};
